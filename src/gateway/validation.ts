// Validates input against a schema. One error names all bad fields, up to a bounded number, with messages of Usher's own.

import * as z from 'zod'
import { notAnId } from '../operations/identifiers.ts'
import { formerNames } from '../operations/lists.ts'
import { ApiError } from './api-error.ts'
import type { Source } from './tokens.ts'

type BadField = { param: string; message: string; hint?: string }

// With the message, which repeats the first of them, an answer stays below 16 kB in any encoding.
const maximumFields = 20
const maximumBytes = 6_000
const maximumName = 100
const maximumMessage = 2_000

type Input = Record<string, unknown>

type Parsing = {
  /** The field that lists what is judged in the database, item by item: see `Operation`. */
  judged?: string | undefined
  /** Fields that are not given beside the others, so that an unknown one cannot have meant them. */
  elsewhere?: string[]
  /** Whose words say what helps. */
  source?: Source
  /** A list is text with commas there, so that its items have no names of their own. */
  isQuery?: boolean
}

/** @throws ApiError 422 `validation_failed`, whose `details.fields` lists the bad fields with a message each. */
export function parseInput(schema: z.ZodObject, input: Input, parsing: Parsing = {}): Input {
  const { judged, elsewhere = [] } = parsing
  const items = judged === undefined ? undefined : input[judged]
  if (judged !== undefined && Array.isArray(items)) return parseAround(schema, input, judged, items, parsing)
  // zod drops this name from records silently.
  const dropped = pathOfPrototype(input)
  if (dropped !== undefined) throw validationFailed([{ param: nameOf(dropped), message: 'is not allowed as a name' }])
  const result = schema.safeParse(withoutNothing(schema, input), {
    reportInput: true,
    error: (issue) => messageOf(issue, parsing),
  })
  if (result.success) return result.data
  const issues = parsing.isQuery ? result.error.issues.map(ofWholeList) : result.error.issues
  throw validationFailed(firstOfEachField(issues).flatMap((issue) => describe(issue, schema, elsewhere)))
}

/**
 * Without optional fields that say nothing: null where it is not taken, and likewise, unless SQL judges it, an empty text. Forms and
 * models fill in what they were not told. Inside `changes` both are refused where they clear nothing.
 */
function withoutNothing(schema: z.ZodObject, input: Input, empty = true): Input {
  const given = Object.entries(input).flatMap(([name, value]): [string, unknown][] => {
    const field = Object.hasOwn(schema.shape, name) ? (schema.shape[name] as z.ZodType) : undefined
    if (field === undefined) return [[name, value]]
    const takes = (nothing: unknown) => field.safeParse(nothing).success
    const isText = ['string', 'enum'].includes(unwrap(field)._zod.def.type)
    if ((value === null || (empty && isText && value === '')) && !takes(value) && takes(undefined)) return []
    const object = name === 'changes' ? undefined : objectIn(field)
    const inside = (item: unknown) => (object && isObject(item) ? withoutNothing(object, item, empty) : item)
    return [[name, Array.isArray(value) ? value.map(inside) : inside(value)]]
  })
  return Object.fromEntries(given)
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const unwrap = (schema: z.core.$ZodType): z.core.$ZodType =>
  'innerType' in schema._zod.def ? unwrap(schema._zod.def.innerType as z.core.$ZodType) : schema

/** The object that a field holds, alone or in a list. */
export function objectIn(field: z.core.$ZodType): z.ZodObject | undefined {
  const schema = unwrap(field)
  if (schema instanceof z.ZodArray) return objectIn(schema.element)
  return schema instanceof z.ZodObject ? schema : undefined
}

/** What stands around a list, and how long the list is. Items of the right form are as parsed, others as sent. */
function parseAround(schema: z.ZodObject, input: Input, judged: string, items: unknown[], parsing: Parsing): Input {
  const list = schema.shape[judged] as z.ZodArray<z.ZodObject>
  const lengths = (list._zod.def.checks ?? []) as z.core.$ZodCheck<unknown[]>[]
  const around = z.strictObject({ ...schema.shape, [judged]: z.array(z.unknown()).check(...lengths) })
  return {
    ...parseInput(around, { ...input, [judged]: items.map(() => null) }, { ...parsing, judged: undefined }),
    [judged]: items.map((item) => {
      if (!isObject(item) || pathOfPrototype(item) !== undefined) return storable(item)
      const said = withoutNothing(list.element, item, false)
      return list.element.safeParse(said).data ?? storable(said)
    }),
  }
}

/**
 * An item that is to be refused, as JSON that Postgres reads: where a value holds what JSON or Postgres cannot, an empty list takes the
 * place of the field, which is no valid value of any.
 */
function storable(item: unknown): unknown {
  if (typeof item !== 'object' || item === null) return isStorable(item) ? item : null
  if (Array.isArray(item)) return []
  return Object.fromEntries(
    Object.entries(item).map(([name, value]) => [printable(name), isStorable(value) ? value : []]),
  )
}

function isStorable(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value === 'string') return value.isWellFormed() && !value.includes('\0')
  if (typeof value !== 'object' || value === null) return true
  return Object.entries(value).every(([name, member]) => isStorable(name) && isStorable(member))
}

