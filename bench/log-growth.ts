// The log of 1,000 organisations at two sizes, side by side: what a page, a claim, the purge of a day and the erasure of a person
// cost Postgres, before the tables are first analysed and after.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { Effort } from './compare.ts'
import { backendCpuUs } from './processes.ts'
import { fixed, judged, median, type Outcome, printTable, spread, times } from './report.ts'
import { addOrganiser, connectAsSuperuser, type Organiser, registerInBulk, type Stack, startStack } from './stack.ts'

const smallSize = 100_000
const organisations = 1_000
const days = 30
const triesEach = 10
const pageSize = 25
/** As in src/courier/housekeeping.ts. */
const purgeBatch = 5_000

type Cost = { cpuMs: number; ms: number }
type Side = {
  size: number
  stack: Stack
  /** A session with the settings of PostgREST's, which has planned everything on empty tables. */
  session: pg.Client
  pid: number
  large: Organiser
  small: Organiser
  costs: Map<string, Cost[]>
}

export async function logGrowth(_stack: Stack, { rounds, rows = 10_000_000 }: Effort): Promise<Outcome> {
  const folders: string[] = []
  const sides: Side[] = []
  try {
    for (const size of [smallSize, rows]) {
      const folder = await mkdtemp(join(tmpdir(), 'usher-bench-'))
      folders.push(folder)
      sides.push(await open(size, folder))
    }
    const outcome: Outcome = { targets: [], figures: {} }
    for (const [phase, analysed] of ['never analysed', 'analysed'].entries()) {
      for (const side of sides) {
        side.costs = new Map()
        if (phase > 0) await side.stack.database.query('vacuum analyze')
        for (const organiser of [side.large, side.small])
          await registerInBulk(side.stack, organiser, (rounds + 1) * triesEach)
        await drain(side)
      }
      // The first round warms up.
      for (let round = 0; round <= rounds; round++) {
        for (const side of sides) {
          if (round === 1) side.costs = new Map()
          await measure(side)
        }
      }
      for (const side of sides) await purgeOneDay(side, days - 1 - phase)
      report(analysed, sides, outcome)
    }
    return outcome
  } finally {
    for (const { stack, session } of sides) {
      await session.end()
      await stack.stop()
    }
    for (const folder of folders) await rm(folder, { recursive: true, force: true })
  }
}

async function open(size: number, folder: string): Promise<Side> {
  const stack = await startStack(folder, undefined, { DELIVERIES: 'false' })
  const session = new pg.Client(stack.databaseUrl)
  // Of a stack that is stopped after an error.
  session.on('error', () => {})
  await session.connect()
  await session.query('set enable_seqscan = off; set plan_cache_mode = force_generic_plan')
  const { rows } = await session.query('select pg_backend_pid() as pid')
  const [large, small] = [await addOrganiser(stack), await addOrganiser(stack)]
  const side = { size, stack, session, pid: rows[0].pid, large, small, costs: new Map() }
  for (const organiser of [large, small]) await registerInBulk(stack, organiser, triesEach)
  await fill(side, folder, 0)
  await drain(side)
  await measure(side, { deep: false })
  await purge(side, days)
  const began = performance.now()
  await fill(side, folder, size)
  console.log(`  ${size} rows in ${fixed((performance.now() - began) / 1_000)} s`)
  return side
}

