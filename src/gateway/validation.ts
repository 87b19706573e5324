// Validates input against a schema, and words what is wrong: one refusal names every bad field, but never answers more than a
// bounded number of them.

import type * as z from 'zod'
import { ApiError } from './api-error.ts'

type BadField = { param: string; message: string }

// Together with the message, which repeats the first of them, an answer stays below 16 kB in any encoding.
const maximumFields = 20
const maximumBytes = 6_000
const maximumName = 100
const maximumMessage = 2_000

/** @throws ApiError 422 `validation_failed`, with `details.fields` holding the bad fields and what is wrong with each. */
export function parseInput(schema: z.ZodObject, input: Record<string, unknown>): Record<string, unknown> {
  // zod drops this name from records, without a word.
  const dropped = pathOfPrototype(input)
  if (dropped !== undefined)
    throw validationFailed([{ param: nameOf(dropped), message: 'is a name that cannot be kept' }])
  const result = schema.safeParse(input, { reportInput: true, error: sayIssue })
  if (result.success) return result.data
  throw validationFailed(firstOfEachField(result.error.issues).flatMap((issue) => describe(issue, schema)))
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
    hint: 'Correct the fields named in details.fields; nothing was changed.',
  })
}

/** Where an object has a member of its own named `__proto__`, if any has. */
function pathOfPrototype(value: unknown): PropertyKey[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if (Object.hasOwn(value, '__proto__')) return ['__proto__']
  for (const [name, member] of Object.entries(value)) {
    const path = pathOfPrototype(member)
    if (path !== undefined) return [name, ...path]
  }
  return undefined
}

/** A field inside `changes` goes by its own name, as it does in the body of a PATCH. */
const nameOf = (path: readonly PropertyKey[]): string =>
  (path[0] === 'changes' && path.length > 1 ? path.slice(1) : path).join('.')

/** Names may be the caller's: bounded, and text on every terminal. */
const printable = (name: string): string =>
  (name.length > maximumName ? `${name.slice(0, maximumName)}…` : name).toWellFormed().replace(/\p{Cc}/gu, '\ufffd')

/** What zod finds wrong, in our words, where the schema has none of its own. */
const sayIssue: z.core.$ZodErrorMap = (issue) => {
  switch (issue.code) {
    case 'invalid_type':
      // What stands for a number with digits that would be lost (json-body.ts).
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
      return 'is not of the form that is wanted'
    case 'unrecognized_keys':
      return 'is not a known field'
    case 'invalid_key':
      return 'has a key that is not allowed'
    case 'invalid_union':
      return 'is of none of the kinds that are taken'
    default:
      return 'is not allowed'
  }
}

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

/** Several things may be wrong with a value: the first is said. That nothing is to be changed follows from the fields that are not known. */
function firstOfEachField(issues: z.core.$ZodIssue[]): z.core.$ZodIssue[] {
  const seen = new Set<string>()
  return issues.filter(({ code, path }) => {
    const name = path.join('.')
    const isRepeated = seen.has(name)
    seen.add(name)
    return !isRepeated || code === 'unrecognized_keys' || code === 'invalid_key'
  })
}

function describe(issue: z.core.$ZodIssue, schema: z.ZodObject): BadField[] {
  if (issue.code === 'unrecognized_keys') {
    const inChanges = issue.path[0] === 'changes'
    const path = inChanges ? issue.path.slice(1) : issue.path
    const prefix = path.length === 0 ? '' : `${path.join('.')}.`
    const known = prefix === '' ? Object.keys((inChanges ? (schema.shape.changes as z.ZodObject) : schema).shape) : []
    const allowed = known.length > 0 ? `allowed: ${known.join(', ')}` : 'none is allowed here'
    return issue.keys.map((key, i) => ({
      param: prefix + key,
      // Once is enough for what is the same for all of them.
      message: prefix === '' && i === 0 ? `is not a known field (${allowed})` : 'is not a known field',
    }))
  }
  // A key of a record: what is wrong with it is said inside.
  if (issue.code === 'invalid_key') {
    return [{ param: nameOf(issue.path.slice(0, -1)), message: issue.issues[0]?.message ?? issue.message }]
  }
  const param = nameOf(issue.path) || 'body'
  if (issue.code === 'invalid_type' && issue.input === undefined) return [{ param, message: 'is required' }]
  return [{ param, message: issue.message }]
}
