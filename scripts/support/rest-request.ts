// The REST request that means the same as a tool call: what stands in the path goes there, the rest is query or body.

import { operations } from '../../src/operations/index.ts'
import { isRead, pathParameters } from '../../src/operations/operation.ts'

type Arguments = Record<string, unknown>

export function restRequestOf(
  name: string,
  { idempotency_key, if_version, ...args }: Arguments,
): { method: string; path: string; body?: Arguments; headers: Record<string, string> } {
  const operation = operations.find((o) => o.name === name)
  if (!operation) throw new Error(`there is no operation ${name}`)

  const inPath = pathParameters(operation)
  const path = inPath.reduce((text, p) => text.replace(`{${p}}`, encodeURIComponent(String(args[p]))), operation.path)
  const rest = Object.fromEntries(Object.entries(args).filter(([field]) => !inPath.includes(field)))
  const headers: Record<string, string> = {
    ...(idempotency_key !== undefined && { 'Idempotency-Key': String(idempotency_key) }),
    ...(if_version !== undefined && { 'If-Match': `"${if_version}"` }),
  }
  // Over REST the changes are the body, with what stands beside them.
  if (operation.method === 'PATCH') {
    const { changes, ...beside } = rest
    return { method: 'PATCH', path, body: { ...(changes as Arguments), ...beside }, headers }
  }
  if (!isRead(operation)) return { method: operation.method, path, body: rest, headers }

  const query = new URLSearchParams(
    Object.fromEntries(Object.entries(rest).map(([field, value]) => [field, String(value)])),
  )
  return { method: operation.method, path: query.size === 0 ? path : `${path}?${query}`, headers }
}