/** Adds a log of 30 days in the order of time: a tenth of it of the large organisation, the rest spread over the others. */
async function fill({ stack, large, small }: Side, folder: string, size: number): Promise<void> {
  const client = await connectAsSuperuser(stack, folder)
  try {
    if (size === 0) {
      await client.query(`
        insert into public.organisations (name, slug) select 'Organisation', 'other-' || i from generate_series(3, ${organisations}) i;
        insert into public.webhook_endpoints (organisation_id, url, types)
        select o.id, 'https://example.com/' || o.slug, '{order.completed}' from public.organisations o`)
      for (const { name } of (
        await client.query(
          "select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname in ('public', 'private')",
        )
      ).rows) {
        await client.query(`alter table ${name} set (autovacuum_enabled = false)`)
      }
      return
    }
    const [{ xid }] = (await client.query('select pg_current_xact_id()::text::integer - 1 as xid')).rows
    // A crash may lose this database.
    for (const setting of ['fsync = off', 'full_page_writes = off', "max_wal_size = '16GB'"]) {
      await client.query(`alter system set ${setting}`)
    }
    await client.query('select pg_reload_conf()')
    // Neither triggers nor foreign keys.
    await client.query('set session_replication_role = replica')
    await client.query(
      `create temporary table owners as
       select row_number() over (order by o.id = $1 desc, o.id = $2 desc, o.id) as n, o.id as organisation_id, w.id as webhook_endpoint_id
       from public.organisations o join public.webhook_endpoints w on w.organisation_id = o.id`,
      [large.holder.organisation_id, small.holder.organisation_id],
    )
    await client.query('create unique index on owners (n); analyze owners')
    for (let day = days; day > 0; day--) {
      const count = Math.round(size / days)
      await client.query(`
        create function pg_temp.id(moment timestamptz) returns uuid language sql volatile return
          (lpad(to_hex((extract(epoch from moment) * 1000)::bigint), 12, '0') || substr(gen_random_uuid()::text, 15))::uuid;
        create temporary table rows on commit drop as
        select
          i.n, i.created_at, pg_temp.id(i.created_at) as id, pg_temp.id(i.created_at) as order_id, o.organisation_id, o.webhook_endpoint_id,
          (array['order.created', 'order.completed', 'attendee.checked_in', 'attendee.updated'])[1 + i.n % 10 / 3]::public.notification_type as type
        from (
          select
            n, now() - interval '${day} days' + interval '1 day' * n / ${count} as created_at,
            case when random() < 0.1 then 1 else 2 + floor(random() * ${organisations - 1})::integer end as owner
          from generate_series(0, ${count - 1}) n
        ) i
        join owners o on o.n = i.owner;
        insert into public.notifications (id, organisation_id, type, data, subject_id, transaction_id, created_at)
        select
          r.id, r.organisation_id, r.type,
          case when r.type in ('order.created', 'order.completed')
            then json_build_object('object', 'order', 'id', r.order_id, 'reference', 'ABCD1234', 'name', 'Guest ' || r.n, 'email',
              'guest-' || r.n || '@example.com', 'attendees', json_build_array(json_build_object('object', 'attendee', 'id', r.id, 'order_id',
              r.order_id, 'name', 'Guest ' || r.n, 'email', 'guest-' || r.n || '@example.com', 'metadata', json_build_object())))
            else json_build_object('object', 'attendee', 'id', r.id, 'order_id', r.order_id, 'name', 'Guest ' || r.n, 'email',
              'guest-' || r.n || '@example.com', 'metadata', json_build_object())
          end,
          r.order_id,
          greatest(3, (${xid}::bigint * (${(days - day) * count} + r.n)) / ${size})::text::xid8, r.created_at
        from rows r order by r.created_at;
        insert into public.webhook_deliveries (
          organisation_id, webhook_endpoint_id, notification_id, type, status, next_attempt_at, attempts, delivered_at, created_at, updated_at, id
        )
        select r.organisation_id, r.webhook_endpoint_id, r.id, r.type, 'delivered', null, 1, r.created_at, r.created_at, r.created_at,
          pg_temp.id(r.created_at)
        from rows r where r.type = 'order.completed' order by r.created_at;
        insert into public.audit_entries (organisation_id, action, object_type, object_id, actor, source, created_at, id)
        select r.organisation_id, 'created', 'order', r.order_id, 'api_key', 'api', r.created_at, pg_temp.id(r.created_at)
        from rows r where r.type = 'order.created' order by r.created_at;
        drop function pg_temp.id`)
    }
    await client.query('alter system reset all')
    await client.query('select pg_reload_conf()')
    // Of the last day: each order with an idempotency key.
    await client.query(`
      insert into private.idempotency_records (organisation_id, family_id, idempotency_key, request_fingerprint, outcome)
      select n.organisation_id, n.id, 'key', 'fingerprint', json_build_object('status', 201, 'data', n.data)
      from public.notifications n where n.type = 'order.created' and n.created_at > now() - interval '1 day'`)
  } finally {
    await client.end()
  }
}

