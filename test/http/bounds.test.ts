// Whatever is sent, the answer is small: a bounded number of bad fields is named, the rest is counted, and what has more values
// than any input is refused before it is validated. Over REST and over MCP alike.

import { beforeAll, expect, inject, test } from 'vitest'
import { jsonHeaders, post, toolCall } from '../support/mcp.ts'
import { createOrganisation, type TestEvent } from '../support/organisation.ts'
import { createOrganiser } from '../support/organiser.ts'
import { rest } from '../support/rest.ts'

const maximumBytes = 16_000

let key: string
let event: TestEvent
beforeAll(async () => {
  const organisation = await createOrganisation()
  key = await organisation.key('events:write', 'attendees:write', 'attendees:read', 'checkin:write')
  event = await organisation.event()
})

type Fields = { fields: { param: string; message: string }[]; more?: number }
type Refused = { code: string; param: string; message: string; details: Fields }

const many = <T>(n: number, of: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => of(i))
const unknown = (n: number, name = (i: number) => `unknown_${i}`) => Object.fromEntries(many(n, (i) => [name(i), 1]))

async function overRest(path: string, body: unknown): Promise<Refused> {
  const answer = await rest(key)('POST', path, body)
  expect(answer.status).toBe(422)
  expect(Buffer.byteLength(JSON.stringify(answer.body))).toBeLessThan(maximumBytes)
  return answer.body.error
}

/** The refusal inside the result; or around it, where the body was not read as JSON-RPC at all. */
async function overMcp(tool: string, args: Record<string, unknown>): Promise<Refused> {
  const { status, body } = await post(toolCall(tool, args), jsonHeaders(key))
  expect([200, 422]).toContain(status)
  expect(Buffer.byteLength(JSON.stringify(body))).toBeLessThan(maximumBytes)
  if (status === 422) return (body as { error: Refused }).error
  const { result } = body as { result: { isError: boolean; content: { text: string }[] } }
  expect(result.isError).toBe(true)
  const { error } = JSON.parse(result.content[0]?.text ?? '')
  const named = (field: unknown) => (typeof field === 'string' ? { param: field } : field)
  return { ...error, details: { ...error.details, fields: error.details?.fields?.map(named) } }
}

const guest = { name: 'Mary', email: 'mary@example.com' }

test.each<[what: string, path: string, tool: string, fields: () => Record<string, unknown>, more: number]>([
  ['unknown fields', '/events', 'create_event', () => ({ name: 'A', ...unknown(5000) }), 4980],
  ['unknown fields of long names', '/events', 'create_event', () => unknown(100, (i) => `${i}${'x'.repeat(2000)}`), 0],
  [
    'unknown fields of wide characters',
    '/events',
    'create_event',
    () => unknown(50, (i) => `${i}${'\u{1f600}'.repeat(100)}`),
    0,
  ],
  [
    'metadata of bad values',
    '/events',
    'create_event',
    () => ({ name: 'A', metadata: Object.fromEntries(many(4000, (i) => [`k${i}`, []])) }),
    3980,
  ],
  [
    'scans that are none',
    '/check-ins/batch',
    'check_in_batch',
    () => ({ event_id: event.id, scans: many(500, () => 1) }),
    480,
  ],
])('%s are named up to twenty, and counted, over REST and MCP', async (_what, path, tool, fields, more) => {
  for (const refused of [await overRest(path, fields()), await overMcp(tool, fields())]) {
    expect(refused.code).toBe('validation_failed')
    const { fields: named, more: others = 0 } = refused.details
    expect(named.length).toBeGreaterThan(5)
    expect(named.length).toBeLessThanOrEqual(20)
    for (const { param } of named) expect(param.length).toBeLessThanOrEqual(120)
    expect(others).toBeGreaterThan(0)
    if (more > 0) expect([named.length, others]).toEqual([20, more])
    expect(refused.message).toMatch(new RegExp(`; and ${others} more$`))
    expect(refused.param).toBe(named[0]?.param)
  }
})

const nested = (depth: number) => `{"attendees":${'['.repeat(depth)}${']'.repeat(depth)}}`

test.each<[what: string, body: string, message: string]>([
  [
    '32,000 unknown fields',
    JSON.stringify(unknown(32_000, (i) => i.toString(36).padStart(3, '0'))),
    'must hold at most 10000 values',
  ],
  ['a list of 60,000 items', JSON.stringify({ attendees: many(60_000, () => 0) }), 'must hold at most 10000 values'],
  ['lists 100,000 deep', nested(100_000), 'must be nested at most 10 deep'],
  ['lists 11 deep', nested(11), 'must be nested at most 10 deep'],
])('a body of %s is refused before it is validated', async (_what, fields, message) => {
  expect(await overRest(`/events/${event.id}/registrations`, fields)).toMatchObject({
    code: 'validation_failed',
    param: 'body',
    message: `body ${message}`,
  })
  const call = JSON.stringify(toolCall('register_attendee')).replace('"arguments":{}', () => `"arguments":${fields}`)
  expect(await post(call, jsonHeaders(key))).toMatchObject({
    status: 400,
    body: { jsonrpc: '2.0', id: null, error: { code: -32600, message: `The body ${message}.` } },
  })
})

