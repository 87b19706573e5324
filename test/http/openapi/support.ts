// The OpenAPI document as a reader of it sees it: references followed, operations by their method and path.

import * as z from 'zod'
import { argumentsOf as inputOf } from '../../../src/http/mcp/tools.ts'
import { describeApi, type OpenApiDocument } from '../../../src/http/openapi/document.ts'
import { operations } from '../../../src/operations/index.ts'
import type { Operation } from '../../../src/operations/operation.ts'

type Json = Record<string, unknown>
export type Schema = {
  properties?: Record<string, unknown>
  required?: string[]
  additionalProperties?: unknown
} & Json
type Content = Record<string, { schema?: Schema; examples?: Record<string, { value: unknown }> }>
/** A 304 has no content. */
type Answer = { description: string; headers: Json; content?: Content }

export type DescribedOperation = {
  operationId: string
  summary: string
  description: string
  tags: string[]
  'x-required-scope': string | null
  parameters?: { name: string; in: string; required?: boolean; schema: Schema; example?: unknown }[]
  requestBody?: { required: boolean; content: Content }
  responses: Record<string, Answer>
}

/** `POST /events` → its description, with every reference replaced by what it refers to. */
export function describedOperations(document: OpenApiDocument): Map<string, DescribedOperation> {
  const described = new Map<string, DescribedOperation>()
  for (const [path, methods] of Object.entries(resolve(document.paths ?? {}, document))) {
    for (const [method, operation] of Object.entries(methods as Json)) {
      described.set(`${method.toUpperCase()} ${path}`, operation as DescribedOperation)
    }
  }
  return described
}

export function resolve<T>(value: T, document: OpenApiDocument): T {
  if (Array.isArray(value)) return value.map((item) => resolve(item, document)) as T
  if (typeof value !== 'object' || value === null) return value
  const { $ref } = value as { $ref?: string }
  if ($ref !== undefined) return resolve(referred($ref, document), document) as T
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolve(item, document)])) as T
}

function referred($ref: string, document: OpenApiDocument): unknown {
  const [root, ...steps] = $ref.split('/')
  const found = steps.reduce<unknown>((value, step) => (value as Json | undefined)?.[step], document)
  if (root !== '#' || found === undefined) throw new Error(`${$ref} refers to nothing`)
  return found
}

/** The arguments of a tool as they are validated: `tools/list` shows them without what only the validation needs. */
export function argumentsOf(operation: Operation) {
  return z.toJSONSchema(inputOf(operation), { io: 'input' })
}

let document: OpenApiDocument | undefined
const codesByOperation = new Map<string, Map<number, string[]>>()

/** The codes of its errors, by status. */
export function codesOf({ name, method, path }: Operation): Map<number, string[]> {
  const known = codesByOperation.get(name)
  if (known !== undefined) return known
  // To follow the references of the whole document takes as long as many requests.
  document ??= describeApi(operations)
  const { responses = {} } = (document.paths?.[path]?.[method.toLowerCase() as 'get'] ?? {}) as {
    responses?: Json
  }
  const errors = Object.entries(responses).filter(([status]) => Number(status) >= 400)
  const codes = new Map(
    errors.map(([status, answer]) => [Number(status), codesIn(resolve(answer as Answer, document as OpenApiDocument))]),
  )
  codesByOperation.set(name, codes)
  return codes
}

/** The codes that an error narrows `ApiError` to. */
export function codesIn({ content }: Answer): string[] {
  const [, narrowed] = (content?.['application/json']?.schema?.allOf ?? []) as NarrowedError[]
  return narrowed?.properties.error.properties.code.enum ?? []
}

type NarrowedError = { properties: { error: { properties: { code: { enum: string[] } } } } }
