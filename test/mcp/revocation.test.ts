// A key changed in Studio is changed from its next request on, though the gateway remembers whose it is for a minute. Each
// key here has just been used, so it is remembered.

import { expect, test } from 'vitest'
import { prefixOf } from '../../src/gateway/api-key.ts'
import { studio } from '../support/database.ts'
import { bearing, clients, jsonHeaders, negotiating, post, toolCall } from '../support/mcp.ts'
import { createOrganisation } from '../support/organisation.ts'

async function usedKey(): Promise<string> {
  const organisation = await createOrganisation()
  const key = await organisation.key('events:read')
  expect((await post(toolCall('list_events'), jsonHeaders(key))).status).toBe(200)
  return key
}

const change = (key: string, assignment: string) =>
  studio.query(`update public.api_keys set ${assignment} where prefix = $1`, [prefixOf(key)])

const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
}

const requests: Array<[string, unknown]> = [
  ['initialize', initialize],
  ['tools/list', { jsonrpc: '2.0', id: 1, method: 'tools/list' }],
  ['ping', { jsonrpc: '2.0', id: 1, method: 'ping' }],
  ['notifications/initialized', { jsonrpc: '2.0', method: 'notifications/initialized' }],
]

test.each(requests)('a key revoked a moment ago is refused on its very next request: %s', async (_method, request) => {
  const key = await usedKey()
  await change(key, 'revoked_at = now()')
  const { status, headers, body } = await post(request, jsonHeaders(key))
  expect([status, body]).toEqual([401, { error: expect.objectContaining({ code: 'api_key_revoked' }) }])
  expect(headers['www-authenticate']).toContain('error="invalid_token"')
})

test.each([
  ['revoked', 'revoked_at = now()', 'api_key_revoked'],
  ['expired', 'expires_at = now()', 'api_key_expired'],
])(
  'a tool call with a key %s a moment ago calls nothing, and the next one is answered 401',
  async (_how, set, code) => {
    const key = await usedKey()
    await change(key, set)
    const first = await post(toolCall('list_events'), jsonHeaders(key))
    expect(JSON.stringify(first.body)).toContain(code)
    expect(JSON.stringify(first.body)).not.toContain('has_more')
    const second = await post(toolCall('list_events'), jsonHeaders(key))
    expect([second.status, second.body]).toEqual([401, { error: expect.objectContaining({ code }) }])
  },
)

test.each(clients)('$client speaking $revision cannot connect with a revoked key', async ({ connect }) => {
  const key = await usedKey()
  await change(key, 'revoked_at = now()')
  await expect(connect(key)).rejects.toThrow(/401|unauthori[sz]ed|api_key_revoked/i)
})

test('a scope taken from a key is missed by its very next tool call, and one given to it serves at once', async () => {
  const key = await usedKey()
  const mcp = await negotiating(key)
  await mcp.call('list_events')

  await change(key, "scopes = '{checkin:write}'")
  expect(await mcp.refusal('list_events')).toMatchObject({ code: 'missing_scope', details: { scope: 'events:read' } })
  await change(key, "scopes = '{events:read}'")
  expect(await mcp.call('list_events')).toMatchObject({ data: [] })
})

test('a GET with a revoked key says that the key is revoked, not only that GET is no use', async () => {
  const key = await usedKey()
  await change(key, 'revoked_at = now()')
  await post({ jsonrpc: '2.0', id: 1, method: 'tools/list' }, jsonHeaders(key))
  expect((await post(undefined, bearing(key).headers, { method: 'GET' })).status).toBe(401)
})
