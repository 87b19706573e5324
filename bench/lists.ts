// Pages of attendees and orders, and each of their filters, on three databases of different size side by side. The rows that a filter
// finds are the oldest: a scan of the newest first would read everything.

import type { Effort } from './compare.ts'
import { load } from './load.ts'
import { fixed, judged, median, type Outcome, printTable, spread, times } from './report.ts'
import { addOrganiser, type Organiser, registerInBulk, type Stack, startStack } from './stack.ts'
import { type Call, subjects } from './subjects.ts'

const sizes = [10_000, 100_000, 1_000_000]
const requestsEach = 10

type Database = {
  size: number
  stack: Stack
  organiser: Organiser
  calls: Map<string, Call>
  times: Map<string, number[]>
}

export async function lists(stack: Stack, { rounds }: Effort): Promise<Outcome> {
  const stacks = [stack]
  try {
    const databases: Database[] = []
    for (const [i, size] of sizes.entries()) {
      const own = stacks[i] ?? (await startStack())
      if (i > 0) stacks.push(own)
      const organiser = await addOrganiser(own, { ticketTypes: 2 })
      await grow(own, organiser, size)
      databases.push({ size, stack: own, organiser, calls: await callsOn(own, organiser), times: new Map() })
    }
    // The first round warms up.
    for (let round = 0; round <= rounds; round++) {
      for (const name of databases[0]?.calls.keys() ?? []) {
        for (const database of databases) {
          const p50 = await measure(database, name)
          if (round > 0) database.times.set(name, [...(database.times.get(name) ?? []), p50])
        }
      }
    }
    return judge(databases)
  } finally {
    for (const own of stacks.slice(1)) await own.stop()
  }
}

async function measure({ stack, organiser, calls }: Database, name: string): Promise<number> {
  const usher = await subjects.usher(stack)
  const request = (await usher.open(organiser))(calls.get(name) as Call)
  const { p50, statuses } = await load({ url: usher.url, connections: 1, seconds: 0, amount: requestsEach, request })
  if (statuses[200] !== requestsEach) throw new Error(`${name} answered ${JSON.stringify(statuses)}`)
  return p50
}

function judge(databases: Database[]): Outcome {
  const largest = databases.at(-1) as Database
  const smallest = databases[0] as Database
  const names = [...largest.calls.keys()]
  const of = ({ times }: Database, name: string) => times.get(name) ?? []
  printTable([
    ['p50 in ms', ...databases.map(({ size }) => `${size} rows`)],
    ...names.map((name) => [name, ...databases.map((database) => fixed(median(of(database, name))))]),
  ])
  const ratios = (a: number[], b: number[]) => spread(a.map((time, i) => time / (b[i] as number)))
  const isPage = (name: string) => name.endsWith('page')
  const pages = names.filter(isPage).map((name) => {
    const found = ratios(of(largest, name), of(smallest, name))
    return judged(`${name} at 1,000,000 rows ≤ 1.2× that at 10,000`, times(found), found.median, { atMost: 1.2 })
  })
  const deep = ['attendees', 'orders'].map((list) => {
    const found = ratios(of(largest, `${list}, deep page`), of(largest, `${list}, first page`))
    return judged(`deep page of ${list} ≤ 1.2× the first`, times(found), found.median, { atMost: 1.2 })
  })
  const slowest = names
    .filter((name) => !isPage(name))
    .map((name) => ({ name, ms: median(of(largest, name)) }))
    .toSorted((a, b) => b.ms - a.ms)[0] as { name: string; ms: number }
  const filters = judged(
    'every filter at 1,000,000 rows < 20 ms',
    `${slowest.name} ${fixed(slowest.ms)} ms`,
    slowest.ms,
    {
      atMost: 20,
    },
  )
  const figures = Object.fromEntries(
    databases.map((database) => [
      database.size,
      Object.fromEntries(names.map((name) => [name, median(of(database, name))])),
    ]),
  )
  return { figures, targets: [...pages, ...deep, filters] }
}

