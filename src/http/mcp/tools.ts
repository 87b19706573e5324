// Tools as `tools/list` shows them: what a model needs to choose one and to fill it in. Patterns, bounds and formats are left to the
// validation and to the OpenAPI document: a schema here allows whatever the operation accepts, and more; but null, which some hosts cannot
// read in the list of types that it takes.

import type { Tool } from '@modelcontextprotocol/server'
import * as z from 'zod'
import { IdempotencyKeySchema } from '../../gateway/calls.ts'
import { dryRunFirst, ifVersion, readAgain } from '../../operations/changes.ts'
import { forSync, itemsOnAPage, nextPage } from '../../operations/lists.ts'
import { isList, isRead, type Operation } from '../../operations/operation.ts'
import { deprecationNotice } from '../deprecation.ts'
import { kindsIn, listedName, takesEventBeside } from './names.ts'
import { oncePerOperation } from './once.ts'
import type { Ways } from './selection.ts'

// What the instructions of the server say for all tools.
const saidOnce = [nextPage, forSync, readAgain, dryRunFirst]

/** There are no output schemas: a call that succeeds shows what it answers, and its fields may be chosen. */
export function toTools(operations: readonly Operation[], ways: Ways = () => ''): Tool[] {
  // The tools so far, and their long enums.
  const shown = new Set<string>()
  return operations.map((operation) => {
    const { name, title, description, scope } = operation
    const needs = scope === null ? 'Needs no scope: any valid key.' : `Needs ${scope}.`
    const said = saidOnce.reduce((text, sentence) => text.replace(` ${sentence}`, ''), description)
    shown.add(name)
    const inputSchema = listedSchema(schemaOf(operation), shown, described) as Tool['inputSchema']
    const how = ways(`${said} ${JSON.stringify(inputSchema)}`)
    return {
      name,
      title,
      description: [deprecationNotice(operation) + said, ...(how === '' ? [] : [how]), needs].join(' '),
      inputSchema,
      ...annotationsOf(operation),
    }
  })
}

/** Hints that say what the protocol takes for granted are left out: a tool writes, destroys, is not idempotent, and reaches others. */
function annotationsOf(operation: Operation): Pick<Tool, 'annotations'> {
  const { destructive = false, idempotent = false, openWorld = false } = operation.hints ?? {}
  const annotations = {
    ...(isRead(operation) ? { readOnlyHint: true } : !destructive && { destructiveHint: false }),
    ...(!openWorld && { openWorldHint: false }),
    ...(idempotent && { idempotentHint: true }),
  }
  return Object.keys(annotations).length === 0 ? {} : { annotations }
}

// To make all of them takes as long as the rest of a start.
const schemaOf = oncePerOperation((operation): Schema => {
  const { properties = {}, required } = z.toJSONSchema(argumentsOf(operation), { io: 'input' }) as Schema
  if (operation.irreversible) {
    for (const [name, description] of Object.entries(whatNobodyChose)) {
      if (name in properties) properties[name] = { ...properties[name], description }
    }
  }
  // Orders and entries of the waiting list are seldom called alike.
  const isSeldom = kindsIn(operation).every((kind) => kind === 'order' || kind === 'waiting_list_entry')
  if (!operation.irreversible && !isSeldom && takesEventBeside(operation)) properties.event = { type: 'string' }
  // Which there are, a refusal says: `readFields`.
  if (isList(operation)) properties.fields = { type: 'array', items: { type: 'string' } }
  return { type: 'object', properties, ...(required !== undefined && { required }) }
})

/** What cannot be undone takes people and orders by nothing else. */
const whatNobodyChose: Record<string, string> = {
  attendee_id: 'Id or reference.',
  order_id: 'Id or reference.',
  waiting_list_entry_id: 'Its id alone.',
}

/** The arguments with ids, as they are validated. */
export function argumentsOf(operation: Operation): z.ZodObject {
  const { input } = operation
  if (!isRead(operation)) {
    return input.safeExtend({
      // Only If-Match takes a list of versions.
      ...('if_version' in input.shape && { if_version: ifVersion }),
      idempotency_key: IdempotencyKeySchema.optional(),
    })
  }
  if (!isList(operation)) return input
  const { limit } = input.shape as { limit: z.ZodType }
  return input.safeExtend({ limit: limit.default(itemsOnAPage.mcp).describe(limit.description ?? '') })
}

type Value = string | number | boolean | null

/** Of JSON Schema, what zod makes of the inputs. */
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
  /^(Identifier of the (order: .*|[a-z -]+(, [a-z ]+)?)|(Name|Company) of the [a-z ]+|Only [a-z -]+ with this [a-z_ ]+|Only this type|Items on a page|Columns, .*|next_cursor .*|Text of up to .*|Your own (identifier|flat JSON object), .*|Only if it still has this version; .*|true: (change nothing|payment_due_at may be past).*|(Further fee|Fee) kept from the cancelled price.*|RFC 3339 with offset|As in register_attendee|E-mail address of the attendee; .*|Address for the offer|Only entries about .*|Only this e-mail address; .*|Fields left out are unchanged; .*)\.$/

// A list of values longer than this is shown once in a list of tools.
const longEnum = 4

/** The instructions of the server say how times are written, and what changes leave out. */
function described({ description = '' }: Schema): Schema {
  const said = description.replace(
    /: (RFC 3339 with offset|plain text, .*(?=\.))| Fields left out are unchanged; null clears\./,
    '',
  )
  return said === '' || formulaic.test(said) ? {} : { description: said }
}

/** The members of a field are named only: what they mean, the description of the tool or of the field says. */
function listedSchema(schema: Schema, shown: Set<string>, describe: (member: Schema) => Schema = () => ({})): Schema {
  const form = nonNull(schema)
  const { enum: values = [], required, items } = form
  const like = /^Fields of (\w+)/.exec(schema.description ?? '')?.[1]
  const members = like !== undefined && shown.has(like) ? undefined : form.properties
  const isNew = values.length <= longEnum || !isKnown(values, shown)
  if (values.length > longEnum) for (const value of values) shown.add(`${value}`)
  const properties = Object.entries(members ?? {}).map(([name, member]) => [
    nameIn(members, name),
    { ...listedSchema(member, shown), ...describe(member) },
  ])
  return {
    ...typeOf(form),
    ...(values.length > 0 && isNew && { enum: values }),
    ...(members !== undefined && { properties: Object.fromEntries(properties) }),
    ...(required !== undefined && { required: required.map((name) => nameIn(form.properties, name)) }),
    ...(items !== undefined && { items: listedSchema(items, shown) }),
  }
}

/** `event` in the place of `event_id`, unless there is another field of that name. */
const nameIn = (members: Record<string, Schema> | undefined, name: string) =>
  Object.hasOwn(members ?? {}, listedName(name)) ? name : listedName(name)

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
