// Input by its schema: in comes what a caller sent, out goes what the SQL function takes, or one refusal that names every
// bad field at once.

import type * as z from 'zod'
import { Refusal } from './refusal.ts'

type BadField = { param: string; message: string }

/** @throws Refusal 422 `validation_failed`, with `details.fields` holding each bad field and what is wrong with it. */
export function parseInput(schema: z.ZodObject, input: Record<string, unknown>): Record<string, unknown> {
  const result = schema.safeParse(input, { reportInput: true })
  if (result.success) return result.data
  throw validationFailed(result.error.issues.flatMap((issue) => describe(issue, schema)))
}

export function validationFailed(fields: BadField[]): Refusal {
  const [first] = fields
  return new Refusal(422, 'validation_failed', fields.map((f) => `${f.param} ${f.message}`).join('; '), {
    param: first?.param,
    details: { fields },
    hint: 'Correct the fields named in details.fields; nothing was changed.',
  })
}

function describe(issue: z.core.$ZodIssue, schema: z.ZodObject): BadField[] {
  // A field inside `changes` goes by its own name, as it does in the body of a PATCH.
  const inChanges = issue.path[0] === 'changes'
  const path = (inChanges && issue.path.length > 1 ? issue.path.slice(1) : issue.path).join('.')
  if (issue.code === 'unrecognized_keys') {
    const known = Object.keys((inChanges ? (schema.shape.changes as z.ZodObject) : schema).shape)
    const allowed = known.length > 0 ? `allowed: ${known.join(', ')}` : 'none is allowed here'
    const prefix = path === '' || path === 'changes' ? '' : `${path}.`
    // The name came from the caller: quoted and bounded, and only ever inside a JSON string.
    return issue.keys.map((key) => ({
      param: prefix + key.slice(0, 100),
      message: prefix === '' ? `is not a known field (${allowed})` : 'is not a known field',
    }))
  }
  // A key of a record: what is wrong with it is said inside.
  if (issue.code === 'invalid_key') {
    return [
      { param: issue.path.slice(inChanges ? 1 : 0, -1).join('.'), message: issue.issues[0]?.message ?? issue.message },
    ]
  }
  if (issue.code === 'invalid_type' && issue.input === undefined)
    return [{ param: path || 'body', message: 'is required' }]
  return [{ param: path || 'body', message: issue.message }]
}
