// The objects that operations answer, as named components of the OpenAPI document: `Event`, `TicketType`, … An object is identified
// by its constant `object`, so there is no list to maintain.

import * as z from 'zod'
import type { Operation } from '../../operation.ts'

/** The object that an operation answers, one or a page of them. */
export function answeredObject({ output }: Operation): z.core.$ZodType {
  const { data } = output.shape
  return data instanceof z.ZodArray ? data.element : data
}

/** The constant `object` of a schema: `ticket_type`. */
export function kindOf(schema: z.core.$ZodType): string | undefined {
  const constant = schema instanceof z.ZodObject ? schema.shape.object : undefined
  return constant instanceof z.ZodLiteral ? String(constant.value) : undefined
}

/**
 * A name goes to the schema that an operation answers, else to the first of its kind. Another form of the object, such as the
 * attendee inside a check-in, is inlined.
 */
export function namedObjects(operations: readonly Operation[]): Record<string, z.core.$ZodType> {
  const answered = operations.map(answeredObject)
  const schemas = new Map<string, z.core.$ZodType>()
  for (const schema of [...answered, ...answered.flatMap(partsOf)]) {
    const kind = kindOf(schema)
    if (kind !== undefined && !schemas.has(pascal(kind))) schemas.set(pascal(kind), schema)
  }
  return Object.fromEntries(schemas)
}

function partsOf(schema: z.core.$ZodType): z.core.$ZodType[] {
  if (schema instanceof z.ZodArray) return [schema.element, ...partsOf(schema.element)]
  if (schema instanceof z.ZodNullable || schema instanceof z.ZodOptional) {
    return [schema.def.innerType, ...partsOf(schema.def.innerType)]
  }
  if (!(schema instanceof z.ZodObject)) return []
  const fields: z.core.$ZodType[] = Object.values(schema.shape)
  return fields.flatMap((field) => [field, ...partsOf(field)])
}

const pascal = (kind: string): string => kind.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase())