async function call(
  side: Side,
  name: string | null,
  role: string,
  sql: string,
  values: unknown[],
  organiser?: Organiser,
) {
  const { session } = side
  await session.query('begin')
  await session.query("select set_config('request.jwt.claims', $1, true), set_config('role', $2, true)", [
    JSON.stringify({ role, source: 'api', ...organiser?.holder }),
    role,
  ])
  const [cpu, began] = [backendCpuUs(side.pid), performance.now()]
  const { rows } = await session.query({ name: sql.slice(0, 40), text: sql, values })
  const cost = { cpuMs: (backendCpuUs(side.pid) - cpu) / 1_000, ms: performance.now() - began }
  await session.query('commit')
  if (name !== null) side.costs.set(name, [...(side.costs.get(name) ?? []), cost])
  return rows[0].answer
}

async function measure(side: Side, { deep = true } = {}): Promise<void> {
  const { database } = side.stack
  for (const [size, organiser] of Object.entries({ large: side.large, small: side.small })) {
    const organisation = organiser.holder.organisation_id
    const page = 'select api.list_notifications(after => $1, "limit" => $2) as answer'
    const middle = await database.query(
      `select id from public.notifications where organisation_id = $1 order by transaction_id, id
       offset (select count(*) / 2 from public.notifications where organisation_id = $1) limit 1`,
      [deep ? organisation : null],
    )
    const people = await database.query(
      `select id from public.attendees where organisation_id = $1 and erased_at is null order by id limit ${triesEach}`,
      [organisation],
    )
    for (let i = 0; i < triesEach; i++) {
      await call(side, `first page, ${size} organisation`, 'scope_events_write', page, [null, pageSize], organiser)
      if (deep)
        await call(
          side,
          `deep page, ${size} organisation`,
          'scope_events_write',
          page,
          [middle.rows[0].id, pageSize],
          organiser,
        )
      await database.query(
        `insert into public.notifications (organisation_id, type, data) values ($1, 'order.completed', '{"object":"order"}')`,
        [organisation],
      )
      await drain(side, `claim of what is due`)
      const erase = 'select api.erase_attendee($1) as answer'
      await call(side, `erasure, ${size} organisation`, 'scope_attendees_write', erase, [people.rows[i].id], organiser)
    }
  }
}

/** Claims what is pending, and settles it. */
async function drain(side: Side, name: string | null = null): Promise<void> {
  for (;;) {
    const claimed: { id: string }[] = await call(side, name, 'courier', 'select api.claim_webhooks(64) as answer', [])
    if (claimed.length === 0) return
    await side.stack.database.query(
      "update public.webhook_deliveries set status = 'delivered' where id = any ($1::uuid[])",
      [claimed.map(({ id }) => id)],
    )
  }
}

const purge = (side: Side, keep: number): Promise<number> =>
  call(side, null, 'courier', 'select api.purge($1, $2) as answer', [keep, purgeBatch])

/** As the courier does, in batches; the cost is that of 1,000 rows. */
async function purgeOneDay(side: Side, keep: number): Promise<void> {
  const [cpu, began] = [backendCpuUs(side.pid), performance.now()]
  let purged = 0
  for (let batch = Number.POSITIVE_INFINITY; batch >= purgeBatch; purged += batch) batch = await purge(side, keep)
  const cost = { cpuMs: (backendCpuUs(side.pid) - cpu) / purged, ms: ((performance.now() - began) * 1_000) / purged }
  console.log(`  ${purged} rows of a day were purged from ${side.size}`)
  side.costs.set('purge of a day, by 1,000 rows', [cost])
}

function report(phase: string, [small, large]: Side[], outcome: Outcome): void {
  if (small === undefined || large === undefined) return
  const of = (side: Side, name: string, figure: keyof Cost) => (side.costs.get(name) ?? []).map((cost) => cost[figure])
  const table = [[phase, ...[small, large].flatMap(({ size }) => [`CPU ms at ${size}`, 'p50 ms'])]]
  for (const name of small.costs.keys()) {
    const found = spread(of(large, name, 'cpuMs').map((ms) => ms / median(of(small, name, 'cpuMs'))))
    table.push([
      name,
      ...[small, large].flatMap((side) => [
        fixed(median(of(side, name, 'cpuMs'))),
        fixed(median(of(side, name, 'ms'))),
      ]),
    ])
    outcome.targets.push(
      judged(`${phase}: CPU of ${name} ≤ 1.3× that at ${small.size}`, times(found), found.median, { atMost: 1.3 }),
    )
    outcome.figures = {
      ...outcome.figures,
      [`${phase}: ${name}`]: [small, large].map((side) => of(side, name, 'cpuMs')),
    }
  }
  printTable(table)
}
