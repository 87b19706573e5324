// Measures whether recounting what is derived (src/local/invariants) delays anybody: `node bench/invariants.ts`, or with `1000000 8 20` for the number of
// attendees, of connections that register meanwhile, and of seconds without it. Prints how long it takes, how long registrations take beside
// it and without it, and how often one of them waited for a lock of it.

import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { startScratchDatabase } from '../scripts/support/scratch-database.ts'
import { databaseUrlFor } from '../src/local/client.ts'
import { superuser } from '../src/local/cluster.ts'
import { openDataDirectory } from '../src/local/data-directory.ts'
import { disagreementsSql } from '../src/local/invariants.ts'
import { applyMigrations } from '../src/local/migrate.ts'
import { loadOrCreateSecrets } from '../src/local/secrets.ts'

const [attendees = 1_000_000, connections = 8, seconds = 20] = process.argv.slice(2).map(Number)

// A tenth was registered today, and is held against the logs. Whoever is to be erased is one in a thousand.
const fillSql = `
set session_replication_role = replica;
set statement_timeout = 0;
-- What is filled is sound, and each check of a row calls a function.
do $do$
declare
  v_check record;
begin
  for v_check in
    select c.conrelid::regclass as "table", c.conname from pg_constraint c where c.contype = 'c' and c.connamespace = 'public'::regnamespace
  loop
    execute format('alter table %s drop constraint %I', v_check."table", v_check.conname);
  end loop;
end
$do$;
create function pg_temp.id(kind integer, i integer) returns uuid language sql immutable
return ('0190000' || kind || '-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid;
create function pg_temp.at(i integer) returns timestamptz language sql stable
return case when i % 10 = 0 then now() - interval '1 hour' else now() - interval '3 days' end;
insert into public.organisations (id, name, slug) values (pg_temp.id(1, 1), 'Large', 'large');
insert into public.events (id, organisation_id, name, slug, status, starts_at, ends_at)
select pg_temp.id(2, 1), pg_temp.id(1, 1), 'Event', 'event', 'published', now() + interval '1 day', now() + interval '2 days';
insert into public.ticket_types (id, organisation_id, event_id, name, quantity_sold)
select pg_temp.id(3, 1), pg_temp.id(1, 1), pg_temp.id(2, 1), 'Type', N;
insert into public.orders (id, organisation_id, event_id, reference, status, name, email, currency, send_email, created_at, updated_at, completed_at)
select pg_temp.id(4, i), pg_temp.id(1, 1), pg_temp.id(2, 1), lpad(i::text, 8, '0'), 'completed',
  case when i % 1000 = 0 then 'Erased' else 'Guest' end,
  case when i % 1000 = 0 then 'erased@erased.invalid' else 'guest' || i || '@example.com' end,
  'EUR', false, pg_temp.at(i), pg_temp.at(i), pg_temp.at(i)
from generate_series(1, N) i;
insert into public.attendees (
  id, organisation_id, event_id, order_id, ticket_type_id, name, email, currency, ticket_code, ticket_token, ticket_email_status, created_at,
  updated_at, erased_at, checked_in_at, inside
)
select pg_temp.id(5, i), pg_temp.id(1, 1), pg_temp.id(2, 1), pg_temp.id(4, i), pg_temp.id(3, 1),
  case when i % 1000 = 0 then 'Erased' else 'Guest' end,
  case when i % 1000 = 0 then 'erased@erased.invalid' else 'guest' || i || '@example.com' end,
  'EUR', lpad(i::text, 16, '0'), md5(i::text), 'not_requested', pg_temp.at(i), pg_temp.at(i),
  case when i % 1000 = 0 then now() - interval '2 days' end, case when i % 3 = 0 then now() - interval '2 days' end,
  i % 3 = 0
from generate_series(1, N) i;
insert into public.check_ins (id, organisation_id, event_id, attendee_id, code, result, direction, scanned_at, created_at)
select pg_temp.id(6, i), pg_temp.id(1, 1), pg_temp.id(2, 1), pg_temp.id(5, i), 'code', 'accepted', 'entry', now() - interval '2 days',
  now() - interval '2 days'
from generate_series(3, N, 3) i;
insert into public.notifications (organisation_id, type, data, subject_id, transaction_id, created_at)
select pg_temp.id(1, 1), t, json_build_object('object', 'order', 'id', pg_temp.id(4, i), 'attendees', json_build_array(
    json_build_object('object', 'attendee', 'id', pg_temp.id(5, i), 'name', case when i % 1000 = 0 then 'Erased' else 'Guest' end)
  )), pg_temp.id(4, i), '3', pg_temp.at(i)
from generate_series(1, N) i, unnest('{order.created,order.completed}'::public.notification_type[]) t;
insert into public.audit_entries (organisation_id, action, object_type, object_id, actor, source, created_at)
select pg_temp.id(1, 1), 'created', 'order', pg_temp.id(4, i), 'api_key', 'api', pg_temp.at(i) from generate_series(1, N) i;
insert into public.audit_entries (organisation_id, action, object_type, object_id, actor, source, changes, created_at)
select pg_temp.id(1, 1), 'updated', 'attendee', pg_temp.id(5, i), 'api_key', 'api',
  '{"name": {"from": "Guest", "to": "Guest"}, "email": {"from": "a@example.com", "to": "b@example.com"}}', pg_temp.at(i)
from generate_series(7, N, 100) i;
insert into public.emails (organisation_id, kind, attendee_id, status, next_attempt_at, sent_to, created_at)
select pg_temp.id(1, 1), 'event_changed', pg_temp.id(5, i), 'sent', null, 'guest' || i || '@example.com', now() - interval '1 day'
from generate_series(1, N, 10) i;
insert into public.email_opt_outs (email, event_id, organisation_id, created_at)
select 'guest' || i || '@example.com', pg_temp.id(2, 1), pg_temp.id(1, 1), now() - interval '1 hour' from generate_series(1, N, 1000) i;
insert into private.idempotency_records (organisation_id, family_id, idempotency_key, request_fingerprint, outcome)
select pg_temp.id(1, 1), pg_temp.id(1, 1), i::text, '', json_build_object('data', json_build_object('object', 'order', 'id', pg_temp.id(4, i)))
from generate_series(10, N, 10) i;
set session_replication_role = origin;
analyze;`

