// Measures how long a large event takes to change and to cancel, everybody being told, and whether that delays other organisations:
// `npm run bench:cancel-event`, or with `-- 25000 50 60` for the number of attendees, of webhook endpoints, and of seconds to watch. Runs with
// one attendee per order and with 50, each on a new stack. Prints the time of the change, the dry run, the call that cancels, until it is
// cancelled, and the delay of another organisation's webhooks meanwhile.

import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { readConfig } from '../src/cli/config.ts'
import { start } from '../src/cli/start.ts'
import { createOrganisation, issueKey } from '../src/local/admin.ts'
import { findRunningStack } from '../src/local/stack.ts'
import { scopes } from '../src/operations/operation.ts'
import { createLog } from '../src/process/log.ts'

const [attendees = 25_000, endpoints = 50, watchSeconds = 60] = process.argv.slice(2).map(Number)
const registrationIntervalMs = 250

const arrivals = new Map<string, number>()
const receiver = createServer((req, res) => {
  let body = ''
  req.on('data', (chunk) => {
    body += chunk
  })
  req.on('end', () => {
    if (req.url === '/other') arrivals.set(JSON.parse(body).data.id, performance.now())
    res.writeHead(204).end()
  })
})
await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
const receiverUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`

const line = (name: string, value: string) => console.log(`  ${name.padEnd(44)} ${value}`)

async function measure(perOrder: number): Promise<void> {
  console.log(`${attendees / perOrder} orders of ${perOrder}, ${endpoints} endpoints`)
  const dataDir = await mkdtemp(join(tmpdir(), 'usher-bench-'))
  const usher = await start(readConfig({ USHER_DATA_DIR: dataDir, PORT: '0' }), createLog('silent'), () => {})
  const running = await findRunningStack(dataDir)
  if (running === null) throw new Error('The stack does not run.')
  const database = new pg.Client({ connectionString: running.databaseUrl })
  try {
    await database.connect()
    const big = await seed(database, 'big')
    const other = await seed(database, 'other')
    for (let left = attendees; left > 0; left -= 1_000) {
      await register(database, big, Math.min(left, 1_000), perOrder)
      // Otherwise the plans made for an empty database would be kept.
      if (left === attendees) await database.query('analyze public.orders, public.attendees')
    }
    const send: Send = async (key, method, path, body) => {
      const response = await fetch(`${usher.url}/api/v1${path}`, {
        method,
        headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      })
      return { status: response.status, body: (await response.json()) as { data: { id: string } } }
    }
    for (let i = 0; i < endpoints; i++) {
      const types = ['order.cancelled', 'attendee.cancelled', 'event.cancelled']
      await send(big.key, 'POST', '/webhook-endpoints', { url: `${receiverUrl}/big`, types })
    }
    await send(other.key, 'POST', '/webhook-endpoints', { url: `${receiverUrl}/other`, types: ['order.completed'] })

    const timed = async (name: string, method: string, path: string, body: object) => {
      const startedAt = performance.now()
      const { status } = await send(big.key, method, `/events/${big.eventId}${path}`, { notify: 'everybody', ...body })
      line(name, `${((performance.now() - startedAt) / 1000).toFixed(1)} s, answered ${status}`)
      return status
    }
    await timed('change', 'PATCH', '', { name: 'Big event' })
    await timed('dry run', 'POST', '/cancel', { dry_run: true })
    const watch = watchWebhooks(send, other)
    const startedAt = performance.now()
    if ((await timed('cancellation', 'POST', '/cancel', {})) < 300) {
      const isCancelled = async () =>
        (await database.query('select status from public.events where id = $1', [big.eventId])).rows[0].status ===
        'cancelled'
      while (!(await isCancelled())) await sleep(200)
      line('cancelled', `${((performance.now() - startedAt) / 1000).toFixed(1)} s after the call`)
      await sleep(watchSeconds * 1000)
    }
    const delays = await watch.stop()
    const share = (part: number) => `${Math.round(delays[Math.ceil(delays.length * part) - 1] ?? 0)} ms`
    line("delay of another organisation's webhooks", `p50 ${share(0.5)}, p95 ${share(0.95)}, max ${share(1)}`)
  } finally {
    await database.end()
    await usher.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

type Send = (
  key: string,
  method: string,
  path: string,
  body: object,
) => Promise<{ status: number; body: { data: { id: string } } }>

type Organiser = { key: string; eventId: string; ticketTypeId: string }

/** Registers guests at a steady rate until `stop`, which resolves with the delays of their webhooks in milliseconds, sorted. */
function watchWebhooks(send: Send, { key, eventId, ticketTypeId }: Organiser): { stop(): Promise<number[]> } {
  const registered: [id: string, at: number][] = []
  let watching = true
  const watch = (async () => {
    while (watching) {
      const body = { ticket_type_id: ticketTypeId, name: 'Guest', email: 'guest@example.com', send_email: false }
      const answer = await send(key, 'POST', `/events/${eventId}/registrations`, body)
      if (answer.status === 201) registered.push([answer.body.data.id, performance.now()])
      await sleep(registrationIntervalMs)
    }
  })()
  return {
    async stop() {
      watching = false
      await watch
      await sleep(3_000)
      return registered
        .map(([id, at]) => Math.max((arrivals.get(id) ?? Number.POSITIVE_INFINITY) - at, 0))
        .toSorted((a, b) => a - b)
    },
  }
}

async function seed(database: pg.Client, slug: string): Promise<Organiser> {
  const { id } = await createOrganisation(database, { name: slug, slug, plan: 'enterprise' })
  const { rows } = await database.query(
    `insert into public.events (organisation_id, name, slug, starts_at, ends_at)
     values ($1, $2, $2, now() + interval '1 day', now() + interval '2 days') returning id`,
    [id, slug],
  )
  const eventId = rows[0].id
  const types = await database.query("insert into public.ticket_types (event_id, name) values ($1, 'G') returning id", [
    eventId,
  ])
  await database.query("update public.events set status = 'published' where id = $1", [eventId])
  const key = await issueKey(database, { organisation: slug, name: 'bench', scopes })
  return { key, eventId, ticketTypeId: types.rows[0].id }
}

/** By SQL, without ticket e-mails. */
async function register(database: pg.Client, { eventId, ticketTypeId }: Organiser, guests: number, perOrder: number) {
  await database.query('begin')
  await database.query(
    `insert into public.orders (event_id, name, email, send_email)
     select $1, 'Guest ' || i, 'guest@example.com', false from generate_series(1, $2::integer) i`,
    [eventId, guests / perOrder],
  )
  await database.query(
    `insert into public.attendees (order_id, ticket_type_id, name, email)
     select o.id, $2, 'Guest', gen_random_uuid() || '@example.com'
     from public.orders o, generate_series(1, $3::integer) where o.event_id = $1 and o.created_at = now()`,
    [eventId, ticketTypeId, perOrder],
  )
  await database.query('commit')
}

try {
  for (const perOrder of [1, 50]) await measure(perOrder)
} finally {
  receiver.closeAllConnections()
  receiver.close()
}
