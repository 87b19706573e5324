// POST /api/mcp as HTTP: what a bare request gets, what is turned away before any tool is reached, and that every answer is
// JSON. No official client would send most of this.

import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { beforeAll, expect, inject, onTestFinished, test } from 'vitest'
import * as z from 'zod'
import { studio } from '../support/database.ts'
import { bearing, type HttpAnswer, jsonHeaders, post, toolCall } from '../support/mcp.ts'
import { createOrganisation, type TestOrganisation } from '../support/organisation.ts'
import { ownApp } from '../support/own-app.ts'
import { organisationAllowed } from '../support/plan.ts'

const maximumBytes = 256 * 1024

const ErrorAnswer = z.object({ error: z.object({ code: z.string(), request_id: z.string() }) })

// Of JSON-RPC 2.0. What cannot be read has no id to answer to.
const [parseError, invalidRequest, invalidParams] = [-32700, -32600, -32602]

function expectRpcError({ status, body }: HttpAnswer, code: number): void {
  expect(status).toBe(400)
  expect(body).toEqual({ jsonrpc: '2.0', id: null, error: { code, message: expect.stringMatching(/^[A-Z].*\w/) } })
}

let organisation: TestOrganisation
let key: string

beforeAll(async () => {
  organisation = await createOrganisation()
  key = await organisation.key()
})

function codeOf({ status, headers, body }: HttpAnswer): [number, string] {
  const { error } = ErrorAnswer.parse(body)
  expect(error.request_id).toBe(headers['x-request-id'])
  return [status, error.code]
}

