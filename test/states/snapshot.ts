// Everything of an event as rows, read in Studio's role, and what changed between two looks at it. So a transition says all
// that it does, and a refusal that it did nothing at all.

import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'
import { studio } from '../support/database.ts'
import type { Hand } from '../support/studio.ts'

type Row = Record<string, unknown>

/** Rows by id. Their names are `event`, `order`, `order 2`, … in the order in which they were added. */
export type Snapshot = Map<string, { name: string; row: Row }>

/** `{ 'order.status': 'cancelled', 'order.cancelled_at': 'set' }`. A moment is told as `set`, `moved` or null, a ticket code
 * as `new`. Of a row that was added, only what `telling` names, and only what it has. */
export type Changes = Record<string, unknown>

const tables = {
  event: 'events',
  ticket_type: 'ticket_types',
  promo_code: 'promo_codes',
  order: 'orders',
  attendee: 'attendees',
  payment: 'payments',
  check_in: 'check_ins',
  waiting_list_entry: 'waiting_list_entries',
} as const
type Kind = keyof typeof tables

const telling: Partial<Record<Kind, string[]>> = {
  order: ['status', 'payment_status', 'total'],
  attendee: ['status', 'price', 'discount', 'ticket_email_status'],
  payment: ['amount'],
  check_in: ['result', 'reason'],
}

const sql = Object.entries(tables)
  .map(([kind, table], place) => {
    const belongs = kind === 'event' ? 'id' : 'event_id'
    return `select ${place} as place, '${kind}' as kind, t.id, to_jsonb(t) as row from public.${table} t where ${belongs} = any ($1)`
  })
  .join(' union all ')

export async function takeSnapshot(eventIds: string[], hand: Hand = studio): Promise<Snapshot> {
  // Named, so that a connection plans it once: planning takes several times as long as reading.
  const named = { name: 'snapshot', text: `${sql} order by place, id`, values: [eventIds] }
  const { rows } = await hand.query<{ kind: Kind; id: string; row: Row }>(named)
  const count = new Map<Kind, number>()
  return new Map(
    rows.map(({ kind, id, row }) => {
      const nth = (count.get(kind) ?? 0) + 1
      count.set(kind, nth)
      return [id, { name: nth === 1 ? kind : `${kind} ${nth}`, row }]
    }),
  )
}

export function changesBetween(before: Snapshot, after: Snapshot): Changes {
  const changes: Changes = {}
  for (const [id, { name, row }] of after) {
    const old = before.get(id)?.row
    const columns = old ? Object.keys(row) : (telling[name.split(' ')[0] as Kind] ?? Object.keys(row))
    for (const column of columns) {
      // checked_in is generated from checked_in_at; inside follows from entries and exits; admission_key follows from undone_at and exits, ticket_token from ticket_code.
      if (
        ['updated_at', 'checked_in', 'inside', 'admission_key', 'ticket_token'].includes(column) ||
        isDeepStrictEqual(row[column], old?.[column] ?? null)
      )
        continue
      changes[`${name}.${column}`] = told(column, old?.[column] ?? null, row[column])
    }
  }
  for (const [id, { name }] of before) if (!after.has(id)) changes[name] = 'gone'
  return changes
}

function told(column: string, before: unknown, after: unknown): unknown {
  if (column === 'ticket_code') return 'new'
  if (!column.endsWith('_at') || after === null) return after
  return before === null ? 'set' : 'moved'
}

/** Without the versions, which go with every edit and are compared between the interfaces, not told in the tables. */
export const withoutVersions = (changes: Changes): Changes =>
  Object.fromEntries(Object.entries(changes).filter(([key]) => !key.endsWith('.version')))

/** Holds what is counted, places and uses of promo codes, against a count of the rows: whatever was done, it has to be exact. */
export function expectExactCounts(snapshot: Snapshot): void {
  const rows = [...snapshot.values()]
  const holders = rows.filter(({ name, row }) => name.startsWith('attendee') && row.status !== 'cancelled')
  for (const [id, { name, row }] of snapshot) {
    if (name.startsWith('ticket_type')) {
      expect(row.quantity_sold, name).toBe(holders.filter((holder) => holder.row.ticket_type_id === id).length)
    } else if (name.startsWith('promo_code')) {
      expect(row.times_redeemed, name).toBe(holders.filter((holder) => holder.row.promo_code_id === id).length)
    }
  }
}

/** Holds the object that an operation answered against its row: an answer that tells another state is a wrong one. */
export function expectToShow(data: unknown, after: Snapshot): void {
  const shown = data as Row
  const { name, row } = after.get(String(shown.id)) ?? { name: 'no row', row: {} }
  const common = Object.keys(shown).filter((key) => key in row)
  expect(common, name).toContain('id')
  for (const key of common) {
    // To the millisecond, for moments.
    if (isSameMoment(shown[key], row[key])) continue
    expect([`${name}.${key}`, shown[key]]).toEqual([`${name}.${key}`, row[key]])
  }
}

/** Details of a refusal, with names in place of ids, and of moments: `{ sales_end_at: 'ticket_type.sales_end_at' }`. */
export function named(details: unknown, snapshot: Snapshot): unknown {
  if (typeof details !== 'object' || details === null) return details
  const rows = [...snapshot.values()]
  return Object.fromEntries(
    Object.entries(details).map(([key, value]) => {
      const holder = rows.find(({ row }) => isSameMoment(row[key], value))
      return [key, holder ? `${holder.name}.${key}` : (snapshot.get(String(value))?.name ?? value)]
    }),
  )
}

const isMoment = (value: unknown): value is string => typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value)
const isSameMoment = (a: unknown, b: unknown) => isMoment(a) && isMoment(b) && Date.parse(a) === Date.parse(b)
