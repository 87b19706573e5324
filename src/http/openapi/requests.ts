// The request of an operation in OpenAPI: path, query and header parameters and the body, as rest.ts reads them. Example values are
// those of a recorded request.

import * as z from 'zod'
import type { ZodOpenApiOperationObject, ZodOpenApiRequestBodyObject } from 'zod-openapi'
import { IdempotencyKeySchema } from '../../gateway/calls.ts'
import { isRead, type Operation, pathParameters } from '../../operation.ts'
import { maximumTags } from '../../operations/fields.ts'
import { type Example, named, successesOf } from './examples.ts'

type Fields = Record<string, z.core.$ZodType>
type Request = Pick<ZodOpenApiOperationObject, 'requestParams' | 'parameters' | 'requestBody'>

// No example values for the headers: Swagger UI would send them.
const idempotencyKey = IdempotencyKeySchema.optional().meta({
  description: IdempotencyKeySchema.description,
  param: { id: 'IdempotencyKey', in: 'header', name: 'Idempotency-Key' },
})
const tag = '(W/)?"[0-9]{1,9}"'
const ifMatch = z
  .string()
  .regex(new RegExp(`^([*]|${tag}( *, *${tag}){0,${maximumTags - 1}})$`))
  .optional()
  .describe(
    `The ETag of a read, or a list of up to ${maximumTags}: the change is made only if the object still has one of them, else 412 version_mismatch.`,
  )
  .meta({ param: { id: 'IfMatch', in: 'header', name: 'If-Match' } })

export function requestOf(operation: Operation): Request {
  const { path, query, body } = locationsOf(operation)
  const [example] = successesOf(operation)
  const headers = [...(isRead(operation) ? [] : [idempotencyKey]), ...(takesVersion(operation) ? [ifMatch] : [])]
  return {
    requestParams: { path: z.object(withExamples(path, example)), query: z.object(withExamples(query, example)) },
    ...(headers.length > 0 && { parameters: headers }),
    ...(body !== undefined && { requestBody: bodyOf(operation, body) }),
  }
}

export const takesBody = (operation: Operation): boolean => locationsOf(operation).body !== undefined

export const takesVersion = ({ input }: Operation): boolean => 'if_version' in input.shape

/** Where each input is sent: in the path, in the query of a read, else in the body; the body of a PATCH is its `changes`. */
function locationsOf(operation: Operation): { path: Fields; query: Fields; body?: z.ZodType } {
  const { shape } = operation.input
  const inPath = pathParameters(operation)
  const path = Object.fromEntries(inPath.map((name) => [name, shape[name] as z.core.$ZodType]))
  const rest = Object.fromEntries(Object.entries(shape).filter(([name]) => !inPath.includes(name)))
  if (isRead(operation)) return { path, query: rest }
  if (operation.method === 'PATCH') return { path, query: {}, body: shape.changes as z.ZodType }
  if (Object.keys(rest).length === 0) return { path, query: {} }
  // The metadata of the whole input applies to the body: none of it concerns the path.
  return { path, query: {}, body: z.strictObject(rest).meta(operation.input.meta() ?? {}) }
}

function withExamples(fields: Fields, example: Example | undefined): Fields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]) => {
      const value = example?.input[name]
      return [name, value === undefined ? field : (field as z.ZodType).meta({ param: { example: value } })]
    }),
  )
}

function bodyOf(operation: Operation, schema: z.ZodType): ZodOpenApiRequestBodyObject {
  const fields = Object.keys((schema as z.ZodObject).shape)
  const sent = ({ input }: Example) =>
    operation.method === 'PATCH'
      ? input.changes
      : Object.fromEntries(Object.entries(input).filter(([name]) => fields.includes(name)))
  return {
    required: !schema.safeParse({}).success || 'anyOf' in (schema.meta() ?? {}),
    content: { 'application/json': { schema, examples: named(successesOf(operation), sent) } },
  }
}