export function validationFailed(fields: BadField[]): ApiError {
  const named: BadField[] = []
  let bytes = 0
  for (const { param, message } of fields.slice(0, maximumFields)) {
    const field = { param: printable(param), message }
    bytes += Buffer.byteLength(JSON.stringify(field))
    if (bytes > maximumBytes) break
    named.push(field)
  }
  const more = fields.length - named.length
  const message = named.map((f) => `${f.param} ${f.message}`).join('; ')
  const shown = message.length > maximumMessage ? `${message.slice(0, maximumMessage).toWellFormed()}…` : message
  return new ApiError(422, 'validation_failed', more > 0 ? `${shown}; and ${more} more` : shown, {
    param: named[0]?.param,
    details: more > 0 ? { fields: named, more } : { fields: named },
    hint: [...fields.flatMap(({ hint }) => hint ?? []), 'Correct the named fields. Nothing was changed.'].join(' '),
  })
}

/** Path of the first own member named `__proto__`, if there is one. */
function pathOfPrototype(value: unknown): PropertyKey[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if (Object.hasOwn(value, '__proto__')) return ['__proto__']
  for (const [name, member] of Object.entries(value)) {
    const path = pathOfPrototype(member)
    if (path !== undefined) return [name, ...path]
  }
  return undefined
}

/** A field inside `changes` has its own name only, as in the body of a PATCH. */
const nameOf = (path: readonly PropertyKey[]): string =>
  (path[0] === 'changes' && path.length > 1 ? path.slice(1) : path).join('.')

/** Names may be the caller's: bounded in length, and without control characters. */
const printable = (name: string): string =>
  (name.length > maximumName ? `${name.slice(0, maximumName)}…` : name).toWellFormed().replace(/\p{Cc}/gu, '\ufffd')

/** Messages for issues of schemas without a message of their own. */
const messageOf = (issue: Parameters<z.core.$ZodErrorMap>[0], { source = 'api', elsewhere }: Parsing): string => {
  switch (issue.code) {
    case 'invalid_type':
      // json-body.ts puts NaN for a number whose digits would be lost.
      if (Number.isNaN(issue.input)) return 'must be a number of at most 15 digits'
      return `must be ${kinds[issue.expected] ?? 'of another type'}`
    case 'invalid_value':
      return `must be ${issue.values.length === 1 ? '' : 'one of '}${issue.values.join(', ')}`
    case 'too_small':
      return `must ${bounded[issue.origin] ?? 'be'} ${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}`
    case 'too_big':
      return `must ${bounded[issue.origin] ?? 'be'} ${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}`
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`
    case 'invalid_format':
      return issue.format === 'guid' ? notAnId(fieldIn(issue.path), source, elsewhere) : 'has the wrong format'
    case 'unrecognized_keys':
      return 'is not a known field'
    case 'invalid_key':
      return 'has a key that is not allowed'
    case 'invalid_union':
      return 'matches none of the allowed types'
    default:
      return 'is not allowed'
  }
}

/** The field of an item of a list is that of the list. */
const fieldIn = (path: PropertyKey[] = []): string => String(path.findLast((step) => typeof step === 'string') ?? '')

const kinds: Record<string, string> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
  null: 'null',
}

const bounded: Record<string, string> = { string: 'have a length of', array: 'have a length of' }

/** The first issue of each field, and all that name unknown fields or keys: a PATCH of unknown fields only changes nothing, which needs no message. */
function firstOfEachField(issues: z.core.$ZodIssue[]): z.core.$ZodIssue[] {
  const seen = new Set<string>()
  return issues.filter(({ code, path }) => {
    const name = path.join('.')
    const isRepeated = seen.has(name)
    seen.add(name)
    return !isRepeated || code === 'unrecognized_keys' || code === 'invalid_key'
  })
}

function ofWholeList(issue: z.core.$ZodIssue): z.core.$ZodIssue {
  const { path, message, input } = issue
  if (typeof path.at(-1) !== 'number') return issue
  return { ...issue, path: path.slice(0, -1), message: `${message}, not "${printable(String(input))}"` }
}

function hintAt(name: string, known: string[]): { hint: string } | undefined {
  const now = Object.hasOwn(formerNames, name) ? formerNames[name] : undefined
  return now !== undefined && known.includes(now) ? { hint: `Send ${now} in place of ${name}.` } : undefined
}

function describe(issue: z.core.$ZodIssue, schema: z.ZodObject, elsewhere: string[]): BadField[] {
  if (issue.code === 'unrecognized_keys') {
    const inChanges = issue.path[0] === 'changes'
    const inside = nameOf(issue.path)
    const isAtTop = issue.path.length === (inChanges ? 1 : 0)
    const names = isAtTop ? Object.keys((inChanges ? objectIn(schema.shape.changes) : schema)?.shape ?? {}) : []
    const known = names.filter((name) => !elsewhere.includes(name))
    const allowed = known.length > 0 ? `allowed: ${known.join(', ')}` : 'none are allowed here'
    return issue.keys.map((key, i) => ({
      param: isAtTop ? key : `${inside}.${key}`,
      // The list of allowed fields is the same for all of them: once is enough.
      message: isAtTop && i === 0 ? `is not a known field (${allowed})` : 'is not a known field',
      ...(isAtTop && hintAt(key, known)),
    }))
  }
  // For the key of a record, the reason is in the inner issues.
  if (issue.code === 'invalid_key') {
    return [{ param: nameOf(issue.path.slice(0, -1)), message: issue.issues[0]?.message ?? issue.message }]
  }
  const param = nameOf(issue.path) || 'body'
  if (issue.code === 'invalid_type' && issue.input === undefined) return [{ param, message: 'is required' }]
  return [{ param, message: issue.message }]
}
