// What says nothing is absent, in every operation: null, and an empty text, where neither has a meaning.

import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import type { ApiError } from '../../src/gateway/api-error.ts'
import { parseInput } from '../../src/gateway/validation.ts'
import { operations } from '../../src/operations/index.ts'
import type { Operation } from '../../src/operations/operation.ts'

type Schema = {
  type?: string
  enum?: unknown[]
  format?: string
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
}
type Input = Record<string, unknown>

const operationOf = (name: string) => operations.find((operation) => operation.name === name) as Operation
const schemaOf = ({ input }: Operation) => z.toJSONSchema(input, { io: 'input' }) as Schema
const takesNull = ({ type, anyOf = [] }: Schema): boolean =>
  type === 'null' || (type === undefined && anyOf.length === 0) || anyOf.some(takesNull)

/** The input as it is taken, or the fields that are refused. */
function outcome(operation: Operation, input: Input): unknown {
  try {
    return parseInput(operation.input, input, { judged: operation.judged })
  } catch (refusal) {
    return (refusal as ApiError).details
  }
}

describe.each(operations.map((operation) => [operation.name, operation] as const))('%s', (_name, operation) => {
  const { properties = {}, required = [] } = schemaOf(operation)
  const optional = Object.entries(properties).filter(([name]) => !required.includes(name))

  test('takes an optional argument that is null for one that is left out, unless null says something', () => {
    for (const [name, schema] of optional) {
      if (!takesNull(schema)) expect(outcome(operation, { [name]: null }), name).toEqual(outcome(operation, {}))
    }
  })

  test('refuses null in the place of an argument that it needs', () => {
    for (const name of required) {
      if (takesNull(properties[name] as Schema)) continue
      const { fields } = outcome(operation, { [name]: null }) as { fields: { param: string }[] }
      expect(
        fields.map(({ param }) => param),
        name,
      ).toContain(name)
    }
  })
})

const id = '01926b5c-0000-7000-8000-000000000000'
const ids = { event_id: id, ticket_type_id: id }
const mary = { name: 'Mary', email: 'mary@example.com' }
const guest = { ...ids, ...mary }

test.each<[string, Input, Input]>([
  // Filters, choices and lists.
  ['list_attendees', { status: '', search: '', email: '', external_id: null, event_id: '' }, {}],
  ['list_events', { limit: null, cursor: '' }, {}],
  // Texts that may be null, or must have a letter.
  [
    'register_attendee',
    { ...guest, company: '', external_id: '', promo_code: '', payment_method: '', attendees: null },
    guest,
  ],
  [
    'create_promo_code',
    { event_id: id, code: 'TEN', percent_off: 10, amount_off: null, valid_until: '' },
    { event_id: id, code: 'TEN', percent_off: 10 },
  ],
  ['check_in', { event_id: id, code: 'x', attendee_id: null, direction: '' }, { event_id: id, code: 'x' }],
  // In the items of a list.
  [
    'register_attendee',
    { ...ids, attendees: [{ ...mary, ticket_type_id: null, metadata: null }] },
    { ...ids, attendees: [mary] },
  ],
  [
    'import_attendees',
    {
      event_id: id,
      attendees: [
        { ...mary, ticket_type_id: null },
        { name: 1, metadata: null },
      ],
    },
    { event_id: id, attendees: [mary, { name: 1 }] },
  ],
])('%s takes what says nothing as if it were left out: %j', (name, input, same) => {
  const operation = operationOf(name)
  expect(outcome(operation, input)).toEqual(outcome(operation, same))
  expect(outcome(operation, same)).not.toHaveProperty('fields')
})

test.each<[string, Input, string[]]>([
  // An empty text is no number, no truth value and no list; where one is needed, it is missing.
  ['list_events', { limit: '' }, ['limit']],
  ['cancel_event', { event_id: id, dry_run: '' }, ['dry_run']],
  ['register_attendee', { ...guest, name: '' }, ['name']],
  // Of a change null clears, or is refused.
  [
    'update_attendee',
    { attendee_id: id, changes: { name: null, email: '', company: '' } },
    ['name', 'email', 'company'],
  ],
  ['apply_event', { event: id, changes: { timezone: null } }, ['timezone']],
])('%s refuses %j', (name, input, params) => {
  const { fields } = outcome(operationOf(name), input) as { fields: { param: string }[] }
  expect(fields.map(({ param }) => param)).toEqual(params)
})

test('what an import takes an empty text for is left to the database', () => {
  const attendees = [{ ...mary, company: '' }]
  expect(outcome(operationOf('import_attendees'), { event_id: id, attendees })).toMatchObject({ attendees })
})

test('null clears what may be null, and metadata keeps its nulls', () => {
  const changes = { company: null, metadata: { seat: null } }
  expect(outcome(operationOf('update_attendee'), { attendee_id: id, changes })).toMatchObject({ changes })
})
