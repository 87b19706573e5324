// Holds an answer against what is promised of every answer: no fault of the server, the documented shape of its interface, nothing of what
// is inside. A pure function.

import { gunzipSync } from 'node:zlib'
import * as z from 'zod'
import { type ErrorCode, errors } from '../../../src/operations/error-codes.ts'
import { codesOf } from '../../http/openapi/support.ts'
import type { Face, HostileRequest } from './request.ts'
import { smuggledMark } from './sockets.ts'
import type { Answer, Outcome } from './wire.ts'

const Refusal = z.strictObject({
  error: z.strictObject({
    code: z.string(),
    message: z.string().min(1).max(5_000),
    param: z.string().max(1_000).optional(),
    details: z.unknown().optional(),
    hint: z.string().min(1).max(2_000).optional(),
    retryable: z.boolean(),
    request_id: z.string().min(1).max(200),
  }),
})
const RpcId = z.union([z.string(), z.number(), z.null()])
const RpcError = z.object({
  jsonrpc: z.literal('2.0'),
  id: RpcId.optional(),
  error: z
    .object({ code: z.int(), message: z.string().min(1).max(5_000), data: z.unknown().optional() })
    .refine((error) => JSON.stringify(error).length <= 8_192),
})
const RpcResult = z.object({ jsonrpc: z.literal('2.0'), id: RpcId, result: z.looseObject({}) })
const ToolError = z.looseObject({
  isError: z.literal(true),
  content: z.tuple([z.object({ type: z.literal('text'), text: z.string() })]),
})
const OAuthError = z.strictObject({
  error: z.string().regex(/^[a-z_]+$/),
  error_description: z.string().max(2_000).optional(),
  iss: z.string().optional(),
  state: z.string().optional(),
})

// Of Postgres, PostgREST, Node and the code itself; quotation marks as JSON has them, or JSON in JSON. Nothing of this is sent by values.ts.
const inside =
  /PGRST\d|SQLSTATE|(?:relation|column|constraint|type|function) \\*"|plpgsql|pg_catalog|syntax error at|invalid input syntax|invalid byte sequence|unsupported Unicode|violates |duplicate key value|node_modules|file:\/\/\/|\.[cm]?[jt]s:\d+|\bat (?:async )?[\w.<>]+ \(|Cannot (?:read|set) propert|is not a function|is not defined|ECONN|ENOENT|EPIPE|ZodError|TypeError|RangeError|SyntaxError|Unexpected token|devDependencies|\/supabase\//

const maximumRefusal = 64 * 1024
// A page of a list has a mebibyte; the documentation and the reader of codes are larger.
const maximumAnswer = 4 * 1024 * 1024

// Refused before anything knows what was asked for.
const ofHttp = new Set([
  'bad_request',
  'headers_too_large',
  'request_timeout',
  'expectation_failed',
  'payload_too_large',
  'unsupported_media_type',
  'malformed_json',
])

/** @returns what is wrong, in a sentence each; nothing for an answer that is right. */
export function judge(request: HostileRequest, { answers, end, garbage }: Outcome): string[] {
  const wrong: string[] = []
  const [least, most] = request.answers
  if (garbage !== undefined) wrong.push(`it is no HTTP: ${JSON.stringify(garbage)}`)
  else if (end === 'hang') wrong.push('nothing came in time, or too much')
  else if (end === 'refused') wrong.push('nobody listens any more')
  else if (answers.length < least) wrong.push(`${answers.length} answers came, and the connection was ${end}`)
  if (answers.length > most) wrong.push(`${answers.length} answers came to ${most} requests`)
  for (const answer of answers) wrong.push(...judgeAnswer(request, answer).map((rule) => `${answer.status}: ${rule}`))
  return wrong
}

