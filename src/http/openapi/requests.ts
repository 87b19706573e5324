// The request of an operation in OpenAPI: path, query and header parameters and the body, as rest.ts reads them. Example values are
// those of a recorded request.

import * as z from 'zod'
import type { ZodOpenApiOperationObject, ZodOpenApiRequestBodyObject } from 'zod-openapi'
import { IdempotencyKeySchema } from '../../gateway/calls.ts'
import { changesOf, maximumTags } from '../../operations/changes.ts'
import { reference } from '../../operations/identifiers.ts'
import { besideChanges, hasVersion, isRead, type Operation, pathParameters } from '../../operations/operation.ts'
import { type Example, named, successesOf } from './examples.ts'

type Fields = Record<string, z.core.$ZodType>
type Body = { name: string; schema: z.ZodType }
type Request = Pick<ZodOpenApiOperationObject, 'requestParams' | 'parameters' | 'requestBody'>

/** Without an example value: Swagger UI would send it. */
const header = (name: string, schema: z.ZodType, description = '') =>
  schema.optional().meta({ description, param: { id: name.replaceAll('-', ''), in: 'header', name } })

const idempotencyKey = header('Idempotency-Key', IdempotencyKeySchema, IdempotencyKeySchema.description)
const tag = '(W[/])?"[0-9]{1,9}(-[A-Za-z0-9_-]{22})?"'
const ifMatch = header(
  'If-Match',
  z.string().regex(new RegExp(`^([*]|${tag}( *, *${tag}){0,${maximumTags - 1}})$`)),
  `The ETag of a read, or a list of up to ${maximumTags}: the change is made only if the object still has one of them, otherwise 412 version_mismatch.`,
)
const ifNoneMatch = header(
  'If-None-Match',
  z.string(),
  'The ETag of an earlier answer, or a list of them: 304 without a body if the answer is still the same.',
)

/** `ticket_type` as the name of a component: `TicketType`. */
export const pascal = (name: string): string =>
  name.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase())

export function requestOf(operation: Operation): Request {
  const { path, query } = parametersOf(operation)
  const body = bodyOf(operation)
  const [example] = successesOf(operation)
  const headers = [
    ...(isRead(operation) ? [] : [idempotencyKey]),
    ...(takesVersion(operation) ? [ifMatch] : []),
    ...(isRead(operation) && hasVersion(operation) ? [ifNoneMatch] : []),
  ]
  return {
    requestParams: { path: z.object(withExamples(path, example)), query: z.object(withExamples(query, example)) },
    ...(headers.length > 0 && { parameters: headers }),
    ...(body !== undefined && { requestBody: requestBodyOf(operation, body.schema) }),
  }
}

/** What stands in a path otherwise than among arguments. */
const inPaths: Fields = {
  order_id: z
    .string()
    .regex(new RegExp(`${z.regexes.guid.source}|${reference.source}`))
    .describe('Identifier of the order, or its reference.'),
}

const takesVersion = ({ input }: Operation): boolean => 'if_version' in input.shape

/** Inputs in the path; the others are the query of a read, or else the body. */
function parametersOf(operation: Operation): { path: Fields; query: Fields; rest: Fields } {
  const inPath = pathParameters(operation)
  const fields = Object.entries(operation.input.shape) as [string, z.core.$ZodType][]
  const path = Object.fromEntries(
    fields.filter(([name]) => inPath.includes(name)).map(([name, field]) => [name, inPaths[name] ?? field]),
  )
  const rest = Object.fromEntries(fields.filter(([name]) => !inPath.includes(name)))
  return { path, query: isRead(operation) ? rest : {}, rest }
}

const bodies = new WeakMap<Operation, Body | undefined>()

/** The body and the name of its component; of a PATCH its `changes`, with what stands beside them. The same each time: a component is known by its schema. */
export function bodyOf(operation: Operation): Body | undefined {
  if (!bodies.has(operation)) bodies.set(operation, makeBody(operation))
  return bodies.get(operation)
}

function makeBody(operation: Operation): Body | undefined {
  if (isRead(operation)) return undefined
  const name = operation.body?.name ?? `${pascal(operation.name)}Request`
  if (operation.body !== undefined) return { name, schema: oneOfForms(Object.values(operation.body.forms)) }
  if (operation.method === 'PATCH') return { name, schema: changesWithOthers(operation) }
  const { rest } = parametersOf(operation)
  return Object.keys(rest).length === 0 ? undefined : { name, schema: z.strictObject(rest) }
}

function changesWithOthers(operation: Operation): z.ZodType {
  const { shape } = operation.input
  const changes = shape.changes as z.ZodObject
  const beside = besideChanges(operation).map((name) => [name, shape[name]])
  return beside.length === 0
    ? changes
    : changesOf({ ...changes.shape, ...Object.fromEntries(beside) }).describe(changes.description ?? '')
}

function oneOfForms(forms: z.ZodObject[]): z.ZodType {
  const [only, ...others] = forms
  return only !== undefined && others.length === 0 ? only : z.xor(forms)
}

function withExamples(fields: Fields, example: Example | undefined): Fields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]) => {
      const value = example?.input[name]
      const param = { ...(isListField(field) && { explode: false }), ...(value !== undefined && { example: value }) }
      return [name, Object.keys(param).length === 0 ? field : (field as z.ZodType).meta({ param })]
    }),
  )
}

/** A list in a query is its items with commas between. */
const isListField = (field: z.core.$ZodType): boolean =>
  field instanceof z.ZodOptional ? isListField(field.unwrap()) : field instanceof z.ZodArray

function requestBodyOf(operation: Operation, schema: z.ZodType): ZodOpenApiRequestBodyObject {
  const { rest } = parametersOf(operation)
  const sent = ({ input }: Example) =>
    operation.method === 'PATCH'
      ? { ...(input.changes as object), ...pick(input, besideChanges(operation)) }
      : pick(input, Object.keys(rest))
  return {
    required: !schema.safeParse({}).success,
    content: { 'application/json': { schema, examples: named(successesOf(operation), sent) } },
  }
}

const pick = (input: Record<string, unknown>, names: string[]) =>
  Object.fromEntries(Object.entries(input).filter(([name]) => names.includes(name)))
