// Reads beside PostgREST; then pages and filters on two databases of different size side by side. The rows that a filter finds are the
// oldest: a scan from the newest would read everything.

import type { Effort } from '../compare.ts'
import { load } from '../load.ts'
import { fixed, judged, median, noFaults, type Outcome, printTable, ranged } from '../report.ts'
import { addOrganiser, backendsCpuMs, type Organiser, registerInBulk, type Stack, startStack } from '../stack.ts'
import { type Call, type Subject, usher } from '../subjects.ts'
import { add, comparing, type Scenario } from './scenario.ts'

export const readsAndLists: Scenario = {
  name: 'reads-and-lists',
  question: 'How fast are reads, and do pages and filters stay as fast while rows grow?',
  async run(effort) {
    const outcome = await reads(effort)
    add(outcome, await growth(effort))
    return outcome
  },
}

const reads = comparing(
  ['usher', 'postgrest', 'base'],
  [
    {
      title: 'GET /me, the same for everybody',
      connections: [1, 64],
      prepare: () => ({ operation: 'get_api_key', args: {} }),
      limits: [],
    },
    {
      title: 'Different objects and lists by one key',
      connections: [1, 64],
      prepare: differentReads,
      limits: [{ figure: 'rate', at: 64, against: 'postgrest', atLeast: 1 }],
    },
  ],
)

/** Ten objects, then two lists. Two equal calls are rarely in flight at once. */
async function differentReads(stack: Stack, organiser: Organiser): Promise<(nth: number) => Call> {
  const { eventId: event_id, ticketTypeId: ticket_type_id } = organiser
  const orders = await registerInBulk(stack, organiser, 200)
  const { rows } = await stack.database.query('select id from public.attendees where event_id = $1', [event_id])
  return (nth) => {
    const attendee = { operation: 'get_attendee', args: { attendee_id: rows[(nth * 7) % rows.length].id } }
    const order = { operation: 'get_order', args: { order_id: orders[(nth * 7) % orders.length] } }
    const limit = 5 + (nth % 20)
    const kinds: Call[] = [
      attendee,
      order,
      { operation: 'get_event', args: { event_id } },
      attendee,
      order,
      { operation: 'get_ticket_type', args: { ticket_type_id } },
      attendee,
      order,
      { operation: 'get_api_key', args: {} },
      attendee,
      { operation: 'list_events', args: { limit } },
      { operation: 'list_attendees', args: { event_id, limit } },
    ]
    return kinds[nth % kinds.length] as Call
  }
}

const requestsEach = 30

async function growth({ rounds, rows }: Effort): Promise<Outcome> {
  const databases: { server: Subject; organiser: Organiser; calls: Map<string, Call> }[] = []
  for (const size of [10_000, rows]) {
    const stack = await startStack()
    const organiser = await addOrganiser(stack)
    await grow(stack, organiser, size)
    databases.push({ server: usher(`${size} rows`, stack), organiser, calls: await callsOn(stack, organiser) })
  }
  const names = [...(databases[0]?.calls.keys() ?? [])]
  const measured = new Map(
    names.map((name) => [name, databases.map(() => ({ p50: [] as number[], cpu: [] as number[] }))]),
  )
  // The first round warms up.
  for (let round = 0; round <= rounds; round++) {
    for (const name of names) {
      for (const [i, { server, organiser, calls }] of databases.entries()) {
        const request = (await server.open(organiser))(calls.get(name) as Call)
        const before = backendsCpuMs(server.stack.pids.postgres)
        const { p50, statuses } = await load({
          url: server.url,
          connections: 1,
          seconds: 0,
          amount: requestsEach,
          request,
        })
        const cpu = (backendsCpuMs(server.stack.pids.postgres) - before) / requestsEach
        if (statuses[200] !== requestsEach) throw new Error(`${name} answered ${JSON.stringify(statuses)}`)
        if (round === 0) continue
        measured.get(name)?.[i]?.p50.push(p50)
        measured.get(name)?.[i]?.cpu.push(cpu)
      }
    }
  }
  const found = [...measured].map(([name, [few, many]]) => ({
    cells: [name, ...[few, many].map((one) => fixed(median(one?.p50 ?? [])))],
    ratios: many?.cpu.map((ms, i) => ms / (few?.cpu[i] ?? Number.NaN)) ?? [],
  }))
  printTable('Pages and filters, one call at a time', [
    ['', ...databases.map(({ server }) => `${server.name}, p50 ms`), 'CPU of Postgres, ratio'],
    ...found.map(({ cells, ratios }) => [...cells, ranged(ratios)]),
  ])
  const most = found.toSorted((a, b) => median(b.ratios) - median(a.ratios))[0]
  const name = `CPU of Postgres for each page and filter at ${rows} rows (most: ${most?.cells[0]})`
  return {
    targets: [judged(name, most?.ratios ?? [], { atMost: 1.3 }, '× that at 10000')],
    faults: { ...noFaults },
  }
}

