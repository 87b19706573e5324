// What an organisation consists of, whole, and where it differs from what it must be. What Usher adds up or stamps by itself is left
// out: that follows from the rest, and other tests hold it.

import type { Database } from './organisation.ts'

export type Row = Record<string, unknown>
/** Rows by table; `emails` with the kind and whom they are to. */
export type State = Record<string, Row[]>
/** In place of a value that is expected. */
export type Matcher = (value: unknown) => boolean

const consequences = ['api_keys', 'notifications', 'audit_entries', 'emails']
const derived = `
  organisation_id version source api_key_id recorded_by position slug currency search_text created_at updated_at published_at cancelled_at
  completed_at erased_at checked_in_at offered_at offer_expires_at payment_remind_at payment_reminded_at payment_check_at last_attempt_at
  next_attempt_at attempts claim claimed_until email_lower ticket_token ticket_email_status ticket_email_sent_at ticket_email_last_error
  quantity_sold quantity_held times_redeemed subtotal discount_total total amount_paid amount_voided amount_refunded payment_method
  admission_key scanned_at device discount`
  .trim()
  .split(/\s+/)

export async function stateOf(database: Database, organisationId: string): Promise<State> {
  const { rows: tables } = await database.query<{ table_name: string }>(
    `select c.table_name
     from information_schema.columns c
     join information_schema.tables t using (table_schema, table_name)
     where c.table_schema = 'public' and c.column_name = 'organisation_id' and t.table_type = 'BASE TABLE'
       and c.table_name <> all ($1)
       and exists (
         select from information_schema.columns i
         where i.table_schema = 'public' and i.table_name = c.table_name and i.column_name = 'id'
       )`,
    [consequences],
  )
  const state: State = {}
  for (const { table_name } of tables) {
    const { rows } = await database.query<{ row: Row }>(
      `select to_jsonb(t) - $2::text[] as row from public.${table_name} t where t.organisation_id = $1 order by t.id`,
      [organisationId, derived],
    )
    state[table_name] = rows.map(({ row }) => row)
  }
  // Of a ticket it matters who has it, not how often it was queued: a cancelled e-mail is nobody's.
  const { rows } = await database.query<Row>(
    `select m.id, m.kind, coalesce(a.email, o.email, w.email) as "to"
     from public.emails m
     left join public.attendees a on a.id = m.attendee_id
     left join public.orders o on o.id = m.order_id
     left join public.waiting_list_entries w on w.id = m.waiting_list_entry_id
     where m.organisation_id = $1 and m.status <> 'cancelled'
     order by m.id`,
    [organisationId],
  )
  state.emails = rows
  return state
}

/** Where a state is not the expected one, a sentence each. A row without an id is expected to be new, with at least these values. */
export function differences(expected: State, actual: State): string[] {
  const tables = new Set([...Object.keys(expected), ...Object.keys(actual)])
  return [...tables].flatMap((table) => differencesOfTable(table, expected[table] ?? [], actual[table] ?? []))
}

function differencesOfTable(table: string, expected: Row[], actual: Row[]): string[] {
  const found: string[] = []
  const unexplained = new Set(actual)
  for (const row of expected.filter(({ id }) => id !== undefined)) {
    const same = actual.find(({ id }) => id === row.id)
    if (same === undefined) found.push(`${table}: ${shown(row)} is gone`)
    else unexplained.delete(same)
    for (const [column, value] of Object.entries(same === undefined ? {} : row)) {
      if (!isAs(value, same?.[column])) {
        found.push(`${table}: ${column} of ${nameOf(row)} is ${shown(same?.[column])}, not ${shown(value)}`)
      }
    }
  }
  for (const row of expected.filter(({ id }) => id === undefined)) {
    const differing = ([...unexplained] as Row[])
      .map((candidate) => ({
        candidate,
        columns: Object.keys(row).filter((column) => !isAs(row[column], candidate[column])),
      }))
      .toSorted((a, b) => a.columns.length - b.columns.length)[0]
    if (differing === undefined || differing.columns.length > Object.keys(row).length / 2) {
      if (!optionalRows.has(row)) found.push(`${table}: ${shown(row)} is missing`)
      continue
    }
    if (differing.columns.length > 0 && optionalRows.has(row)) continue
    unexplained.delete(differing.candidate)
    for (const column of differing.columns) {
      const is = differing.candidate[column]
      found.push(
        `${table}: ${column} of the new ${nameOf(differing.candidate)} is ${shown(is)}, not ${shown(row[column])}`,
      )
    }
  }
  return [...found, ...[...unexplained].map((row) => `${table}: ${shown(row)} should not be there`)]
}

const optionalRows = new WeakSet<Row>()

/** A new row that may be there, or not. */
export function optional(row: Row): Row {
  optionalRows.add(row)
  return row
}

function isAs(expected: unknown, actual: unknown): boolean {
  if (typeof expected === 'function') return (expected as Matcher)(actual)
  return JSON.stringify(expected) === JSON.stringify(actual)
}

const nameOf = (row: Row) => JSON.stringify(row.name ?? row.code ?? row.to ?? row.url ?? row.reference ?? row.id)

function shown(value: unknown): string {
  return (
    JSON.stringify(value, (_, part) => (typeof part === 'function' ? `<${part.name || 'matching'}>` : part)) ??
    'nothing'
  )
}

// Matchers

/** The instant, however it is written. */
export const at = (time: string): Matcher => between(time, time)
export function between(from: string, to: string): Matcher {
  const inBetween: Matcher = (value) =>
    typeof value === 'string' && Date.parse(value) >= Date.parse(from) && Date.parse(value) <= Date.parse(to)
  Object.defineProperty(inBetween, 'name', { value: from === to ? `at ${from}` : `between ${from} and ${to}` })
  return inBetween
}
export const present: Matcher = function present(value) {
  return value !== null && value !== undefined
}
export function like(pattern: RegExp): Matcher {
  const matching: Matcher = (value) => typeof value === 'string' && pattern.test(value)
  Object.defineProperty(matching, 'name', { value: String(pattern) })
  return matching
}
export function not(other: unknown): Matcher {
  const differing: Matcher = (value) => !isAs(other, value)
  Object.defineProperty(differing, 'name', { value: `not ${JSON.stringify(other)}` })
  return differing
}

/** The row with these values; there is exactly one. */
export function the(rows: Row[] | undefined, values: Row): Row {
  const found = (rows ?? []).filter((row) => Object.entries(values).every(([column, value]) => row[column] === value))
  if (found.length !== 1) throw new Error(`${found.length} rows are ${JSON.stringify(values)}`)
  return found[0] as Row
}

/** New rows of a table. */
export const add = (state: State, table: string, ...rows: Row[]) => {
  state[table] = [...(state[table] ?? []), ...rows]
}

/** New e-mails of a kind. */
export const emailed = (state: State, kind: string, ...addresses: string[]) =>
  add(state, 'emails', ...addresses.map((to) => ({ kind, to })))
