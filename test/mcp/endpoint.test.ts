// POST /api/mcp as HTTP: what a bare request gets, what is turned away before any tool is reached, and that every answer is
// JSON. No official client would send most of this.

import { beforeAll, expect, test } from 'vitest'
import * as z from 'zod'
import { bearing, type HttpAnswer, jsonHeaders, post, toolCall } from '../support/mcp.ts'
import { createOrganisation, type TestOrganisation } from '../support/organisation.ts'
import { ownApp } from '../support/own-app.ts'

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

test.each(['GET', 'DELETE', 'PUT'])('%s is answered 405 with Allow: POST', async (method) => {
  const answer = await post(undefined, bearing(key).headers, { method })
  expect(codeOf(answer)).toEqual([405, 'method_not_allowed'])
  expect(answer.headers.allow).toBe('POST')
})

const ask = (id: number, method: string, params?: object) => ({ jsonrpc: '2.0', id, method, ...(params && { params }) })

test.each([
  ['none', [], {}],
  ['one', [ask(1, 'ping')], {}],
  ['two', [ask(1, 'ping'), ask(2, 'ping')], {}],
  ['two in revision 2025-03-26', [ask(1, 'ping'), ask(2, 'ping')], { 'Mcp-Protocol-Version': '2025-03-26' }],
  ['two in revision 2026-07-28', [ask(1, 'ping'), ask(2, 'ping')], { 'Mcp-Protocol-Version': '2026-07-28' }],
])('a batch of %s is refused', async (_what, batch, headers) => {
  const answer = await post(batch, { ...jsonHeaders(key), ...headers })
  expectRpcError(answer, invalidRequest)
  expect(answer.body).toMatchObject({ error: { message: expect.stringContaining('Batches') } })
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
