// MCP requests: for each tool valid arguments, of which some are changed, and messages that are no proper JSON-RPC.

import { toTools } from '../../../src/http/mcp/tools.ts'
import { operations } from '../../../src/operations/index.ts'
import type { Random } from '../random.ts'
import { exchange, type HostileRequest, type Sent } from './request.ts'
import { bodyFor } from './rest.ts'
import { type JsonSchema, sampleOf } from './samples.ts'
import type { Stage } from './stage.ts'
import { hostileText, words } from './values.ts'

const tools = toTools(operations.filter(({ mcp }) => mcp !== false))
type Message = Record<string, unknown>

const revisions = ['2024-10-07', '2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28']
const unknownRevisions = ['2099-01-01', '1999-01-01', '', '2025-03-26, 2025-06-18', 'DRAFT-2026', '2026-07-28 ', '0']
const methods = [
  ...words(
    'initialize ping tools/list tools/call prompts/list prompts/get resources/list resources/read server/discover',
  ),
  ...words(
    'resources/templates/list resources/subscribe logging/setLevel completion/complete notifications/initialized',
  ),
  ...words(
    'notifications/cancelled sampling/createMessage elicitation/create roots/list tasks/get subscriptions/listen',
  ),
  ...['rpc.discover', '', '__proto__', 'constructor', 'tools/call\u0000', 'x'.repeat(3_000)],
]
const ids = [
  ...[1, 0, -1, 1.5, 1e308, Number.MAX_SAFE_INTEGER, '', 'a', 'x'.repeat(5_000), '\u0000', '__proto__'],
  ...[null, true, [], {}, [1], { a: 1 }],
]

/** A call of a tool with valid arguments. */
function callOf(stage: Stage, random: Random): Message {
  const tool = random.one(tools)
  const args = sampleOf(tool.inputSchema as JsonSchema, stage, random) as Message
  return { jsonrpc: '2.0', id: random.below(1_000), method: 'tools/call', params: { name: tool.name, arguments: args } }
}

/** As revision 2026-07-28 has it: the revision is in the message, and headers repeat what it says. */
function modernise(message: Message, random: Random): Sent['headers'] {
  const params = (message.params ?? {}) as Message
  const meta: Message = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'hostile', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  if (random.below(5) === 0) delete meta[random.one(Object.keys(meta))]
  if (random.below(8) === 0)
    meta['io.modelcontextprotocol/protocolVersion'] = random.pick([...unknownRevisions, 7, null])
  message.params = { ...params, _meta: meta }
  const headers: Sent['headers'] = [
    ['Mcp-Protocol-Version', '2026-07-28'],
    ['Mcp-Method', headerText(message.method)],
  ]
  if (params.name !== undefined) headers.push(['Mcp-Name', headerText(params.name)])
  if (random.below(6) === 0) headers.splice(random.below(headers.length), 1)
  if (random.below(8) === 0) headers.push(['Mcp-Method', 'tools/list'])
  return headers
}

const headerText = (value: unknown): string =>
  String(value)
    .replace(/[^\x20-\x7e]/g, '?')
    .slice(0, 200)

function messageOf(stage: Stage, random: Random): Message {
  if (random.below(10) < 6) return callOf(stage, random)
  const method = random.one(methods)
  const message: Message = { jsonrpc: '2.0', id: random.pick(ids), method, params: paramsOf(method, random) }
  const kind = random.below(12)
  if (kind === 0) delete message.id
  if (kind === 1) delete message.params
  if (kind === 2) message.params = random.pick([null, [], 'text', 7, [{}]])
  if (kind === 3) message.jsonrpc = random.pick(['1.0', 2, null, '2.0 ', undefined])
  if (kind === 4) return { jsonrpc: '2.0', id: random.pick(ids), result: {} }
  if (kind === 5) return { jsonrpc: '2.0', id: random.pick(ids), error: { code: 1, message: 'x' } }
  if (kind === 6) message.extra = { constructor: 1, method: 'tools/list' }
  return message
}

function paramsOf(method: string, random: Random): Message {
  const text = hostileText(random)
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: random.pick([...revisions, ...unknownRevisions]),
        capabilities: {},
        clientInfo: { name: 'hostile', version: '1' },
      }
    case 'prompts/get':
      return { name: random.pick(['set_up_event', 'prepare_door', text]), arguments: { name: text, event: text } }
    case 'resources/read':
      return { uri: random.pick([text, 'usher://guides/errors', 'ftp://x', 'https://127.0.0.1:1/']) }
    case 'tools/list':
      return random.one<Message>([{}, { cursor: text }, { cursor: null }])
    case 'tools/call':
      return random.one<Message>([
        { name: text },
        { name: 'list_events', arguments: text },
        { name: ['list_events'] },
        {},
      ])
    default:
      return {}
  }
}

const queries = [
  ...['', '', '', '', '?toolsets=door', '?toolsets=all', '?read_only=true', '?toolsets=nothing', '?read_only=2'],
  ...['?toolsets=door&toolsets=all', '?read_only[]=1', '?%00=1'],
]
const accepts = [
  ...['text/event-stream', 'application/json', 'application/json, text/event-stream', '*/*', 'text/html', ''],
  ...['application/json;q=0', ';;;', 'a/b'.repeat(500)],
]

export function mcpSent(stage: Stage, random: Random): Sent {
  // A list of messages is refused as such, whatever is in it.
  const isList = random.below(50) === 0
  const message = isList ? [callOf(stage, random)] : messageOf(stage, random)
  const headers: Sent['headers'] = [
    ['Authorization', `Bearer ${random.one([stage.keys.full, stage.keys.full, stage.keys.asking, stage.keys.few])}`],
    ['Content-Type', 'application/json'],
  ]
  const kind = random.below(10)
  if (kind < 3 && !isList) headers.push(...modernise(message as Message, random))
  else if (kind < 7) headers.push(['Mcp-Protocol-Version', random.one(kind < 6 ? revisions : unknownRevisions)])
  if (random.below(3) === 0) headers.push(['Accept', random.one(accepts)])
  if (random.below(8) === 0) headers.push(['Mcp-Session-Id', headerText(hostileText(random))])
  if (random.below(12) === 0) headers.push(['Last-Event-ID', headerText(hostileText(random))])
  if (random.below(12) === 0) headers.push(['X-MCP-Toolsets', headerText(hostileText(random))])
  if (random.below(20) === 0)
    headers.push(['Origin', random.one(['null', 'https://evil.example', 'http://127.0.0.1', 'x'])])
  const path = random.below(20) === 0 ? '/api/mcp/connect' : '/api/mcp'
  const method = random.below(30) === 0 ? random.one(['GET', 'DELETE', 'PUT', 'OPTIONS']) : 'POST'
  return { method, target: path + random.pick(queries), headers, body: bodyFor(message, random, random.below(3)) }
}

export const mcp = (stage: Stage, random: Random): HostileRequest => exchange('mcp', 'mcp', mcpSent(stage, random))