test('brackets, commas and quotes inside texts are not counted', async () => {
  const description = '[[[[[[[[[[[[{,"\\'.repeat(1200)
  const { status, body } = await rest(key)('POST', '/events', { name: 'A', description })
  expect([status, body.data.description]).toEqual([201, description])
})

test('the largest bodies there is a use for are read: 500 scans, and 50 guests with 50 keys of metadata', async () => {
  const scans = many(500, (i) => ({
    scan_id: `${i}`,
    code: 'nobody',
    scanned_at: '2026-11-01T10:00:00Z',
    device: 'Gate 1',
  }))
  const uploaded = await rest(key)('POST', '/check-ins/batch', { event_id: event.id, scans })
  expect([uploaded.status, uploaded.body.data.rejected]).toEqual([200, 500])

  const metadata = Object.fromEntries(many(50, (i) => [`key_${i}`, `value ${i}`]))
  const attendees = many(50, (i) => ({
    ...guest,
    ticket_type_id: event.ticketTypeId,
    company: 'NASA',
    external_id: `${event.id}-${i}`,
    metadata,
  }))
  const call = toolCall('register_attendee', { event_id: event.id, send_email: false, attendees })
  const registered = await post(call, jsonHeaders(key))
  expect(registered.body).toMatchObject({ result: { structuredContent: { data: { status: 'completed' } } } })
})

test.each([
  ['many unknown parameters', many(900, (i) => `unknown_${i}=1`).join('&')],
  ['more parameters than are read', many(2000, (i) => `u${i}`).join('&')],
  ['one parameter many times', many(900, () => 'status=draft').join('&')],
  ['many parameters twice', many(400, (i) => `u${i}=1&u${i}=2`).join('&')],
  ['a long name', `${'%01'.repeat(3000)}=1`],
  ['a long value', `status=${'x'.repeat(12_000)}&limit=${'9'.repeat(1000)}`],
])('a query of %s is answered in a few words', async (_what, query) => {
  for (const path of ['/attendees', `/attendees/${event.id}`]) {
    const { status, body } = await rest(key)('GET', `${path}?${query}`)
    expect([status, body.error.code]).toEqual([422, 'validation_failed'])
    expect(Buffer.byteLength(JSON.stringify(body))).toBeLessThan(maximumBytes)
  }
  const posted = await rest(key)('POST', `/events?${query}`, { name: 'A' })
  expect(posted.status).toBe(422)
  expect(Buffer.byteLength(JSON.stringify(posted.body))).toBeLessThan(maximumBytes)
})

test.each([
  ['arguments that are a list', { name: 'create_event', arguments: many(9000, () => 1) }],
  ['a name that is no text', { name: many(9000, () => 1), arguments: {} }],
  ['a name of 200,000 characters', { name: 'x'.repeat(200_000), arguments: {} }],
  ['parameters there are not', { name: 'get_api_key', arguments: {}, ...unknown(9000) }],
  ['_meta of all kinds', { name: 'get_api_key', arguments: {}, _meta: { progressToken: {}, ...unknown(9000) } }],
])('a tool call with %s is answered in a few words', async (_what, params) => {
  const modern: Record<string, string> = { 'Mcp-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call' }
  for (const headers of [{}, modern]) {
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
    const answer = await post(body, { ...jsonHeaders(key), ...headers })
    expect(Buffer.byteLength(JSON.stringify(answer.body))).toBeLessThan(maximumBytes)
  }
})

test('a body that is no UTF-8 is a parse error of JSON-RPC', async () => {
  const response = await fetch(`${inject('apiUrl')}/api/mcp`, {
    method: 'POST',
    headers: jsonHeaders(key),
    body: new Uint8Array(Buffer.from(JSON.stringify(toolCall('create_event', { name: 'Zo\u00eb' })), 'latin1')),
  })
  expect([response.status, await response.json()]).toEqual([
    400,
    { jsonrpc: '2.0', id: null, error: { code: -32700, message: 'The body is not valid UTF-8.' } },
  ])
})

test('of each field the first thing that is wrong is said, and nothing follows from a field that is not known', async () => {
  const { event, send } = await createOrganiser()
  const fieldsOf = async (body: object) =>
    (await send('PATCH', `/events/${event.id}`, body)).body.error.details.fields.map((f: { param: string }) => f.param)
  expect(await fieldsOf({ nope: 1 })).toEqual(['nope'])
  expect(await fieldsOf({ name: [] })).toEqual(['name'])
})
