// The objects of the interface, as named components of the OpenAPI document: `Event`, `CreateEventRequest`, `EventVenue`, … Names are
// made from what is there, so there is no list to maintain.

import * as z from 'zod'
import { isRead, type Operation } from '../../operations/operation.ts'
import { bodyOf, pascal } from './requests.ts'

type Schema = z.core.$ZodType
type Names = Map<Schema, string>

/** The object that an operation answers, one or a page of them. */
export function answeredObject({ output }: Operation): Schema {
  const { data } = output.shape
  return data instanceof z.ZodArray ? data.element : data
}

/** The constant `object` of a schema: `ticket_type`. */
export function kindOf(schema: Schema): string | undefined {
  const constant = schema instanceof z.ZodObject ? schema.shape.object : undefined
  return constant instanceof z.ZodLiteral ? String(constant.value) : undefined
}

/**
 * An object has the name of its kind. Another form of the same kind, or an object without one, is named after where it is:
 * `CheckInAttendee`, `EventVenue`; the answer of an operation after that: `DeleteWebhookEndpointResult`.
 */
export function namedObjects(operations: readonly Operation[]): Record<string, Schema> {
  const names: Names = new Map()
  for (const operation of operations) {
    const object = answeredObject(operation)
    name(names, object, [pascal(kindOf(object) ?? operation.name), `${pascal(operation.name)}Result`])
  }
  for (const operation of operations) {
    nameParts(names, answeredObject(operation), (owner, field, part) => [
      pascal(kindOf(part) ?? `${owner}_${field}`),
      `${owner}${pascal(field)}`,
      `${owner}${pascal(field)}${pascal(kindOf(part) ?? '')}`,
    ])
    const { data: _, ...beside } = operation.output.shape
    nameParts(names, z.object(beside), (_, field) => [pascal(field)])
  }
  for (const operation of operations.filter((o) => !isRead(o))) {
    const body = bodyOf(operation)
    if (body === undefined) continue
    const { forms, parts } = operation.body ?? {}
    for (const [form, schema] of Object.entries({ ...forms, ...parts })) name(names, schema, [form])
    name(names, body.schema, [body.name])
    nameParts(names, body.schema, (_, field) => [`${pascal(field)}Input`, `${pascal(operation.name)}${pascal(field)}`])
  }
  return Object.fromEntries([...names].map(([schema, name]) => [name, schema]))
}

function name(names: Names, schema: Schema, candidates: string[]): void {
  if (names.has(schema)) return
  const taken = [...names.values()]
  const free = candidates.find((candidate) => !taken.includes(candidate))
  if (free !== undefined) names.set(schema, free)
}

/** Names the objects inside a schema, the outer ones first. */
function nameParts(
  names: Names,
  schema: Schema,
  candidates: (owner: string, field: string, part: Schema) => string[],
): void {
  if (schema instanceof z.ZodUnion) {
    for (const option of schema.options) nameParts(names, option as Schema, candidates)
  }
  if (!(schema instanceof z.ZodObject)) return
  const owner = names.get(schema) ?? ''
  for (const [field, value] of Object.entries(schema.shape)) {
    const { inner, many } = unwrap(value as Schema)
    for (const part of inner instanceof z.ZodUnion ? (inner.options as Schema[]) : [inner]) {
      if (!(part instanceof z.ZodObject)) continue
      name(names, part, candidates(owner, many ? singular(field) : field, part))
      nameParts(names, part, candidates)
    }
  }
}

const singular = (field: string): string => field.replace(/ies$/, 'y').replace(/s$/, '')

function unwrap(schema: Schema, many = false): { inner: Schema; many: boolean } {
  if (schema instanceof z.ZodArray) return unwrap(schema.element, true)
  if (schema instanceof z.ZodRecord) return unwrap(schema.valueType as Schema, true)
  if (schema instanceof z.ZodNullable || schema instanceof z.ZodOptional || schema instanceof z.ZodNonOptional) {
    return unwrap(schema.def.innerType, many)
  }
  return { inner: schema, many }
}
