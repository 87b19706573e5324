// Usher as `usher start` runs it, in a process of its own on a temporary data directory, and organisations on it that no rate limit stops.

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { prefixOf } from '../src/gateway/api-key.ts'
import { scopes } from '../src/operations/operation.ts'

export const ownFolder = join(import.meta.dirname, '..')

export type Stack = {
  url: string
  dataApiUrl: string
  jwtSecret: string
  database: pg.Client
  pids: { node: number; postgrest: number; postgres: number }
}

const closers: (() => unknown)[] = []

/** Runs when the scenario ends, the last one first; also after a signal. */
export const atEnd = (close: () => unknown): void => void closers.push(close)

export async function stopAll(): Promise<void> {
  for (let close = closers.pop(); close !== undefined; close = closers.pop()) await close()
}

/** Ends a process with the scenario, and waits for its exit. */
export function endWithScenario(child: ChildProcess): void {
  const ended = once(child, 'exit')
  atEnd(async () => {
    child.kill('SIGTERM')
    await ended
  })
}

/** `usher start` of a checkout, with one log line a request, as in production. */
export async function startUsher(folder: string, env: NodeJS.ProcessEnv): Promise<{ url: string; pid: number }> {
  const usher = spawn(process.execPath, ['bin/usher.js', 'start'], {
    cwd: folder,
    env: { ...process.env, PORT: '0', LOG_FORMAT: 'json', METRICS_PORT: '', ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  endWithScenario(usher)
  const url = await new Promise<string>((ready, failed) => {
    usher.stdout.on('data', (chunk) => {
      const address = /ready at (http:\S+)/.exec(String(chunk))?.[1]
      if (address !== undefined) ready(address)
    })
    usher.once('exit', () => failed(new Error(`Usher did not start in ${folder}.`)))
  })
  return { url, pid: usher.pid as number }
}

export async function startStack(folder = ownFolder, env: NodeJS.ProcessEnv = {}): Promise<Stack> {
  const dataDir = await mkdtemp(join(tmpdir(), 'usher-bench-'))
  // Processes that were killed while they started may still write.
  atEnd(() => rm(dataDir, { recursive: true, force: true, maxRetries: 10 }))
  const { url } = await startUsher(folder, { ...env, USHER_DATA_DIR: dataDir })
  // Every checkout has these, whatever its modules are: two files of the data directory, and `usher db-url`.
  const read = async (name: string) => JSON.parse(await readFile(join(dataDir, name), 'utf8'))
  const { usher: node, postgres, postgrest, dataApiUrl } = await read('running.json')
  const { jwtSecret } = await read('secrets.json')
  const { stdout } = await promisify(execFile)(process.execPath, ['bin/usher.js', 'db-url'], {
    cwd: folder,
    env: { ...process.env, USHER_DATA_DIR: dataDir },
  })
  const database = new pg.Client(stdout.trim())
  await database.connect()
  atEnd(() => database.end())
  // The rate limit of an organisation is that of its plan.
  await database.query("insert into public.plans (name, rate_limit_per_minute) values ('bench', 100000000)")
  return {
    url,
    dataApiUrl,
    jwtSecret,
    database,
    pids: { node: node.pid, postgrest: postgrest.pid, postgres: postgres.pid },
  }
}

/** An organisation with a published event, and a key with every scope. */
export type Organiser = {
  key: string
  holder: { api_key_id: string; family_id: string; organisation_id: string }
  eventId: string
  ticketTypeId: string
}

let organisers = 0

export async function addOrganiser({ database }: Stack, price = 0): Promise<Organiser> {
  const one = async (sql: string, values: unknown[]) => (await database.query(sql, values)).rows[0]
  const slug = `bench-${organisers++}`
  const organisation = await one(
    "insert into public.organisations (name, slug, plan) values ($1, $1, 'bench') returning id",
    [slug],
  )
  const { key } = await one("select public.create_api_key('bench', $1::public.api_scope[], $2) ->> 'key' as key", [
    scopes,
    organisation.id,
  ])
  const holder = await one(
    'select id as api_key_id, family_id, organisation_id from public.api_keys where prefix = $1',
    [prefixOf(key)],
  )
  const event = await one(
    `insert into public.events (organisation_id, name, slug, starts_at, ends_at)
     values ($1, $2, $2, now() + interval '1 day', now() + interval '2 days') returning id`,
    [organisation.id, slug],
  )
  const ticketType = await one(
    "insert into public.ticket_types (event_id, name, price) values ($1, 'Ticket', $2) returning id",
    [event.id, price],
  )
  await database.query("update public.events set status = 'published' where id = $1", [event.id])
  return { key, holder, eventId: event.id, ticketTypeId: ticketType.id }
}

/** Registers guests by SQL, each with an address of their own. Returns the ids of their orders. */
export async function registerInBulk(
  { database }: Stack,
  { eventId, ticketTypeId }: Organiser,
  orders: number,
  { perOrder = 1, sendEmail = false, paymentMethod = null as string | null } = {},
): Promise<string[]> {
  const ids: string[] = []
  while (ids.length < orders) {
    const { rows } = await database.query(
      `with added as (
         insert into public.orders (event_id, name, email, send_email, payment_method)
         select $1, 'Bulk', 'bulk@example.com', $3, $4 from generate_series(1, $5::integer) returning id
       ), registered as (
         insert into public.attendees (order_id, ticket_type_id, name, email)
         select id, $2, 'Bulk', gen_random_uuid() || '@example.com' from added, generate_series(1, $6::integer)
       )
       select id from added`,
      [eventId, ticketTypeId, sendEmail, paymentMethod, Math.min(1_000 / perOrder, orders - ids.length), perOrder],
    )
    ids.push(...rows.map(({ id }) => id))
  }
  return ids
}

/** Returns once the database is idle: requests that were cut off may still be running. */
export async function settle({ database }: Stack): Promise<void> {
  for (let idle = 0, tries = 0; idle < 3 && tries < 200; tries++) {
    const { rows } = await database.query(
      `select count(*)::integer as active from pg_stat_activity
       where backend_type = 'client backend' and state <> 'idle' and pid <> pg_backend_pid()`,
    )
    idle = rows[0].active === 0 ? idle + 1 : 0
    await sleep(50)
  }
}

/** CPU time of a process in milliseconds, from /proc: NaN where there is none. Linux counts hundredths of a second. */
export const cpuMs = (pid: number): number => ticks(pid, [11, 12]) * 10

/** The same with its children, also those that have ended: each connection of Postgres is a process. */
export function cpuWithChildrenMs(pid: number): number {
  const own = ticks(pid, [11, 12, 13, 14]) * 10
  if (Number.isNaN(own)) return own
  return childrenOf(pid).reduce((sum, child) => sum + (cpuMs(child) || 0), own)
}

/** CPU time of the processes that Postgres has now, in milliseconds, to the microsecond. */
export function backendsCpuMs(pid: number): number {
  const ns = (child: number) => Number(readFileSync(`/proc/${child}/schedstat`, 'utf8').split(' ')[0])
  return childrenOf(pid).reduce((sum, child) => sum + ns(child) / 1_000_000, 0)
}

/** The process that an API starts to make deliveries. */
export const courierOf = ({ pids }: Stack): number =>
  childrenOf(pids.node).find((child) => readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('courier')) ??
  Number.NaN

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)

function ticks(pid: number, fields: number[]): number {
  try {
    const all = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return fields.reduce((sum, field) => sum + Number(all[field]), 0)
  } catch {
    return Number.NaN
  }
}
