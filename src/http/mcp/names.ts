// Arguments of tools that name objects: `event` in the place of `event_id`, which is taken as well, and in both what the object is called
// in the place of its id. What a name means is decided in SQL (supabase/schemas/00-ground/names.sql).

import * as z from 'zod'
import { ApiError } from '../../gateway/api-error.ts'
import { isId, type Name, nameOf } from '../../gateway/names.ts'
import { isObject, objectIn, unwrap, validationFailed } from '../../gateway/validation.ts'
import { type NamedKind, namedKindOf } from '../../operations/identifiers.ts'
import { withoutControl } from '../../operations/inputs.ts'
import type { Operation } from '../../operations/operation.ts'

type Arguments = Record<string, unknown>

type Field = { name: string; listed: string; shorter: string | undefined; kind: NamedKind }

/** Which members of an object are ids, and which hold objects, alone or in a list, that have such members. */
type Shape = { ids: Field[]; inside: [name: string, shape: Shape][] }

// The last words of some names say enough.
const shorter: Record<string, string> = {
  check_in_point: 'point',
  check_in_points: 'points',
  webhook_endpoint: 'endpoint',
  waiting_list_entry: 'entry',
}

// Of URLs, the longest of what names an object.
const maximumName = 2000

/** `event_id` → `event`, `ticket_type_ids` → `ticket_types`; any other name as it is. */
export function listedName(field: string): string {
  return namedKindOf(field) === undefined ? field : field.replace(/_id(s?)$/, '$1')
}

function shapeOf(schema: z.ZodObject): Shape {
  const fields = Object.entries(schema.shape)
  return {
    ids: fields.flatMap(([name]) => {
      const kind = namedKindOf(name)
      const listed = listedName(name)
      return kind === undefined || listed in schema.shape ? [] : [{ name, listed, shorter: shorter[listed], kind }]
    }),
    inside: fields.flatMap(([name, field]) => {
      const object = objectIn(field)
      const shape = object && shapeOf(object)
      return shape !== undefined && shape.ids.length + shape.inside.length > 0 ? [[name, shape] as [string, Shape]] : []
    }),
  }
}

const shapes = new WeakMap<Operation, Shape>()

function shapeFor(operation: Operation): Shape {
  let shape = shapes.get(operation)
  if (shape === undefined) {
    shape = shapeOf(operation.input)
    shapes.set(operation, shape)
  }
  return shape
}

/** Whether it is about objects of an event without naming it, so that an `event` beside them can say of which. */
const takesEventBeside = (operation: Operation, { ids }: Shape) =>
  ids.some(({ kind }) => kind !== 'event' && kind !== 'webhook_endpoint') &&
  !('event_id' in operation.input.shape || 'event' in operation.input.shape)

/** The input as it is listed. */
export function namedInput(operation: Operation, input: z.ZodObject): z.ZodObject {
  const shape = shapeFor(operation)
  const listed = renamed(input, shape, operation.irreversible)
  // Orders and entries of the waiting list are seldom called alike.
  const isListed = shape.ids.some(({ kind }) => kind !== 'order' && kind !== 'waiting_list_entry')
  if (operation.irreversible || !isListed || !takesEventBeside(operation, shape)) return listed
  return listed.extend({ event: z.string().optional().describe('Identifier of the event.') })
}

function renamed(schema: z.ZodObject, { ids, inside }: Shape, irreversible = false): z.ZodObject {
  if (ids.length + inside.length === 0) return schema
  const fields = Object.entries(schema.shape).map(([name, field]): [string, z.ZodType] => {
    const id = ids.find((known) => known.name === name)
    if (id !== undefined) return [id.listed, listedField(field as z.ZodType, id.kind, irreversible)]
    const shape = inside.find(([known]) => known === name)?.[1]
    const object = shape && objectIn(field)
    if (shape === undefined || object === undefined) return [name, field as z.ZodType]
    const members = renamed(object, shape)
    return [name, like(field as z.ZodType, unwrap(field) instanceof z.ZodArray ? z.array(members) : members)]
  })
  return z.strictObject(Object.fromEntries(fields))
}

function listedField(field: z.ZodType, kind: NamedKind, irreversible: boolean): z.ZodType {
  const isList = unwrap(field) instanceof z.ZodArray
  const listed = like(field, isList ? z.array(z.string()) : z.string())
  const only = irreversible ? whatNobodyChose[kind] : undefined
  // The instructions of the server say what else names an object.
  const isMore = only === undefined && listed.description?.startsWith('Identifier of') === false
  return isMore ? listed : listed.describe(only ?? `Identifier of the ${kind.replaceAll('_', ' ')}.`)
}

/** What cannot be undone takes people and orders by nothing else. */
const whatNobodyChose: Partial<Record<NamedKind, string>> = {
  attendee: 'Id or reference.',
  order: 'Id or reference.',
  waiting_list_entry: 'Its id alone.',
}

