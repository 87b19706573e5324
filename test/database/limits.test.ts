// The limits of inputs held against the constraints of tables: a row may hold what a field takes at its limits, and not what it
// refuses just beyond them. Fields and columns are matched by name.

import { beforeAll, expect, test } from 'vitest'
import * as z from 'zod'
import { unwrap } from '../../src/gateway/validation.ts'
import { operations } from '../../src/operations/index.ts'
import type { Operation } from '../../src/operations/operation.ts'
import { studio } from '../support/database.ts'

/** Tables of operations that are not named update_… for one. */
const tables: Record<string, string> = {
  record_invoice_payment: 'payments',
  record_refund: 'refunds',
  void_payment: 'payment_voids',
  check_in: 'check_ins',
}

/** Columns that hold more than inputs take, as far as their own constraints say. */
const wider = [
  // A trigger holds them: it is a time zone that Postgres knows, or private.tg__assert_contact refuses it.
  ...['events.timezone', 'orders.name', 'attendees.name'],
  // Held together with other columns: what is due, what was paid, and min_per_order.
  'attendees.answers',
  ...['orders.amount_retained', 'payments.amount', 'refunds.amount', 'ticket_types.max_per_order'],
  // An integer is limit enough, for whoever writes in Studio.
  ...['events.capacity', 'promo_codes.max_redemptions'],
  ...['ticket_types.min_per_order', 'ticket_types.position', 'ticket_types.quantity', 'questions.position'],
]

type Schema = z.core.JSONSchema.BaseSchema
type Limits = { table: string; column: string; taken: unknown[]; refused: unknown[] }

/** The table that an operation writes, and the fields of its input that may be columns of it. */
function written({ name, input }: Operation): [table: string, fields: z.ZodRawShape] | undefined {
  if (tables[name] !== undefined) return [tables[name], input.shape]
  const [, object] = /^update_(.+)$/.exec(name) ?? []
  return object === undefined
    ? undefined
    : [`${object.replace(/y$/, 'ie')}s`, (input.shape.changes as z.ZodObject).shape]
}

/** What stands at the limits of a schema, or by 1 beyond them. */
function edges(schema: Schema, by: 0 | 1): unknown[] {
  const { maxLength, minimum, maximum, maxItems, maxProperties, anyOf = [] } = schema
  const above = schema.exclusiveMinimum === undefined ? undefined : Number(schema.exclusiveMinimum)
  return [
    ...anyOf.flatMap((part) => edges(part as Schema, by)),
    ...(maxLength === undefined ? [] : ['', 'https://example.com/'].map((start) => start.padEnd(maxLength + by, 'a'))),
    ...(minimum === undefined ? [] : [minimum - by]),
    ...(above === undefined ? [] : [by === 0 ? above + 0.01 : above]),
    ...(maximum === undefined ? [] : [maximum + by]),
    ...(maxItems === undefined ? [] : [Array(maxItems + by).fill('01926b5c-0000-7000-8000-000000000000')]),
    ...(maxProperties === undefined
      ? []
      : [Object.fromEntries(Array.from({ length: maxProperties + by }, (_, i) => [`k${i}`, 1]))]),
  ]
}

/** An object is a column for each of its members: `venue_city`. */
function limitsOf(table: string, column: string, field: z.ZodType): Limits[] {
  const object = unwrap(field)
  if (object instanceof z.ZodObject) {
    return Object.entries(object.shape).flatMap(([name, part]) =>
      limitsOf(table, `${column}_${name}`, part as z.ZodType),
    )
  }
  const schema = z.toJSONSchema(field, { io: 'input', unrepresentable: 'any' })
  const isTaken = (value: unknown) => field.safeParse(value).success
  const taken = edges(schema, 0).filter(isTaken)
  const refused = edges(schema, 1).filter((value) => !isTaken(value))
  return taken.length === 0 ? [] : [{ table, column, taken, refused }]
}

const limits = operations.flatMap((operation) => {
  const [table = '', fields = {}] = written(operation) ?? []
  return Object.entries(fields).flatMap(([name, field]) => limitsOf(table, name, field as z.ZodType))
})

/** The constraints of each column, of which those of several columns say nothing of a row that has no others. */
const rules = new Map<string, string>()
beforeAll(async () => {
  const { rows } = await studio.query<{ column: string; rule: string }>(
    `select format('%s.%s', c.relname, a.attname) as column,
       coalesce(string_agg(format('coalesce(%s, true)', pg_get_expr(k.conbin, k.conrelid)), ' and ') filter (where k.oid is not null), 'true') as rule
     from pg_attribute a join pg_class c on c.oid = a.attrelid
     left join pg_constraint k on k.conrelid = c.oid and k.contype = 'c' and a.attnum = any (k.conkey)
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and a.attnum > 0
     group by 1`,
  )
  for (const { column, rule } of rows) rules.set(column, rule)
})

async function isHeld(table: string, column: string, value: unknown): Promise<boolean> {
  const { rows } = await studio.query<{ held: boolean }>(
    `select ${rules.get(`${table}.${column}`)} as held from jsonb_populate_record(null::public.${table}, $1)`,
    [{ [column]: value }],
  )
  return rows[0]?.held === true
}

test('every field with a limit is a column', () => {
  expect(limits.length).toBeGreaterThan(45)
  for (const { table, column } of limits) expect([...rules.keys()]).toContain(`${table}.${column}`)
})

test.each(limits)('$table $column holds what its input takes at the limits', async ({ table, column, taken }) => {
  for (const value of taken) expect(await isHeld(table, column, value), JSON.stringify(value).slice(0, 50)).toBe(true)
})

test('nothing beyond them is held, but where something else is the limit', async () => {
  const found = new Set<string>()
  for (const { table, column, refused } of limits) {
    for (const value of refused) if (await isHeld(table, column, value)) found.add(`${table}.${column}`)
  }
  expect([...found].sort()).toEqual(wider.toSorted())
})
