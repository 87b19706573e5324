// Recognises the two requests that nearly all MCP traffic consists of, in their plain form, and writes their answers as the SDK
// does. The SDK builds a server and a transport for each request, which costs more than the rest of a call. Whatever is unusual,
// invalid or of another method is left to it.

import type { IncomingHttpHeaders } from 'node:http'
import {
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  classifyInboundRequest,
  type InputRequiredResult,
  PROTOCOL_VERSION_META_KEY,
  SERVER_INFO_META_KEY,
  SUPPORTED_PROTOCOL_VERSIONS,
} from '@modelcontextprotocol/server'
import * as z from 'zod'

const modernRevision = '2026-07-28'

/** Legacy requests do not name their revision in the body; modern ones do, and have other results. */
export type Era = 'legacy' | 'modern'
export type PlainRequest = { era: Era; id: string | number } & (
  | { method: 'tools/list' }
  | { method: 'tools/call'; name: string; sent: Record<string, unknown> }
)

const id = z.union([z.string(), z.int()])
const progressToken = id.optional()
const legacyMeta = z.strictObject({ progressToken }).optional()
const modernMeta = z.strictObject({
  progressToken,
  [PROTOCOL_VERSION_META_KEY]: z.literal(modernRevision),
  [CLIENT_INFO_META_KEY]: z.unknown(),
  [CLIENT_CAPABILITIES_META_KEY]: z.unknown(),
})
const requestWith = (_meta: z.ZodType, params: <T extends z.ZodType>(schema: T) => z.ZodType) =>
  z.discriminatedUnion('method', [
    z.strictObject({
      jsonrpc: z.literal('2.0'),
      id,
      method: z.literal('tools/list'),
      params: params(z.strictObject({ _meta })),
    }),
    z.strictObject({
      jsonrpc: z.literal('2.0'),
      id,
      method: z.literal('tools/call'),
      // Checked by the operation.
      params: z.strictObject({ _meta, name: z.string(), arguments: z.record(z.string(), z.unknown()).optional() }),
    }),
  ])
const schemas = {
  legacy: requestWith(legacyMeta, (schema) => schema.optional()),
  modern: requestWith(modernMeta, (schema) => schema),
}

type Message = { id: string | number; method: string; params?: { name: string; arguments?: Record<string, unknown> } }

/** @returns undefined for what the SDK has to answer. */
export function plainRequest(headers: IncomingHttpHeaders, body: unknown): PlainRequest | undefined {
  const era = headers['mcp-protocol-version'] === modernRevision ? 'modern' : 'legacy'
  if (!schemas[era].safeParse(body).success) return undefined
  const { id, method, params } = body as Message
  if (!(era === 'modern' ? isModern : isLegacy)(headers, body as Message)) return undefined
  if (method === 'tools/list') return { era, id, method }
  return { era, id, method: 'tools/call', name: params?.name ?? '', sent: params?.arguments ?? {} }
}

function isLegacy(headers: IncomingHttpHeaders): boolean {
  const revision = headers['mcp-protocol-version'] ?? SUPPORTED_PROTOCOL_VERSIONS[0]
  const isNamed = headers['mcp-method'] !== undefined || headers['mcp-name'] !== undefined
  return !isNamed && SUPPORTED_PROTOCOL_VERSIONS.includes(String(revision))
}

/** The headers repeat what the body says. */
function isModern(headers: IncomingHttpHeaders, message: Message): boolean {
  const [mcpMethodHeader, mcpNameHeader] = [headers['mcp-method'], headers['mcp-name']] as (string | undefined)[]
  if (mcpMethodHeader !== message.method || mcpNameHeader !== message.params?.name) return false
  const given = { protocolVersionHeader: modernRevision, mcpMethodHeader, ...(mcpNameHeader && { mcpNameHeader }) }
  const { kind } = classifyInboundRequest({ httpMethod: 'POST', body: message, ...given })
  return kind === 'modern'
}

/** The end of every answer. */
export const tailOf = (id: string | number): string => `,"jsonrpc":"2.0","id":${JSON.stringify(id)}}`

export function answerOf(
  { era, id }: PlainRequest,
  result: CallToolResult | InputRequiredResult,
  serverInfo: object,
): string {
  const complete =
    era === 'legacy'
      ? result
      : { ...result, resultType: result.resultType ?? 'complete', _meta: { [SERVER_INFO_META_KEY]: serverInfo } }
  return `{"result":${JSON.stringify(complete)}${tailOf(id)}`
}
