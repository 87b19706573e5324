// A caller over REST. Every answer of every test is held against what the operation declares: a success by its output
// schema, a refusal by the one shape of errors and by the codes that the operation is described with.

import { Agent, request } from 'undici'
import { expect, inject } from 'vitest'
import * as z from 'zod'
import { operations } from '../../src/operations/index.ts'
import { codesOf } from '../http/openapi/support.ts'

export type RestAnswer = {
  status: number
  headers: Pick<Headers, 'get' | 'has'>
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies that were checked by their schema.
  body: any
}

export const ErrorAnswer = z.strictObject({
  error: z.strictObject({
    code: z.string().regex(/^[a-z_]+$/),
    message: z.string().min(1),
    param: z.string().optional(),
    details: z.unknown().optional(),
    hint: z.string().optional(),
    retryable: z.boolean(),
    request_id: z.string(),
  }),
})

const shapes = operations.map((operation) => ({
  operation,
  path: new RegExp(`^${operation.path.replace(/\{\w+\}/g, '[^/]+')}$`),
}))

// Of its own, for `request`, which makes no web streams as `fetch` does. The files of a worker share its connections.
// It closes idle ones long before the server does: on a busy machine a request may meet one that is being closed.
const dispatcher = new Agent({ keepAliveTimeout: 1_000 })

/** `send('POST', '/check-ins', { … })` below /api/v1, as JSON. A body of type string is sent as it is. */
export function rest(key: string | undefined, apiUrl = inject('apiUrl')) {
  return async function send(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<RestAnswer> {
    const response = await request(`${apiUrl}/api/v1${path}`, {
      dispatcher,
      method: method as 'GET',
      headers: {
        ...(key !== undefined && { Authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.body.text()
    const answer = {
      status: response.statusCode,
      headers: readable(response.headers),
      body: text === '' ? undefined : JSON.parse(text),
    }
    holdAgainstSchema(method, path, answer)
    return answer
  }
}

/** Status, code and field of a refusal. */
export const problemOf = ({ status, body }: Pick<RestAnswer, 'status' | 'body'>): [number, string, string] => [
  status,
  body.error?.code,
  body.error?.param,
]

/** The problem of a field that fails validation. */
export const invalid = (param: string) => [422, 'validation_failed', param]

function readable(headers: Record<string, string | string[] | undefined>): RestAnswer['headers'] {
  const headerOf = (name: string) => headers[name.toLowerCase()]
  return {
    get: (name) => headerOf(name)?.toString() ?? null,
    has: (name) => headerOf(name) !== undefined,
  }
}

function holdAgainstSchema(method: string, path: string, { status, headers, body }: RestAnswer): void {
  expect(headers.get('x-request-id')).toBeTruthy()
  const found = shapes.find((s) => s.operation.method === method && s.path.test(path.split('?', 1)[0] as string))
  if (status >= 400) {
    const { code, request_id } = ErrorAnswer.parse(body).error
    expect(request_id).toBe(headers.get('x-request-id'))
    if (found) expect(codesOf(found.operation).get(status), `${found.operation.name}: ${code}`).toContain(code)
    return
  }
  if (status !== 304) found?.operation.output.parse(body)
}
