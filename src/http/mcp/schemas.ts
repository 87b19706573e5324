// JSON Schemas as `tools/list` shows them: what a model needs to choose a tool and to fill it in. Patterns, bounds and formats are
// left to the validation and to the OpenAPI document: a schema here allows whatever the operation accepts, and more; but null, which some
// hosts cannot read in the list of types that it takes.

import type { Tool } from '@modelcontextprotocol/server'
import * as z from 'zod'

type Value = string | number | boolean | null

type Schema = {
  type?: string | string[]
  const?: Value
  enum?: Value[]
  description?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  anyOf?: Schema[]
}

// Says no more than the name of the field does.
const formulaic =
  /^(Identifier of the [a-z -]+(, [a-z ]+)?|(Name|Company) of the [a-z ]+|Only [a-z -]+ with this [a-z ]+( of yours)?|Only this type|Items on a page|Columns, .*|next_cursor .*|Any text .*|Your own (identifier|flat object), .*|Only if it still has this version; .*|true: (change nothing|payment_due_at may be over), .*|Kept of what was cancelled, .*|RFC 3339 with offset|As in register_attendee|E-mail address of the attendee; .*|The offer is sent to it|Only entries about .*|Only this e-mail address; .*|Fields left out are unchanged; .*|Only objects created or changed at or after .*)\.$/

// A list of values longer than this is shown once in a list of tools.
const longEnum = 4

/**
 * The members of a field are named only: what they mean, the description of the tool or of the field says.
 *
 * @param shown the tools before, and their long enums.
 */
export function toolInput(input: z.ZodObject, shown = new Set<string>(), tool = ''): Tool['inputSchema'] {
  const { properties = {}, required } = z.toJSONSchema(input, { io: 'input' }) as Schema
  shown.add(tool)
  return {
    type: 'object',
    properties: mapValues(properties, (property) => ({ ...namesAndTypes(property, shown), ...described(property) })),
    ...(required !== undefined && { required }),
  }
}

/** The instructions of the server say how times are written, and what changes leave out. */
function described({ description = '' }: Schema): Schema {
  const said = description.replace(
    /: (RFC 3339 with offset|plain text, .*(?=\.))| Fields left out are unchanged; null clears\./,
    '',
  )
  return said === '' || formulaic.test(said) ? {} : { description: said }
}

function namesAndTypes(schema: Schema, shown: Set<string>): Schema {
  const form = nonNull(schema)
  const { enum: values = [], required, items } = form
  const like = /^Fields of (\w+)/.exec(schema.description ?? '')?.[1]
  const properties = like !== undefined && shown.has(like) ? undefined : form.properties
  const isNew = values.length <= longEnum || !isKnown(values, shown)
  if (values.length > longEnum) for (const value of values) shown.add(`${value}`)
  return {
    ...typeOf(form),
    ...(values.length > 0 && isNew && { enum: values }),
    ...(properties !== undefined && { properties: mapValues(properties, (member) => namesAndTypes(member, shown)) }),
    ...(required !== undefined && { required }),
    ...(items !== undefined && { items: namesAndTypes(items, shown) }),
  }
}

// All but one at most: webhook_endpoint.test is in one of two lists of types.
const isKnown = (values: Value[], shown: Set<string>) => values.filter((value) => !shown.has(`${value}`)).length <= 1

/** Of a type and null, the type; else the schema itself. */
function nonNull(schema: Schema): Schema {
  const [form, ...others] = (schema.anyOf ?? []).filter(({ type }) => type !== 'null')
  if (form !== undefined && others.length === 0) return form
  const [type, ...otherTypes] = [schema.type ?? []].flat().filter((name) => name !== 'null')
  return type !== undefined && otherTypes.length === 0 ? { ...schema, type } : schema
}

/** The name of the type; none where null or another type is possible. */
function typeOf({ type, const: value }: Schema): Schema {
  const name = type ?? (value === undefined ? undefined : typeof value)
  return name === undefined || Array.isArray(name) ? {} : { type: name }
}

function mapValues<From, To>(record: Record<string, From>, map: (value: From, name: string) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value, name)]))
}