test("the spec's own example works as it stands: a tool call in plain JSON, with no Accept header", async () => {
  const published = await organisation.event()
  await organisation.event({ status: 'draft' })

  const { status, headers, body } = await post(
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_events","arguments":{"status":"published"}}}',
    { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
  )

  expect(status).toBe(200)
  expect(headers['content-type']).toMatch(/^application\/json\b/)
  expect(headers['mcp-session-id']).toBeUndefined()
  const { id, result } = body as {
    id: number
    result: { structuredContent: unknown; content: Array<{ text: string }> }
  }
  expect(id).toBe(1)
  expect(result.structuredContent).toMatchObject({ data: [{ id: published.id, status: 'published' }] })
  expect(JSON.parse(result.content[0]?.text ?? '')).toEqual(result.structuredContent)
})

test.each([['*/*'], ['application/json'], ['text/event-stream'], ['text/html']])(
  'whatever a caller accepts (%s), the answer is JSON',
  async (accept) => {
    const { status, headers } = await post(toolCall('get_api_key'), { ...jsonHeaders(key), Accept: accept })
    expect([status, headers['content-type']]).toEqual([200, expect.stringMatching(/^application\/json\b/)])
  },
)

// Every request of this revision says which it is, in its headers and its _meta.
const modern = (method: string, params: Record<string, unknown> = {}) => ({
  body: {
    jsonrpc: '2.0',
    id: 1,
    method,
    params: {
      ...params,
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  },
  headers: {
    'Mcp-Protocol-Version': '2026-07-28',
    'Mcp-Method': method,
    ...(typeof params.name === 'string' && { 'Mcp-Name': params.name }),
  },
})

test.each([
  modern('server/discover'),
  modern('tools/list'),
  modern('tools/call', { name: 'get_api_key', arguments: {} }),
])('revision 2026-07-28 is answered as plain JSON, too: $body.method', async ({ body, headers }) => {
  const answer = await post(body, { ...jsonHeaders(key), ...headers })
  expect([answer.status, answer.headers['content-type']]).toEqual([200, expect.stringMatching(/^application\/json\b/)])
  expect(answer.body).toMatchObject({ id: 1, result: expect.anything() })
})

test('a refusal of the protocol quotes no more than a part of what it refuses', async () => {
  const { body, headers } = modern('tools/list')
  const revision = 'ä'.repeat(20_000)
  Object.assign(body.params._meta, { 'io.modelcontextprotocol/protocolVersion': revision })
  const answer = await post(body, { ...jsonHeaders(key), ...headers })
  expect(answer).toMatchObject({ status: 400, body: { jsonrpc: '2.0', error: { message: expect.any(String) } } })
  expect(JSON.stringify(answer.body).length).toBeLessThan(2_000)
})

test('no session is opened: initialize names no session, and a tool can be called without it', async () => {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  const { headers, body } = await post({ jsonrpc: '2.0', id: 1, method: 'initialize', params }, jsonHeaders(key))
  expect(headers['mcp-session-id']).toBeUndefined()
  expect(body).toMatchObject({ result: { protocolVersion: '2025-11-25', serverInfo: { name: 'usher' } } })
})

test.each(['GET', 'DELETE', 'PUT'])('%s is answered 405 with Allow: POST', async (method) => {
  const answer = await post(undefined, bearing(key).headers, { method })
  expect(codeOf(answer)).toEqual([405, 'method_not_allowed'])
  expect(answer.headers.allow).toBe('POST')
})

const ask = (id: number, method: string, params?: object) => ({ jsonrpc: '2.0', id, method, ...(params && { params }) })
const callOf = (id: number, name: string, args: object = {}) => ask(id, 'tools/call', { name, arguments: args })

test('a batch, as revision 2025-03-26 has it, is answered request by request, refusals included', async () => {
  const event = await organisation.event()
  const guest = { event_id: event.id, ticket_type_id: event.ticketTypeId, name: 'Mary', email: 'mary@example.com' }
  const { status, body } = await post(
    [
      callOf(1, 'register_attendee', guest),
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      callOf(2, 'register_attendee', { ...guest, name: '' }),
      callOf(3, 'destroy_event'),
      ask(4, 'ping'),
    ],
    jsonHeaders(key),
  )
  expect(status).toBe(200)
  const byId = new Map((body as { id: number }[]).map((answer) => [answer.id, answer]))
  expect([...byId.keys()].sort()).toEqual([1, 2, 3, 4])
  expect(byId.get(1)).not.toMatchObject({ result: { isError: true } })
  expect(byId.get(2)).toMatchObject({ result: { isError: true } })
  expect(byId.get(3)).toMatchObject({ error: { code: invalidParams } })
  expect(byId.get(4)).toMatchObject({ result: {} })
  expect(await event.sold()).toBe(1)
})

test('a batch of one is answered as a batch, and one of notifications alone with nothing', async () => {
  expect((await post([ask(1, 'ping')], jsonHeaders(key))).body).toEqual([{ jsonrpc: '2.0', id: 1, result: {} }])
  const told = await post([{ jsonrpc: '2.0', method: 'notifications/initialized' }], jsonHeaders(key))
  expect([told.status, told.body]).toEqual([202, undefined])
})

test('each request of a batch counts against the rate limit', async () => {
  const key = await (await organisationAllowed(5)).key()
  const { status, headers } = await post(
    [1, 2, 3].map((id) => ask(id, 'ping')),
    jsonHeaders(key),
  )
  expect([status, headers.ratelimit]).toEqual([200, expect.stringMatching(/^"5-in-1min"; r=2; /)])
  expect(
    codeOf(
      await post(
        [1, 2, 3].map((id) => ask(id, 'ping')),
        jsonHeaders(key),
      ),
    ),
  ).toEqual([429, 'rate_limited'])
})

test('a batch whose answers grow large is not gone on with', async () => {
  const { id } = await organisation.event()
  await studio.query(`update public.events set description = repeat('"', 20000) where id = $1`, [id])
  const { body } = await post(
    Array.from({ length: 20 }, (_, n) => callOf(n, 'get_event', { event_id: id })),
    jsonHeaders(key),
  )
  const answers = body as { result?: unknown; error?: { code: number } }[]
  const listed = answers.filter(({ result }) => result !== undefined).length
  expect(listed).toBeGreaterThan(1)
  expect(answers.filter(({ error }) => error?.code === invalidRequest)).toHaveLength(20 - listed)
  expect(JSON.stringify(body).length).toBeLessThan(1024 * 1024 + 2 * JSON.stringify(answers[0]).length)
})

test.each([
  ['none', [], {}],
  ['twenty-one', Array.from({ length: 21 }, (_, id) => ask(id, 'ping')), {}],
  ['two with one id', [ask(1, 'ping'), ask(1, 'ping')], {}],
  ['two in revision 2025-06-18', [ask(1, 'ping'), ask(2, 'ping')], { 'Mcp-Protocol-Version': '2025-06-18' }],
  ['two in revision 2026-07-28', [ask(1, 'ping'), ask(2, 'ping')], { 'Mcp-Protocol-Version': '2026-07-28' }],
])('a batch of %s is refused', async (_what, batch, headers) => {
  expectRpcError(await post(batch, { ...jsonHeaders(key), ...headers }), invalidRequest)
})

test.each([
  ['initialize without a revision', 'initialize', { capabilities: {}, clientInfo: { name: 'test', version: '1' } }],
  ['initialize with nothing', 'initialize', {}],
  [
    'initialize with a revision that is a number',
    'initialize',
    { protocolVersion: 1, capabilities: {}, clientInfo: 7 },
  ],
  ['a cursor that is a number', 'tools/list', { cursor: 7 }],
  ['a tool call with no name', 'tools/call', {}],
  ['arguments that are a list', 'tools/call', { name: 'list_events', arguments: [] }],
])('%s is answered as invalid parameters', async (_what, method, params) => {
  const { body } = await post(ask(7, method, params), jsonHeaders(key))
  expect(body).toMatchObject({ jsonrpc: '2.0', id: 7, error: { code: invalidParams } })
})

test('the v1 client can negotiate revision 2025-03-26, and send a batch', async () => {
  const answers: unknown[] = []
  const transport = new TransportV1(new URL(`${inject('apiUrl')}/api/mcp`), { requestInit: bearing(key) })
  transport.onmessage = (message) => void answers.push(message)
  onTestFinished(() => transport.close())
  await transport.start()
  const params = { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  await transport.send({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
  expect(answers).toMatchObject([{ id: 1, result: { protocolVersion: '2025-03-26' } }])
  transport.setProtocolVersion('2025-03-26')
  await transport.send([
    { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'get_api_key', arguments: {} } },
    { jsonrpc: '2.0', id: 3, method: 'ping' },
  ])
  await expect.poll(() => answers.length).toBe(3)
  expect(answers).toMatchObject([{}, { id: 2, result: { structuredContent: { data: {} } } }, { id: 3, result: {} }])
})

test.each([
  ['no Authorization header', {}, 'missing_api_key'],
  ['another scheme', { Authorization: 'Basic dXNoZXI6bGl2ZQ==' }, 'missing_api_key'],
  ['a key with a typing error', { Authorization: 'Bearer usher_live_typo' }, 'invalid_api_key'],
])('a request with %s is answered 401 with WWW-Authenticate', async (_what, headers, code) => {
  const answer = await post(toolCall('list_events'), { 'Content-Type': 'application/json', ...headers })
  expect(codeOf(answer)).toEqual([401, code])
  expect(answer.headers['www-authenticate']).toMatch(/^Bearer realm="usher"/)
})

test.each([
  ['text/plain'],
  ['application/x-www-form-urlencoded'],
  ['application/json; charset=iso-8859-1'],
  [undefined],
])('a body of type %s is answered 415', async (type) => {
  const headers = { ...bearing(key).headers, ...(type !== undefined && { 'Content-Type': type }) }
  expect(codeOf(await post(toolCall('list_events'), headers))).toEqual([415, 'unsupported_media_type'])
})

test.each(['{"jsonrpc":', 'null', '"list_events"', "{'single': 'quotes'}"])(
  'the body %s cannot be parsed',
  async (text) => {
    expectRpcError(await post(text, jsonHeaders(key)), parseError)
  },
)

test.each([[{}], [{ jsonrpc: '1.0', id: 1, method: 'tools/list' }], [{ jsonrpc: '2.0', id: 1, method: 7 }]])(
  'JSON that is no JSON-RPC message (%j) is answered 400',
  async (body) => {
    const answer = await post(body, jsonHeaders(key))
    expect([answer.status, answer.body]).toEqual([400, expect.objectContaining({ error: expect.anything() })])
  },
)

test('a body of 256 KiB is read, and one byte more is too much', async () => {
  const padded = (bytes: number) => JSON.stringify(toolCall('get_api_key')).padEnd(bytes, ' ')
  expect((await post(padded(maximumBytes), jsonHeaders(key))).status).toBe(200)
  expect(codeOf(await post(padded(maximumBytes + 1), jsonHeaders(key)))).toEqual([413, 'payload_too_large'])
})

test.each([
  [{ Host: 'evil.example' }, 'host_not_allowed'],
  [{ Host: 'evil.example:3000' }, 'host_not_allowed'],
  [{ Host: 'localhost.evil.example' }, 'host_not_allowed'],
  [{ Origin: 'https://evil.example' }, 'origin_not_allowed'],
  [{ Origin: 'http://localhost.evil.example' }, 'origin_not_allowed'],
  [{ Origin: 'null' }, 'origin_not_allowed'],
])('a page of another site cannot reach this machine: %j is answered 403', async (headers, code) => {
  expect(codeOf(await post(toolCall('get_api_key'), { ...jsonHeaders(key), ...headers }))).toEqual([403, code])
})

test.each([
  [{ Host: 'localhost' }],
  [{ Host: 'localhost:8080' }],
  [{ Host: '[::1]:3000' }],
  [{ Origin: 'http://localhost:6274' }],
  [{ Origin: 'http://127.0.0.1' }],
])('loopback passes: %j', async (headers) => {
  expect((await post(toolCall('get_api_key'), { ...jsonHeaders(key), ...headers })).status).toBe(200)
})

test('a host named in ALLOWED_HOSTS passes, as Host and as Origin, and no other', async () => {
  const app = await ownApp({ allowedHosts: ['tickets.example.com'] })
  const ask = (headers: Record<string, string>) =>
    post(toolCall('get_api_key'), { ...jsonHeaders(key), ...headers }, { apiUrl: app.url })

  expect((await ask({ Host: 'tickets.example.com', Origin: 'https://tickets.example.com' })).status).toBe(200)
  expect(codeOf(await ask({ Host: 'api.example.com' }))).toEqual([403, 'host_not_allowed'])
})

test.each([
  ['no name', {}],
  ['arguments that are a list', { name: 'list_events', arguments: [1] }],
])('parameters of a tool call with %s are invalid, in a sentence of our own', async (_what, params) => {
  const { body } = await post({ ...toolCall('list_events'), params }, jsonHeaders(key))
  expect(body).toMatchObject({
    id: 1,
    error: { code: invalidParams, message: 'The parameters of tools/call are not valid.' },
  })
})
