// A refusal is a result with `isError`, and says exactly what REST says to the same input. Only what is no call of a tool
// at all is an error of the protocol.

import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { restRequestOf } from '../../scripts/support/rest-request.ts'
import type { ErrorBody } from '../../src/gateway/api-error.ts'
import { DataApi } from '../../src/gateway/data-api.ts'
import { createTokens } from '../../src/gateway/tokens.ts'
import type { Scope } from '../../src/operations/operation.ts'
import { idOf, studio } from '../support/database.ts'
import { connectForAll, connectV1, jsonHeaders, type McpCaller, post, toolCall } from '../support/mcp.ts'
import { createOrganisation, type TestOrganisation } from '../support/organisation.ts'
import { ownApp } from '../support/own-app.ts'
import { rest } from '../support/rest.ts'
import { edit } from '../support/studio.ts'

type Arguments = Record<string, unknown>
type Arranged = Awaited<ReturnType<typeof arrange>>

const invalidParams = -32602

let organisation: TestOrganisation
let key: string

beforeAll(async () => {
  organisation = await createOrganisation()
  key = await organisation.key()
})

async function arrange() {
  const event = await organisation.event()
  const guest = { event_id: event.id, ticket_type_id: event.ticketTypeId, name: 'Mary', email: 'mary@example.com' }
  return { organisation, event, guest }
}

/**
 * Without what differs from one request, and from one logged scan, to the next; headers and ids by the names of the arguments. What REST
 * has in the path is an argument among others, and what lists objects has a name in each.
 */
function comparable({ request_id: _, ...error }: ErrorBody): unknown {
  const text = JSON.stringify(error)
    .replaceAll('"Idempotency-Key', '"idempotency_key')
    .replaceAll('(allowed: event_id, ', '(allowed: ')
    .replace(/ \w+ is not listed: [^.]*\./g, '')
    .replace(/(list_\w+|get_\w+|GET \/api\/v1\/[^ ]+) (show|list)s/g, 'the list lists')
    .replace(/the name of (an? [a-z -]+) on one line/g, 'the id of $1')
    .replace(/(?<=["; ])(event|ticket_type|attendee)_id(?=[" ])/g, '$1')
  const copy = JSON.parse(text) as { details?: { check_in?: Record<string, unknown>; fields?: unknown[] } }
  // The message has the sentences: over MCP they are not said twice.
  if (copy.details?.fields) copy.details.fields = copy.details.fields.map((field) => paramOf(field))
  for (const field of ['id', 'scanned_at', 'created_at', 'updated_at']) delete copy.details?.check_in?.[field]
  return copy
}

const paramOf = (field: unknown) => (typeof field === 'string' ? field : (field as { param: string }).param)

const scanned = ({ event }: Arranged, code: string) =>
  idOf('insert into public.check_ins (event_id, code) values ($1, $2) returning id', [event.id, code])

// One of each form that a refusal has.
const refusals: Array<[tool: string, code: string, when: string, arguments_: (it: Arranged) => Promise<Arguments>]> = [
  ['get_event', 'not_found', 'there is no such event', async () => ({ event_id: randomUUID() })],
  ['list_events', 'validation_failed', 'the cursor is made up', async () => ({ cursor: 'the-next-page' })],
  [
    'register_attendee',
    'not_found',
    'the ticket type is of another event',
    async (it) => ({ ...it.guest, ticket_type_id: (await it.organisation.event()).ticketTypeId }),
  ],
  [
    'register_attendee',
    'sold_out',
    'nothing is left',
    async (it) => {
      await edit('ticket_types', it.event.ticketTypeId, 'quantity = 0')
      return it.guest
    },
  ],
  [
    'register_attendee',
    'idempotency_key_reused',
    'the idempotency key was used for somebody else',
    async (it) => {
      const { method, path, body, headers } = restRequestOf('register_attendee', {
        ...it.guest,
        idempotency_key: 'one',
      })
      await rest(key)(method, path, body, headers)
      return { ...it.guest, name: 'Dorothy', idempotency_key: 'one' }
    },
  ],
  ['check_in', 'not_found', 'no ticket has the code', async (it) => ({ event_id: it.event.id, code: 'nobody' })],
  [
    'check_in',
    'already_checked_in',
    'the ticket was used',
    async (it) => {
      const { code } = await it.event.guest()
      await scanned(it, code)
      return { event_id: it.event.id, code, device: 'Gate 1' }
    },
  ],
  [
    'undo_check_in',
    'check_in_not_accepted',
    'the scan was rejected',
    async (it) => ({ check_in_id: await scanned(it, 'nobody') }),
  ],
]

const mistakes: Array<[tool: string, fields: string[], arguments_: (it: Arranged) => Arguments]> = [
  [
    'list_events',
    ['colour', 'cursor', 'limit', 'status'],
    () => ({ status: 'open', cursor: 'x'.repeat(101), limit: 0, colour: 'red' }),
  ],
  ['get_event', ['event_id'], () => ({ event_id: 'the\nlaunch' })],
  [
    'register_attendee',
    ['company', 'email', 'name', 'send_email', 'ticket_type_id', 'vip'],
    (it) => ({
      event_id: it.event.id,
      ticket_type_id: 7,
      name: ' ',
      email: 'mary',
      company: 7,
      send_email: 'no',
      vip: true,
    }),
  ],
  ['register_attendee', ['idempotency_key'], (it) => ({ ...it.guest, idempotency_key: 'x'.repeat(256) })],
  ['check_in', ['code', 'event'], () => ({})],
]

