// Usher as `usher start` runs it, in a process of its own on a temporary data directory, and organisations on it that no rate limit stops.

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { prefixOf } from '../src/gateway/api-key.ts'
import { superuser } from '../src/local/cluster.ts'
import { openDataDirectory } from '../src/local/data-directory.ts'
import { readSecrets } from '../src/local/secrets.ts'
import { scopes } from '../src/operations/operation.ts'

export type Stack = {
  url: string
  dataApiUrl: string
  jwtSecret: string
  databaseUrl: string
  database: pg.Client
  pids: { node: number; postgrest: number; postgres: number }
  /** Time from the start of the process until it says that it is ready. */
  readyMs: number
  /** Stops it; the data directory is kept if it was given. */
  stop(): Promise<void>
}

const running = new Set<Stack>()

/** Also after a signal in the middle of a scenario. */
export const stopAll = () => Promise.all([...running].map((stack) => stack.stop()))

const ownFolder = join(import.meta.dirname, '..')

export async function startStack(given?: string, folder = ownFolder, env: NodeJS.ProcessEnv = {}): Promise<Stack> {
  const dataDir = given ?? (await mkdtemp(join(tmpdir(), 'usher-bench-')))
  const began = performance.now()
  // One log line a request, as in production.
  const usher = spawn(process.execPath, ['bin/usher.js', 'start'], {
    cwd: folder,
    env: { ...process.env, ...env, USHER_DATA_DIR: dataDir, PORT: '0', LOG_FORMAT: 'json', METRICS_PORT: '' },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const ended = once(usher, 'exit')
  const remove = () => (given === undefined ? rm(dataDir, { recursive: true, force: true }) : undefined)
  try {
    const url = await new Promise<string>((ready, failed) => {
      let printed = ''
      usher.stdout.on('data', (chunk) => {
        printed += chunk
        const address = /ready at (http:\S+)/.exec(printed)?.[1]
        if (address !== undefined) ready(address)
      })
      usher.once('exit', () => failed(new Error('Usher did not start.')))
    })
    const readyMs = performance.now() - began
    // What every checkout keeps, whatever its modules are: two files of the data directory, and `usher db-url`.
    const read = async (name: string) => JSON.parse(await readFile(join(dataDir, name), 'utf8'))
    const { usher: node, postgres, postgrest, dataApiUrl } = await read('running.json')
    const { jwtSecret } = await read('secrets.json')
    const { stdout } = await promisify(execFile)(process.execPath, ['bin/usher.js', 'db-url'], {
      cwd: folder,
      env: { ...process.env, USHER_DATA_DIR: dataDir },
    })
    const databaseUrl = stdout.trim()
    const database = new pg.Client(databaseUrl)
    await database.connect()
    // Another plan of the organisation is all that the rate limit needs.
    await database.query(
      "insert into public.plans (name, rate_limit_per_minute) values ('bench', 100000000) on conflict do nothing",
    )
    const stack: Stack = {
      url,
      dataApiUrl,
      jwtSecret,
      databaseUrl,
      database,
      pids: { node: node.pid, postgrest: postgrest.pid, postgres: postgres.pid },
      readyMs,
      async stop() {
        if (!running.delete(stack)) return
        await database.end()
        usher.kill('SIGTERM')
        await ended
        await remove()
      },
    }
    running.add(stack)
    return stack
  } catch (error) {
    usher.kill('SIGTERM')
    await ended
    await remove()
    throw error
  }
}

/** A connection of the superuser to the stack of a data directory. */
export async function connectAsSuperuser({ databaseUrl }: Stack, dataDir: string): Promise<pg.Client> {
  const url = new URL(databaseUrl)
  url.username = superuser
  url.password = readSecrets(openDataDirectory(dataDir))?.superuserPassword ?? ''
  const client = new pg.Client(url.href)
  await client.connect()
  return client
}

/** An organisation with a published event, and a key with every scope. */
export type Organiser = {
  key: string
  holder: { api_key_id: string; family_id: string; organisation_id: string }
  eventId: string
  ticketTypeIds: string[]
}

let organisers = 0

export async function addOrganiser(
  { database }: Stack,
  options: { ticketTypes?: number; price?: number } = {},
): Promise<Organiser> {
  const { ticketTypes = 1, price = 0 } = options
  const slug = `bench-${organisers++}`
  const organisation = await database.query(
    "insert into public.organisations (name, slug, plan) values ($1, $1, 'bench') returning id",
    [slug],
  )
  const { id } = organisation.rows[0]
  const made = await database.query(
    "select public.create_api_key('bench', $1::public.api_scope[], $2) ->> 'key' as key",
    [scopes, id],
  )
  const { key } = made.rows[0]
  const holder = await database.query(
    'select id as api_key_id, family_id, organisation_id from public.api_keys where prefix = $1',
    [prefixOf(key)],
  )
  const event = await database.query(
    `insert into public.events (organisation_id, name, slug, starts_at, ends_at)
     values ($1, $2, $2, now() + interval '1 day', now() + interval '2 days') returning id`,
    [id, slug],
  )
  const eventId: string = event.rows[0].id
  const types = await database.query(
    `insert into public.ticket_types (event_id, name, price)
     select $1, 'Type ' || i, $3 from generate_series(1, $2::integer) i returning id`,
    [eventId, ticketTypes, price],
  )
  await database.query("update public.events set status = 'published' where id = $1", [eventId])
  return { key, holder: holder.rows[0], eventId, ticketTypeIds: types.rows.map((row) => row.id) }
}

/** Registers guests by SQL, up to 50 an order, without ticket e-mails. */
export async function registerInBulk(
  { database }: Stack,
  { eventId, ticketTypeIds }: Organiser,
  guests: number,
  perOrder = 1,
): Promise<void> {
  await database.query('begin')
  await database.query(
    `insert into public.orders (event_id, name, email, send_email)
     select $1, 'Bulk', 'bulk-' || gen_random_uuid() || '@example.com', false from generate_series(1, $2::integer)`,
    [eventId, guests / perOrder],
  )
  await database.query(
    `insert into public.attendees (order_id, ticket_type_id, name, email)
     select o.id, $2, 'Bulk', 'bulk-' || gen_random_uuid() || '@example.com'
     from public.orders o, generate_series(1, $3::integer) where o.event_id = $1 and o.created_at = now()`,
    [eventId, ticketTypeIds[0], perOrder],
  )
  await database.query('commit')
}

/** Returns once the database does nothing any more: requests that were cut off may still be running. */
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
