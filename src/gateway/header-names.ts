// What REST takes as a header is an argument over MCP. Texts and refusals are written with the names of the arguments, and this
// puts them in the words of the interface that shows them.

import { ApiError } from './api-error.ts'
import type { Source } from './tokens.ts'

const headers: Record<string, string> = { idempotency_key: 'Idempotency-Key', if_version: 'If-Match' }
const byHeader = Object.fromEntries(Object.entries(headers).map(([argument, header]) => [header, argument]))

/** `idempotency_key` or `if_version`, as a caller knows it. */
export const nameFor = (source: Source, argument: string): string =>
  source === 'api' ? (headers[argument] ?? argument) : argument

/** A text of ours; never one that holds names or values of a caller. */
export const wordsFor = (source: Source, text: string): string =>
  source === 'api'
    ? text.replace(/\b(idempotency_key|if_version)\b/g, (name) => headers[name] ?? name)
    : text.replace(/\b(Idempotency-Key|If-Match)\b/g, (name) => byHeader[name] ?? name)

/** A refusal of the database, or of the way to it. */
export function refusalFor(source: Source, refusal: ApiError): ApiError {
  const { status, code, message, param, hint, cause } = refusal
  return new ApiError(status, code, message, {
    ...refusal,
    param: param && nameFor(source, param),
    hint: hint && wordsFor(source, hint),
    cause,
  })
}