const path = await mkdtemp(join(tmpdir(), 'usher-bench-'))
const scratch = await startScratchDatabase(new AbortController().signal, path)
const { superuserPassword } = loadOrCreateSecrets(openDataDirectory(path))
const superuserUrl = databaseUrlFor(superuser, superuserPassword, Number(new URL(scratch.databaseUrl).port))
const opened: pg.Client[] = []
async function open(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: superuserUrl })
  opened.push(client)
  await client.connect()
  await client.query('set statement_timeout = 0')
  return client
}

let isOver = false
/** @returns the milliseconds of each registration. */
async function registerUntilOver(): Promise<number[]> {
  isOver = false
  const times: number[] = []
  const one = async (client: pg.Client, i: number) => {
    for (let n = 0; !isOver; n++) {
      const startedAt = performance.now()
      await client.query('begin')
      await client.query(
        `select set_config('request.jwt.claims', json_build_object('role', 'scope_attendees_write', 'source', 'api', 'organisation_id', id,
           'api_key_id', id, 'family_id', id)::text, true), set_config('role', 'scope_attendees_write', true)
         from (select '01900001-0000-7000-8000-000000000001'::uuid as id) o`,
      )
      await client.query(
        `select api.register_attendee(event_id => '01900002-0000-7000-8000-000000000001', ticket_type_id => '01900003-0000-7000-8000-000000000001',
           name => 'New', email => $1)`,
        [`new-${i}-${n}-${Math.random()}@example.com`],
      )
      await client.query('commit')
      times.push(performance.now() - startedAt)
    }
  }
  await Promise.all(registering.map(one))
  return times.toSorted((a, b) => a - b)
}

const at = (times: number[], share: number) => (times[Math.floor(times.length * share)] ?? Number.NaN).toFixed(1)
const line = (name: string, times: number[]) =>
  console.log(
    `${name}: ${times.length} registrations, p50 ${at(times, 0.5)} ms, p95 ${at(times, 0.95)}, p99 ${at(times, 0.99)}`,
  )

const registering: pg.Client[] = []
try {
  await applyMigrations(scratch.databaseUrl)
  const database = await open()
  const fillingSince = performance.now()
  await database.query(fillSql.replaceAll(/\bN\b/g, `${attendees}`))
  console.log(`${attendees} attendees, filled in ${((performance.now() - fillingSince) / 1000).toFixed(0)} s`)
  for (let i = 0; i < connections; i++) registering.push(await open())
  const watching = await open()

  const alone = registerUntilOver()
  await sleep(seconds * 1000)
  isOver = true
  line('without', await alone)

  const { pid } = (await database.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0] ?? { pid: 0 }
  const beside = registerUntilOver()
  await database.query("set work_mem = '128MB'; set jit = off")
  const startedAt = performance.now()
  let isVerified = false
  const verified = database
    .query(`select "check", count(*)::int from (${disagreementsSql}) d group by 1`, [null])
    .finally(() => {
      isVerified = true
    })
  let samples = 0
  let waits = 0
  let waitsForIt = 0
  while (!isVerified) {
    const { rows } = await watching.query<{ waits: number; waits_for_it: number }>(
      `select count(*)::int as waits, (count(*) filter (where $1 = any (pg_blocking_pids(pid))))::int as waits_for_it
       from pg_stat_activity where wait_event_type = 'Lock'`,
      [pid],
    )
    samples += 1
    waits += rows[0]?.waits ?? 0
    waitsForIt += rows[0]?.waits_for_it ?? 0
    await sleep(20)
  }
  const { rows } = await verified
  const took = (performance.now() - startedAt) / 1000
  isOver = true
  line('beside it', await beside)
  console.log(`recount: ${took.toFixed(1)} s, ${rows.length} checks that disagree ${JSON.stringify(rows.slice(0, 5))}`)
  console.log(`${samples} samples: ${waits} waits for locks, ${waitsForIt} of them for one of the recount`)
} finally {
  isOver = true
  for (const client of opened) await client.end()
  await scratch.remove()
}