/** First and deep page, and filters that find everything (all), ten of the rows (few), one or none. */
async function callsOn({ database }: Stack, organiser: Organiser): Promise<Map<string, Call>> {
  const { eventId: event_id } = organiser
  const oldest = `from public.attendees where event_id = '${event_id}' order by id limit 1`
  const { rows } = await database.query(
    `select (select reference from public.orders where id = (select order_id ${oldest})),
       private.encode_cursor((select id ${oldest} offset 2000)) as attendees,
       private.encode_cursor((select order_id ${oldest} offset 2000)) as orders`,
  )
  const { reference, ...cursors } = rows[0]
  const filters: Record<string, object> = {
    'first page': {},
    'event_id, all': { event_id },
    'event_id and status, few': { event_id, status: 'cancelled' },
    'email, one': { email: 'guest-5@example.com' },
    'email, none': { email: 'nobody@example.com' },
    'search, one': { search: 'guest 500' },
    'reference, one': { reference },
    'external_id, one': { external_id: 'ext-5' },
    'updated_after, all': { updated_after: '2020-01-01T00:00:00Z' },
    'updated_after, none': { updated_after: '2099-01-01T00:00:00Z' },
  }
  const lists = (['attendees', 'orders'] as const).flatMap((list) =>
    Object.entries({ ...filters, 'deep page': { cursor: cursors[list] } }).map(([name, args]): [string, Call] => [
      `${list}, ${name}`,
      { operation: `list_${list}`, args: { ...args } },
    ]),
  )
  const checkedIn = (name: string, checked_in: boolean): [string, Call] => [
    `attendees, checked_in, ${name}`,
    { operation: 'list_attendees', args: { event_id, checked_in } },
  ]
  return new Map([...lists, checkedIn('few', true), checkedIn('all', false)])
}

/** Copies one registration many times without its triggers: no other way makes a million in a minute. */
async function grow(stack: Stack, organiser: Organiser, size: number): Promise<void> {
  const { database } = stack
  await registerInBulk(stack, organiser, 1)
  const own = {
    name: "'Guest ' || i",
    email: "'guest-' || i || '@example.com'",
    external_id: "'ext-' || i",
    created_at: "now() - interval '1 day'",
    updated_at: "now() - interval '1 day'",
  }
  const copy = async (table: string, columns: Record<string, string>) => {
    const { rows } = await database.query(
      `select column_name as name from information_schema.columns
       where table_schema = 'public' and table_name = $1 and is_generated = 'NEVER'`,
      [table],
    )
    const names: string[] = rows.map(({ name }) => name)
    const values: Record<string, string> = { ...own, ...columns }
    await database.query(
      `insert into public.${table} (${names.join(', ')})
       select ${names.map((name) => values[name] ?? `r.${name}`).join(', ')}
       from copies, (select * from public.${table} where event_id = '${organiser.eventId}') r order by i`,
    )
  }
  const changeTen = (table: string, change: string, from: number) =>
    database.query(
      `update public.${table} set ${change} where event_id = '${organiser.eventId}'
       and external_id in (select 'ext-' || i from generate_series(${from}, ${from + 9}) i)`,
    )
  await database.query('begin')
  for (const table of ['orders', 'attendees']) await database.query(`alter table public.${table} disable trigger user`)
  await database.query(
    `create temporary table copies on commit drop as
     select i, private.uuid_v7() as new_order, private.uuid_v7() as new_attendee from generate_series(1, ${size}) i`,
  )
  await copy('orders', { id: 'new_order', reference: "upper(lpad(to_hex(i), 8, '0'))" })
  await copy('attendees', {
    id: 'new_attendee',
    order_id: 'new_order',
    ticket_code: "upper(lpad(to_hex(i), 16, '0'))",
    ticket_token: "lpad(to_hex(i), 32, '0')",
  })
  const cancelled = "status = 'cancelled', cancelled_at = now() - interval '1 day'"
  await changeTen('orders', `${cancelled}, cancellation_reason = 'requested'`, 100)
  await changeTen('attendees', cancelled, 100)
  await changeTen('attendees', "checked_in_at = now() - interval '1 day'", 200)
  for (const table of ['orders', 'attendees']) await database.query(`alter table public.${table} enable trigger user`)
  await database.query('commit')
  await database.query('vacuum analyze public.orders, public.attendees')
}
