// Which error comes first: the key, then its rate limit, then its scope, then everything else. A key that was revoked while the
// gateway remembers it gets 401 and nothing else.

import { expect, inject, test } from 'vitest'
import { prefixOf } from '../../src/gateway/api-key.ts'
import { studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'

const json = 'application/json'
const id = '01a1fa45-8fac-7c28-a535-aaa9447abaa9'
const revoke = (key: string) =>
  studio.query('update public.api_keys set revoked_at = now() where prefix = $1', [prefixOf(key)])

type Sent = { method: string; path: string; body?: string; type?: string; headers?: Record<string, string> }

async function send(key: string, { method, path, body, type = json, headers = {} }: Sent) {
  const response = await fetch(inject('apiUrl') + path, {
    method,
    headers: { Authorization: `Bearer ${key}`, ...(body !== undefined && { 'Content-Type': type }), ...headers },
    ...(body !== undefined && { body }),
  })
  const challenge = response.headers.get('www-authenticate')
  return { status: response.status, challenge, text: await response.text() }
}

const api = (method: string, path: string, more: Partial<Sent> = {}): Sent => ({
  method,
  path: `/api/v1${path}`,
  ...more,
})
const mcp = (body: unknown, more: Partial<Sent> = {}): Sent => ({
  method: 'POST',
  path: '/api/mcp',
  body: typeof body === 'string' ? body : JSON.stringify(body),
  ...more,
})
const rpc = (method: string, params?: object) => ({ jsonrpc: '2.0', id: 1, method, params })
const large = JSON.stringify({ event_id: id, code: 'x'.repeat(300_000) })

/** A key that may everything but check in. */
const fromMemory: [status: number, what: string, sent: Sent][] = [
  [400, 'JSON that is none', api('POST', '/events', { body: '{' })],
  [400, 'a path that cannot be decoded', api('GET', '/events/%E0%A4%A')],
  [403, 'a scope it lacks', api('POST', '/check-ins', { body: '{}' })],
  [404, 'a path there is not', api('GET', '/nowhere')],
  [405, 'a method there is not', api('DELETE', '/me')],
  [413, 'a body too large', api('POST', '/events', { body: large })],
  [415, 'a body of text', api('POST', '/events', { body: 'hello', type: 'text/plain' })],
  [415, 'an unknown charset', api('POST', '/events', { body: '{}', type: 'application/json; charset=latin1' })],
  [422, 'no field at all', api('PATCH', `/events/${id}`, { body: '{}' })],
  [422, 'a field that is wrong', api('GET', '/events?limit=0')],
  [
    422,
    'an If-Match that is wrong',
    api('PATCH', `/events/${id}`, { body: '{"name":"x"}', headers: { 'If-Match': 'x' } }),
  ],
  [422, 'a list for a body', api('POST', '/events', { body: '[]' })],
  [422, 'a picture of nothing', api('GET', '/attendees/me/ticket.png')],
  [400, 'MCP with JSON that is none', mcp('{')],
  [400, 'MCP with no body', mcp('')],
  [400, 'MCP with a batch', mcp([rpc('ping')])],
  [400, 'MCP with no message', mcp({})],
  [400, 'MCP in a revision there is not', mcp(rpc('ping'), { headers: { 'Mcp-Protocol-Version': '1999-01-01' } })],
  [
    400,
    'MCP with headers that contradict',
    mcp(rpc('tools/call', { name: 'list_events' }), {
      headers: { 'Mcp-Protocol-Version': '2026-07-28', 'Mcp-Method': 'ping' },
    }),
  ],
  [404, 'MCP at a path there is not', mcp(rpc('ping'), { path: '/api/mcp/nowhere' })],
  [405, 'MCP by GET', { method: 'GET', path: '/api/mcp' }],
  [413, 'MCP with a body too large', mcp(large)],
  [415, 'MCP with a body of text', mcp('hello', { type: 'text/plain' })],
  [200, 'MCP with a tool there is not', mcp(rpc('tools/call', { name: 'destroy_event', arguments: {} }))],
  [200, 'MCP with arguments that are none', mcp(rpc('tools/call', { name: 'list_events', arguments: 7 }))],
  [200, 'MCP with a method there is not', mcp(rpc('resources/list'))],
  [200, 'MCP with initialize', mcp(rpc('initialize', {}))],
  [200, 'MCP with a list of tools', mcp(rpc('tools/list'))],
]

test.each(fromMemory)('%i for %s is 401 to a key that was revoked a moment ago', async (status, _what, sent) => {
  const organisation = await createOrganisation()
  const key = await organisation.key('events:read', 'events:write', 'attendees:read')
  expect((await rest(key)('GET', '/me')).status).toBe(200)
  expect((await send(key, sent)).status).toBe(status)
  await revoke(key)
  const answer = await send(key, sent)
  expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([401, 'api_key_revoked'])
  expect(answer.challenge).toContain('invalid_token')
})

test.each([
  ['a tool call that is not valid', { name: 'list_events', arguments: { limit: 0 } }],
  ['a tool call without the scope', { name: 'check_in', arguments: {} }],
  ['a tool call', { name: 'list_events', arguments: {} }],
])('%s says to a key that was revoked a moment ago that it was', async (_what, params) => {
  const key = await (await createOrganisation()).key('events:read')
  expect((await rest(key)('GET', '/me')).status).toBe(200)
  await revoke(key)
  expect((await send(key, mcp(rpc('tools/call', params)))).text).toContain('api_key_revoked')
})

test.each([
  ['a body that is not JSON', api('POST', '/check-ins', { body: '{' })],
  ['a body too large', api('POST', '/check-ins', { body: large })],
  ['a body of another type', api('POST', '/check-ins', { body: 'hello', type: 'text/plain' })],
  ['a body that names nothing', api('PATCH', `/events/${id}`, { body: '{}' })],
  ['an identifier that is none', api('GET', '/attendees/me')],
  ['a query that is wrong', api('GET', '/attendees?limit=0')],
])('%s, from a key without the scope, is refused for the scope', async (_what, sent) => {
  const key = await (await createOrganisation()).key('events:read')
  const { status, text } = await send(key, sent)
  expect([status, JSON.parse(text).error.code]).toEqual([403, 'missing_scope'])
})

test('a request that succeeds asks the database once', async () => {
  const key = await (await createOrganisation()).key()
  expect((await rest(key)('GET', '/me')).status).toBe(200)
  await studio.query("update public.api_keys set last_used_at = now() - interval '1 hour' where prefix = $1", [
    prefixOf(key),
  ])
  for (let i = 0; i < 3; i++) {
    expect((await rest(key)('GET', '/me')).status).toBe(200)
    expect((await send(key, mcp(rpc('tools/call', { name: 'list_events', arguments: {} })))).status).toBe(200)
  }
  // Resolving a key stamps it.
  const { rows } = await studio.query<{ old: boolean }>(
    "select last_used_at < now() - interval '30 minutes' as old from public.api_keys where prefix = $1",
    [prefixOf(key)],
  )
  expect(rows).toEqual([{ old: true }])
})
