// Plain requests are answered without the SDK, in the very bytes that it answers. A member of `_meta` of the client's own sends the
// same request through the SDK.

import { beforeAll, expect, inject, test } from 'vitest'
import { createOrganisation } from '../support/organisation.ts'

const keys: Record<string, string> = {}
let event: string
beforeAll(async () => {
  const organisation = await createOrganisation()
  keys.full = await organisation.key()
  keys.narrow = await organisation.key('checkin:write', 'events:read')
  event = (await organisation.event()).id
})

const envelope = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}
const eras = {
  legacy: { headers: () => ({}), meta: {} },
  modern: {
    headers: (method: string, name?: string) => ({
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': method,
      ...(name !== undefined && { 'Mcp-Name': name }),
    }),
    meta: envelope,
  },
}
type Params = { name?: string; arguments?: object; _meta?: object }

async function answerTo(
  key: string | undefined,
  era: keyof typeof eras,
  method: string,
  params: Params | undefined,
  id: unknown,
  own: object,
  query = '',
) {
  const _meta = { ...eras[era].meta, ...own }
  const sent = Object.keys(_meta).length > 0 ? { ...params, _meta } : params
  const response = await fetch(`${inject('apiUrl')}/api/mcp?${query}`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${key}`,
      'Content-Type': 'application/json',
      'X-Request-Id': 'the-same',
      ...eras[era].headers(method, params?.name),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id, method, ...(sent && { params: sent }) }),
  })
  const { status, headers } = response
  return {
    status,
    type: headers.get('content-type'),
    length: headers.get('content-length'),
    text: await response.text(),
  }
}

const calls: [string, string, () => Params | undefined][] = [
  ['a list of tools', 'tools/list', () => undefined],
  ['a list of tools, asked for with parameters', 'tools/list', () => ({})],
  ['a read', 'tools/call', () => ({ name: 'get_event', arguments: { event_id: event } })],
  ['a read without arguments', 'tools/call', () => ({ name: 'get_api_key' })],
  ['a refusal', 'tools/call', () => ({ name: 'get_event', arguments: { event_id: 'nö"ne', other: [1] } })],
  [
    'a tool that is not listed',
    'tools/call',
    () => ({ name: 'get_ticket_type', arguments: { ticket_type_id: event } }),
  ],
  [
    'a write',
    'tools/call',
    () => ({ name: 'update_event', arguments: { event_id: event, changes: { capacity: 90 } } }),
  ],
  ['a tool that does not exist', 'tools/call', () => ({ name: 'get_rich', arguments: {} })],
  ['arguments that are a list', 'tools/call', () => ({ name: 'get_api_key', arguments: [] })],
]

for (const era of ['legacy', 'modern'] as const) {
  test.each(calls)(`${era}: %s`, async (_what, method, params) => {
    for (const [key, id] of [
      [keys.full, 7],
      [keys.narrow, 'a "quoted" ïd'],
    ] as const) {
      const bySdk = await answerTo(key, era, method, params(), id, { 'example.com/own': 1 })
      // The second time, a list is known.
      for (const own of [{}, {}, { progressToken: 1 }]) {
        expect(await answerTo(key, era, method, params(), id, own)).toEqual(bySdk)
      }
    }
  })
}

test.each(['toolsets=door', 'toolsets=all&read_only=true', 'read_only=true'])(
  'by both ways %s selects the same, and each list is kept apart',
  async (query) => {
    for (const era of ['legacy', 'modern'] as const) {
      const list = (own: object) => answerTo(keys.full, era, 'tools/list', undefined, 7, own, query)
      const bySdk = await list({ 'example.com/own': 1 })
      expect([await list({}), await list({})]).toEqual([bySdk, bySdk])
      const others = await answerTo(keys.full, era, 'tools/list', undefined, 7, {})
      expect(others.text).not.toBe(bySdk.text)
      const write = (own: object) =>
        answerTo(keys.full, era, 'tools/call', { name: 'publish_event', arguments: { event_id: event } }, 7, own, query)
      expect(await write({})).toEqual(await write({ 'example.com/own': 1 }))
    }
  },
)