/** As optional and as described as the other. */
function like(field: z.ZodType, schema: z.ZodType): z.ZodType {
  const same = z.safeParse(field, undefined).success ? schema.optional() : schema
  const description = descriptionOf(field)
  return description === undefined ? same : same.describe(description)
}

/** Of the field, or of what is optional in it. */
function descriptionOf(field: z.ZodType): string | undefined {
  if (field.description !== undefined) return field.description
  const inner = 'innerType' in field._zod.def ? (field._zod.def.innerType as z.ZodType) : undefined
  return inner && descriptionOf(inner)
}

/**
 * The arguments by the names of the operation, with an id in the place of each name.
 *
 * @throws ApiError where two arguments say the same thing.
 */
export function readNames(operation: Operation, sent: Arguments): { input: Arguments; names: Name[] } {
  const shape = shapeFor(operation)
  const found = { names: new Map<string, Name>(), judged: operation.judged }
  const isBeside = takesEventBeside(operation, shape)
  const { event, ...others } = sent
  if ((event ?? '') === '' || !isBeside) {
    const input = withIds(isBeside ? others : sent, shape, '', found)
    return { input, names: [...found.names.values()] }
  }
  // With an event beside them, ids are looked up as well: the object may be another event's.
  const input = withIds(others, shape, '', found, () => true)
  if (typeof event !== 'string' || !isName(event)) {
    throw validationFailed([
      { param: 'event', message: 'must be what names an event on one line (list_events shows it)' },
    ])
  }
  return { input, names: [nameOf('event', 'event', event.trim()), ...found.names.values()] }
}

const isName = (text: string) =>
  text.trim() !== '' && text.length <= maximumName && withoutControl.test(text) && text.isWellFormed()

function withIds(
  sent: Arguments,
  { ids, inside }: Shape,
  path: string,
  found: { names: Map<string, Name>; judged: string | undefined },
  isLookedUp = (value: string) => !isId(value),
): Arguments {
  const input = { ...sent }
  const toId = (param: string, kind: NamedKind, value: unknown): unknown => {
    if (typeof value !== 'string' || !isLookedUp(value) || !isName(value)) return value
    const name = nameOf(param, kind, value.trim())
    // The list of an import names the same few ticket types.
    const judged = param.startsWith(`${found.judged}.`)
    if (!found.names.has(name.id) || !judged) found.names.set(name.id, judged ? { ...name, judged } : name)
    return name.id
  }
  for (const { name, listed, shorter, kind } of ids) {
    const given = [name, listed, shorter].filter((known) => known !== undefined && Object.hasOwn(input, known))
    const [as, another] = given as string[]
    if (another !== undefined) {
      throw validationFailed([{ param: `${path}${another}`, message: `must not stand beside ${as}: give one of them` }])
    }
    if (as === undefined) continue
    const value = input[as]
    delete input[as]
    const param = `${path}${name}`
    input[name] = Array.isArray(value)
      ? value.map((item, i) => toId(`${param}.${i}`, kind, item))
      : toId(param, kind, value)
  }
  for (const [name, shape] of inside) {
    const value = input[name]
    // A field of `changes` is called as over REST.
    const below = name === 'changes' ? path : `${path}${name}.`
    const inItem = (item: unknown, at: string) => (isObject(item) ? withIds(item, shape, at, found, isLookedUp) : item)
    input[name] = Array.isArray(value)
      ? value.map((item, i) => inItem(item, `${below}${i}.`))
      : value === undefined
        ? undefined
        : inItem(value, below)
    if (value === undefined) delete input[name]
  }
  return input
}

/** An error that calls arguments as the caller did, and otherwise as they are listed. */
export function asCalled(operation: Operation, sent: Arguments, error: ApiError): ApiError {
  const text = JSON.stringify(sent)
  const calledAs = (field: string) => (text.includes(`"${field}":`) ? field : listedName(field))
  const isOwn = error.code === 'validation_failed'
  const rename = (param: string) => param.split('.').map(calledAs).join('.')
  const fields = (error.details as { fields?: { param: string; message: string }[] } | undefined)?.fields
  const known = shapeFor(operation).ids.map(({ name }) => name)
  const inWords = (text: string) =>
    known.reduce((said, name) => said.replace(new RegExp(`\\b${name}\\b`, 'g'), calledAs(name)), text)
  return new ApiError(error.status, error.code, isOwn ? inWords(error.message) : error.message, {
    ...error,
    param: error.param && rename(error.param),
    details:
      isOwn && Array.isArray(fields)
        ? {
            ...(error.details as object),
            fields: fields.map(({ param, message }) => ({ param: rename(param), message: inWords(message) })),
          }
        : error.details,
    cause: error.cause,
  })
}