async function expectSameErrorFromBoth(
  mcp: McpCaller,
  name: string,
  code: string,
  args: Arguments,
): Promise<ErrorBody> {
  const overMcp = await mcp.refusal(name, args)
  const { method, path, body, headers } = restRequestOf(name, args)
  const overRest = await rest(key)(method, path, body, headers)
  expect(overMcp.code).toBe(code)
  expect(comparable(overMcp)).toEqual(comparable(overRest.body.error))
  return overMcp
}

describe('over MCP as over REST', () => {
  let mcp: McpCaller

  beforeAll(async () => {
    const connected = await connectForAll(connectV1, key)
    mcp = connected.mcp
    return connected.close
  })

  test.each(refusals)('%s is refused as %s when %s', async (name, code, _when, argumentsOf) => {
    await expectSameErrorFromBoth(mcp, name, code, await argumentsOf(await arrange()))
  })

  test.each(mistakes)('%s names every bad field (%j)', async (name, fields, argumentsOf) => {
    const it = await arrange()
    const refusal = await expectSameErrorFromBoth(mcp, name, 'validation_failed', argumentsOf(it))
    expect((refusal.details as { fields: string[] }).fields.sort()).toEqual(fields)
    expect(await it.event.sold()).toBe(0)
  })

  test('an unknown tool is an error of the protocol', async () => {
    await expect(mcp.call('destroy_event')).rejects.toMatchObject({ code: invalidParams })
  })
})

test('a hint speaks of headers over REST, and of arguments over MCP', async () => {
  const { event } = await arrange()
  const tokens = await createTokens({ secret: inject('jwtSecret') })
  const works = new DataApi({ url: inject('dataApiUrl') }, tokens)
  const dataApi = new DataApi({ url: 'http://127.0.0.1:9' }, tokens)
  const { rpc } = dataApi
  dataApi.rpc = (fn, ...rest) => (fn === 'resolve_api_key' ? works.rpc(fn, ...rest) : rpc.call(dataApi, fn, ...rest))
  const app = await ownApp({ dataApi })
  const overRest = await rest(key, app.url)('POST', `/events/${event.id}/publish`)
  expect([overRest.status, overRest.body.error.hint]).toEqual([503, expect.stringContaining('an Idempotency-Key')])
  const refusal = await (await connectV1(key, app.url)).refusal('publish_event', { event_id: event.id })
  expect([refusal.code, refusal.hint]).toEqual([
    overRest.body.error.code,
    expect.stringContaining('an idempotency_key'),
  ])
})

test('a bad field is explained once, and named', async () => {
  const mcp = await connectV1(key)
  const refusal = await mcp.refusal('list_events', { status: 'open', limit: 0 })
  expect(refusal.details).toEqual({ fields: ['status', 'limit'] })
  expect(JSON.stringify(refusal).match(/must be one of/g)).toHaveLength(1)
  const { event } = await arrange()
  const refused = await mcp.refusal('update_event', { event: event.id, changes: { timezone: 'x', currency: 'XXZ' } })
  expect(JSON.stringify(refused).split(refused.message)).toHaveLength(2)
  const plan = await mcp.call('apply_event', { event: event.id, changes: { currency: 'XXZ' } })
  expect(JSON.stringify(plan).match(/ISO 4217/g)).toHaveLength(1)
})

test('a hint names a tool that is not listed with the way to it', async () => {
  const unlisted = (listed: string) =>
    `list_promo_codes is not listed, but can be called. To list it, connect with toolsets=${listed},events.`
  const update = { promo_code: randomUUID(), changes: { percent_off: 5 } }
  const hintOf = async (query: string, ...chosen: Scope[]) => {
    const { mcp, close } = await connectForAll(connectV1, await organisation.key(...chosen), query)
    const { hint } = await mcp.refusal('update_promo_code', update)
    await close()
    return hint
  }

  expect(await hintOf('')).toBe(`list_promo_codes lists those of your organisation. ${unlisted('default')}`)
  expect(await hintOf('toolsets=door,orders')).toContain(unlisted('door,orders'))
  expect(await hintOf('toolsets=all')).toBe('list_promo_codes lists those of your organisation.')
  expect(await hintOf('', 'events:write')).toMatch(/list_promo_codes needs a key with events:read\.$/)
})

test('so does a warning', async () => {
  const { event } = await arrange()
  await studio.query("update public.ticket_types set sales_end_at = now() + interval '1 hour' where event_id = $1", [
    event.id,
  ])
  const changes = { starts_at: '2090-01-01T10:00:00Z', ends_at: '2090-01-01T12:00:00Z' }
  const { mcp, close } = await connectForAll(connectV1, key, 'toolsets=door')
  const { warnings } = await mcp.call('update_event', { event: event.id, changes })
  await close()
  const way = 'apply_event is not listed, but can be called. To list it, connect with toolsets=door,events.'
  expect(warnings).toEqual([
    { code: 'windows_stay', message: expect.stringContaining(` use apply_event with move. ${way}`) },
  ])
})

test('the request id a caller sends comes back in the refusal', async () => {
  const { headers, body } = await post(toolCall('get_event', { event_id: randomUUID() }), {
    ...jsonHeaders(key),
    'X-Request-Id': 'scan-42',
  })
  expect(headers['x-request-id']).toBe('scan-42')
  expect(JSON.stringify(body)).toContain('\\"request_id\\":\\"scan-42\\"')
})

test('a method there is not is answered as a JSON-RPC error', async () => {
  const { body } = await post({ jsonrpc: '2.0', id: 7, method: 'resources/subscribe' }, jsonHeaders(key))
  expect(body).toMatchObject({ id: 7, error: { code: -32601 } })
})