/** First and deep page, and each filter with a value that finds everything (all), a few rows (few) or nothing (none). */
async function callsOn({ database }: Stack, { eventId, ticketTypeIds, holder }: Organiser): Promise<Map<string, Call>> {
  const organisation = holder.organisation_id
  const one = async (sql: string) => (await database.query(sql, [organisation])).rows[0]
  const cursor = async (table: string) =>
    (
      await one(
        `select private.encode_cursor(id) as cursor from public.${table} where organisation_id = $1 order by id limit 1 offset 2000`,
      )
    ).cursor
  const { id, order_id } = await one(
    'select id, order_id from public.attendees where organisation_id = $1 order by id limit 1',
  )
  const { reference } = await one(
    `select reference from public.orders where organisation_id = $1 and id = '${order_id}'`,
  )
  const noEvent = await one(
    `insert into public.events (organisation_id, name, slug, starts_at, ends_at)
     values ($1, 'Empty', 'empty', now() + interval '1 day', now() + interval '2 days') returning id`,
  )
  const future = { updated_since: '2099-01-01T00:00:00Z' }
  const shared: Record<string, object> = {
    'event_id, all': { event_id: eventId },
    'event_id, none': { event_id: noEvent.id },
    'status, few': { status: 'cancelled' },
    'email, one': { email: 'guest-5@example.com' },
    'email, none': { email: 'nobody@example.com' },
    'reference, one': { reference },
    'external_id, one': { external_id: 'ext-5' },
    'updated_since, none': future,
    'updated_since, all': { updated_since: '2020-01-01T00:00:00Z' },
    'event_id and status, few': { event_id: eventId, status: 'cancelled' },
    'event_id and updated_since, none': { event_id: eventId, ...future },
  }
  const filters: Record<string, Record<string, object>> = {
    attendees: {
      ...shared,
      'order_id, one': { order_id },
      'ticket_type_id, all': { ticket_type_id: ticketTypeIds[0] },
      'ticket_type_id, none': { ticket_type_id: ticketTypeIds[1] },
      'checked_in true, few': { checked_in: true },
      'checked_in false, all': { checked_in: false },
      'event_id and checked_in true, few': { event_id: eventId, checked_in: true },
      'ticket_email_status, few': { ticket_email_status: 'failed' },
      'ticket_email_status, none': { ticket_email_status: 'bounced' },
    },
    orders: { ...shared, 'payment_status, none': { payment_status: 'refund_due' } },
  }
  const calls = new Map<string, Call>()
  for (const list of ['attendees', 'orders']) {
    const call = (args: object): Call => ({ operation: `list_${list}`, args: { ...args } })
    calls.set(`${list}, first page`, call({}))
    calls.set(`${list}, deep page`, call({ cursor: await cursor(list) }))
    for (const [name, args] of Object.entries(filters[list] ?? {})) calls.set(`${list}, ${name}`, call(args))
  }
  calls.set('get attendee', { operation: 'get_attendee', args: { attendee_id: id } })
  return calls
}

/** Copies one registration many times without its triggers, as no other way makes a million in a minute; then statistics. */
export async function grow(stack: Stack, organiser: Organiser, size: number): Promise<void> {
  const { database } = stack
  const organisation = organiser.holder.organisation_id
  await registerInBulk(stack, organiser, 1)
  const columns = async (table: string, own: Record<string, string>) => {
    const { rows } = await database.query(
      `select column_name as name from information_schema.columns
       where table_schema = 'public' and table_name = $1 and is_generated = 'NEVER'`,
      [table],
    )
    const names: string[] = rows.map(({ name }) => name)
    return `insert into public.${table} (${names.join(', ')}) select ${names.map((name) => own[name] ?? `r.${name}`).join(', ')}`
  }
  const own = {
    name: "'Guest ' || i",
    email: "'guest-' || i || '@example.com'",
    external_id: "'ext-' || i",
    created_at: "now() - interval '1 day'",
    updated_at: "now() - interval '1 day'",
  }
  await database.query('begin')
  await database.query(
    `create temporary table copies on commit drop as
     select i, private.uuid_v7() as order_id, private.uuid_v7() as attendee_id from generate_series(1, ${size}) i`,
  )
  for (const table of ['orders', 'attendees']) await database.query(`alter table public.${table} disable trigger user`)
  const order = await columns('orders', { ...own, id: 'order_id', reference: "upper(lpad(to_hex(i), 8, '0'))" })
  await database.query(
    `${order} from copies cross join (select * from public.orders where organisation_id = '${organisation}') r order by i`,
  )
  const attendee = await columns('attendees', {
    ...own,
    id: 'attendee_id',
    order_id: 'copies.order_id',
    ticket_code: "upper(lpad(to_hex(i), 16, '0'))",
    ticket_token: "lpad(to_hex(i), 32, '0')",
  })
  await database.query(
    `${attendee} from copies cross join (select * from public.attendees where organisation_id = '${organisation}') r order by i`,
  )
  const few = (table: string, change: string, from: number) =>
    database.query(
      `update public.${table} set ${change} where organisation_id = '${organisation}'
       and external_id in (select 'ext-' || i from generate_series(${from}, ${from + 9}) i)`,
    )
  await few(
    'orders',
    "status = 'cancelled', cancelled_at = now() - interval '1 day', cancellation_reason = 'requested'",
    100,
  )
  await few('attendees', "status = 'cancelled', cancelled_at = now() - interval '1 day'", 100)
  await few('attendees', "checked_in_at = now() - interval '1 day'", 200)
  await few('attendees', "ticket_email_status = 'failed'", 300)
  for (const table of ['orders', 'attendees']) await database.query(`alter table public.${table} enable trigger user`)
  await database.query('commit')
  await database.query('vacuum analyze public.orders, public.attendees')
}
