// Arguments of tools that name objects: `event` in the place of `event_id`, which is taken as well, and in both what the object is called
// in the place of its id. What a name means is decided in SQL (supabase/schemas/00-ground/names.sql).

import type * as z from 'zod'
import { ApiError } from '../../gateway/api-error.ts'
import { isId, type Name, nameOf } from '../../gateway/names.ts'
import { isObject, objectIn, validationFailed } from '../../gateway/validation.ts'
import { type NamedKind, namedKindOf } from '../../operations/identifiers.ts'
import { withoutControl } from '../../operations/inputs.ts'
import type { Operation } from '../../operations/operation.ts'
import { oncePerOperation } from './once.ts'

type Arguments = Record<string, unknown>

/** `called`: every name of the argument that is taken. */
type Id = { name: string; listed: string; called: string[]; kind: NamedKind }

/** Which members of an object are ids, and which hold objects, alone or in a list, that have such members. */
type Shape = { ids: Id[]; inside: Map<string, Shape> }

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

const shapeFor = oncePerOperation(({ input }) => shapeOf(input))

function shapeOf(schema: z.ZodObject): Shape {
  const shape: Shape = { ids: [], inside: new Map() }
  for (const [name, field] of Object.entries(schema.shape)) {
    const kind = namedKindOf(name)
    const listed = listedName(name)
    if (kind !== undefined && !(listed in schema.shape)) {
      shape.ids.push({ name, listed, called: [name, listed, shorter[listed] ?? []].flat(), kind })
    }
    const object = objectIn(field)
    const inside = object && shapeOf(object)
    if (inside !== undefined && inside.ids.length + inside.inside.size > 0) shape.inside.set(name, inside)
  }
  return shape
}

/** The kinds of objects that it takes in its own arguments. */
export const kindsIn = (operation: Operation): NamedKind[] => shapeFor(operation).ids.map(({ kind }) => kind)

/** Whether it is about objects of an event without naming it, so that an `event` beside them can say of which. */
export const takesEventBeside = (operation: Operation): boolean =>
  kindsIn(operation).some((kind) => kind !== 'event' && kind !== 'webhook_endpoint') &&
  !('event_id' in operation.input.shape || 'event' in operation.input.shape)

/**
 * The arguments by the names of the operation, with an id in the place of each name.
 *
 * @throws ApiError where two arguments say the same thing.
 */
export function readNames(operation: Operation, sent: Arguments): { input: Arguments; names: Name[] } {
  const isBeside = takesEventBeside(operation)
  const { event: beside, ...others } = sent
  const event = isBeside && beside !== '' ? (beside ?? undefined) : undefined
  if (event !== undefined && !isName(event)) {
    const message = 'must be the name of an event on one line (see list_events)'
    throw validationFailed([{ param: 'event', message }])
  }

  const names = new Map<string, Name>()
  const toId = (param: string, kind: NamedKind, value: unknown): unknown => {
    // With an event beside them, ids are looked up as well: the object may be another event's.
    if (!isName(value) || (isId(value) && event === undefined)) return value
    const name = nameOf(param, kind, value.trim())
    // The list of an import names the same few ticket types.
    const judged = param.startsWith(`${operation.judged}.`)
    if (!judged || !names.has(name.id)) names.set(name.id, judged ? { ...name, judged } : name)
    return name.id
  }
  const input = withIds(isBeside ? others : sent, shapeFor(operation), toId)
  const ofEvent = event === undefined ? [] : [nameOf('event', 'event', event.trim())]
  return { input, names: [...ofEvent, ...names.values()] }
}

const isName = (value: unknown): value is string =>
  typeof value === 'string' &&
  value.trim() !== '' &&
  value.length <= maximumName &&
  withoutControl.test(value) &&
  value.isWellFormed()

type ToId = (param: string, kind: NamedKind, value: unknown) => unknown

function withIds(sent: Arguments, { ids, inside }: Shape, toId: ToId, path: string[] = []): Arguments {
  const input = { ...sent }
  for (const { name, called, kind } of ids) {
    const [as, another] = called.filter((known) => Object.hasOwn(sent, known))
    if (another !== undefined) {
      const message = `must not be combined with ${as}: send one of them`
      throw validationFailed([{ param: [...path, another].join('.'), message }])
    }
    if (as === undefined) continue
    delete input[as]
    input[name] = eachOf(sent[as], [...path, name], (value, at) => toId(at.join('.'), kind, value))
  }
  for (const [name, shape] of inside) {
    if (!Object.hasOwn(sent, name)) continue
    // A field of `changes` is called as over REST.
    const below = name === 'changes' ? path : [...path, name]
    input[name] = eachOf(sent[name], below, (item, at) => (isObject(item) ? withIds(item, shape, toId, at) : item))
  }
  return input
}

const eachOf = (value: unknown, path: string[], map: (item: unknown, path: string[]) => unknown): unknown =>
  Array.isArray(value) ? value.map((item, i) => map(item, [...path, `${i}`])) : map(value, path)

/** An error that calls arguments as the caller did, and otherwise as they are listed. */
export function asCalled(sent: Arguments, error: ApiError): ApiError {
  const text = JSON.stringify(sent)
  const asSent = (words: string) =>
    words.replace(/\b\w+_ids?\b/g, (field) => (text.includes(`"${field}":`) ? field : listedName(field)))
  const param = error.param && asSent(error.param)
  const { fields } = (error.details ?? {}) as { fields?: { param: string; message: string }[] }
  if (error.code !== 'validation_failed' || !Array.isArray(fields)) {
    return new ApiError(error.status, error.code, error.message, { ...error, param, cause: error.cause })
  }
  const details = {
    ...(error.details as object),
    fields: fields.map((field) => ({ param: asSent(field.param), message: asSent(field.message) })),
  }
  return new ApiError(error.status, error.code, asSent(error.message), { ...error, param, details, cause: error.cause })
}