function judgeAnswer(request: HostileRequest, { status, headers, body, isWhole }: Answer): string[] {
  const wrong: string[] = []
  const header = (name: string) => headers.get(name)?.join() ?? ''
  const text = decoded(body, header('content-encoding')).toString()
  const all = [...headers].map(([name, values]) => `${name}: ${values}`).join('\n')
  if (status >= 500) wrong.push(`a fault of the server: ${text.slice(0, 300)}`)
  if (!isWhole) wrong.push('the answer was cut off')
  if (headers.has('x-injected')) wrong.push('a header of the sender')
  if (header('x-request-id').includes(smuggledMark)) wrong.push('what was smuggled was answered')
  // JSON-RPC answers an id as it was sent; what stands beside it is bounded below. A page shows its form again.
  if (body.length > (status >= 400 && !['mcp', 'page'].includes(request.face) ? maximumRefusal : maximumAnswer))
    wrong.push(`${body.length} bytes`)
  if (/html/.test(header('content-type')) && text.includes('<script>alert')) wrong.push('markup of the sender')
  // The guides of the documentation name what others would call a leak.
  const leak = /^public/.test(header('cache-control')) ? null : (inside.exec(all) ?? inside.exec(text))
  if (leak !== null) wrong.push(`it tells of what is inside: ${around(text, leak)}`)
  if (request.isHead || body.length === 0) return wrong
  const type = header('content-type')
  if (/json/.test(type)) wrong.push(...judgeJson(request, status, text, header('x-request-id')))
  else if (status >= 400) wrong.push(...judgeText(request.face, status, type, text))
  return wrong
}

function decoded(body: Buffer, encoding: string): Buffer {
  try {
    return encoding === 'gzip' ? gunzipSync(body) : body
  } catch {
    return body
  }
}

const around = (text: string, { index, 0: found }: RegExpExecArray): string =>
  text.includes(found) ? JSON.stringify(text.slice(Math.max(0, index - 80), index + 120)) : JSON.stringify(found)

function judgeJson(request: HostileRequest, status: number, text: string, requestId: string): string[] {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    return [`it says that it is JSON: ${text.slice(0, 200)}`]
  }
  const { face } = request
  const mayBeRpc = face === 'mcp' || face === 'any'
  if (mayBeRpc && isRpc(body)) return [body].flat().flatMap((message) => judgeMessage(message))
  if (status < 400) return judgeSuccess(request, status, body)
  if ((face === 'oauth' || face === 'any') && OAuthError.safeParse(body).success) return []
  const refusal = Refusal.safeParse(body)
  if (!refusal.success) return [`no documented shape: ${text.slice(0, 300)}`]
  const { code, request_id } = refusal.data.error
  if (requestId !== '' && request_id !== requestId)
    return [`request_id ${request_id} is not that of the header, ${requestId}`]
  return judgeCode(request, status, code)
}

function judgeCode({ operation }: HostileRequest, status: number, code: string): string[] {
  const documented = errors[code as ErrorCode]?.status as number | undefined
  // A key that was revoked is refused by 401; what would change one, by 409.
  if (documented === undefined || (documented !== status && code !== 'api_key_revoked'))
    return [`${code} is no documented code of it`]
  if (operation === undefined || ofHttp.has(code) || codesOf(operation).get(status)?.includes(code)) return []
  return [`${code} is no documented code of ${operation.name}`]
}

function judgeSuccess({ operation, face }: HostileRequest, status: number, body: unknown): string[] {
  if (face !== 'rest' || operation === undefined || status >= 300) return []
  const held = operation.output.safeParse(body)
  return held.success
    ? []
    : [
        `no answer of ${operation.name}: ${held.error.issues
          .map(({ path, message }) => `${path.join('.')} ${message}`)
          .join('; ')
          .slice(0, 300)}`,
      ]
}

const isRpc = (body: unknown): boolean =>
  [body].flat().some((message) => typeof message === 'object' && message !== null && 'jsonrpc' in message)

function judgeMessage(message: unknown): string[] {
  if (RpcError.safeParse(message).success) return []
  const answer = RpcResult.safeParse(message)
  if (!answer.success) return [`no JSON-RPC: ${JSON.stringify(message).slice(0, 300)}`]
  if (answer.data.result.isError !== true) return []
  const refused = ToolError.safeParse(answer.data.result)
  if (!refused.success) return [`no error of a tool: ${JSON.stringify(message).slice(0, 300)}`]
  const [{ text }] = refused.data.content
  const { success, data } = Refusal.safeParse(JSON.parse(text))
  if (!success) return [`no documented shape: ${text.slice(0, 300)}`]
  const status = errors[data.error.code as ErrorCode]?.status as number | undefined
  if (status === undefined) return [`${data.error.code} is no documented code`]
  return status >= 500 ? [`a fault of the server: ${text.slice(0, 300)}`] : []
}

function judgeText(face: Face, status: number, type: string, text: string): string[] {
  if (face === 'rest' || face === 'mcp') return [`${type} in place of JSON`]
  if (/^text\/html/.test(type)) return /^<!DOCTYPE html>/i.test(text) && /<h1/.test(text) ? [] : ['no page of Usher’s']
  return status === 405 && /^text\/plain/.test(type) ? [] : [`${type} in place of a page`]
}
