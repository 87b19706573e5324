// What REST takes as a header is an argument over MCP. Texts and errors are written with argument names; these functions
// translate them for the interface that shows them.

import type { ApiError } from './api-error.ts'
import type { Source } from './tokens.ts'

const headers: Record<string, string> = { idempotency_key: 'Idempotency-Key', if_version: 'If-Match' }
const byHeader = Object.fromEntries(Object.entries(headers).map(([argument, header]) => [header, argument]))

/** The name of `idempotency_key` or `if_version` in an interface. */
export const nameFor = (source: Source, argument: string): string =>
  source === 'api' ? (headers[argument] ?? argument) : argument

/** For Usher's own texts; never for one that contains a caller's names or values. */
export const wordsFor = (source: Source, text: string): string =>
  source === 'api'
    ? text.replace(/\b(idempotency_key|if_version)\b/g, (name) => headers[name] ?? name)
    : text.replace(/\b(Idempotency-Key|If-Match)\b/g, (name) => byHeader[name] ?? name)

/** For errors of the database or of the connection to it. */
export function errorFor(source: Source, error: ApiError): ApiError {
  const { message, param, hint } = error
  return error.with(message, { param: param && nameFor(source, param), hint: hint && wordsFor(source, hint) })
}
