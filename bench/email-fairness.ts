// Measures whether many tickets of one organisation delay a single ticket of another: `npm run bench:email-fairness`, or with `-- 3000 20`
// for the number of tickets and of seconds to wait. Queues the tickets of one organisation on a new stack, registers a guest of another,
// and measures when that ticket arrives at an SMTP server that takes 150 ms for each. If it does not arrive in time, its delay is
// estimated from the rate of the others.

import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { SMTPServer } from 'smtp-server'
import { readConfig } from '../src/cli/config.ts'
import { start } from '../src/cli/start.ts'
import { createOrganisation, issueKey } from '../src/local/admin.ts'
import { findRunningStack } from '../src/local/stack.ts'
import { scopes } from '../src/operations/operation.ts'
import { createLog } from '../src/process/log.ts'

const [tickets = 3_000, timeoutSeconds = 20] = process.argv.slice(2).map(Number)
const smtpDelayMs = 150

const arrivals: string[] = []
const server = new SMTPServer({
  authOptional: true,
  disabledCommands: ['STARTTLS'],
  disableReverseLookup: true,
  onData(stream, { envelope }, callback) {
    stream.resume()
    stream.on('end', async () => {
      await sleep(smtpDelayMs)
      arrivals.push(...envelope.rcptTo.map(({ address }) => address))
      callback()
    })
  },
})
server.on('error', () => {})
server.listen(0, '127.0.0.1')
await once(server.server, 'listening')
const { port } = server.server.address() as AddressInfo

const dataDir = await mkdtemp(join(tmpdir(), 'usher-bench-'))
const config = readConfig({
  USHER_DATA_DIR: dataDir,
  PORT: '0',
  SMTP_URL: `smtp://127.0.0.1:${port}`,
  MAIL_FROM: 'tickets@usher.example',
})
const usher = await start(config, createLog('silent'), () => {})
const running = await findRunningStack(dataDir)
if (running === null) throw new Error('The stack does not run.')
const database = new pg.Client({ connectionString: running.databaseUrl })
try {
  await database.connect()
  const event = async (slug: string) => {
    const { id } = await createOrganisation(database, { name: slug, slug, plan: 'enterprise' })
    const { rows } = await database.query(
      `insert into public.events (organisation_id, name, slug, starts_at, ends_at)
       values ($1, $2, $2, now() + interval '1 day', now() + interval '2 days') returning id`,
      [id, slug],
    )
    const eventId = rows[0].id
    const types = await database.query(
      "insert into public.ticket_types (event_id, name) values ($1, 'G') returning id",
      [eventId],
    )
    await database.query("update public.events set status = 'published' where id = $1", [eventId])
    return { eventId, ticketTypeId: types.rows[0].id }
  }
  const many = await event('many')
  const one = await event('one')
  const key = await issueKey(database, { organisation: 'one', name: 'bench', scopes })
  await database.query("insert into public.orders (event_id, name, email) values ($1, 'Group', 'group@example.com')", [
    many.eventId,
  ])
  await database.query(
    `insert into public.attendees (order_id, ticket_type_id, name, email)
     select o.id, $2, 'Guest', 'many' || i || '@example.com'
     from public.orders o, generate_series(1, $3::integer) i where o.event_id = $1`,
    [many.eventId, many.ticketTypeId, tickets],
  )
  await sleep(3_000)

  const before = arrivals.length
  const startedAt = performance.now()
  const response = await fetch(`${usher.url}/api/v1/events/${one.eventId}/registrations`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ ticket_type_id: one.ticketTypeId, name: 'Guest', email: 'one@example.com' }),
  })
  if (response.status !== 201) throw new Error(`registration: ${response.status}`)
  const waited = () => (performance.now() - startedAt) / 1000
  while (!arrivals.includes('one@example.com') && waited() < timeoutSeconds) await sleep(10)
  const seconds = waited()
  if (arrivals.includes('one@example.com')) {
    console.log(`The ticket arrived after ${seconds.toFixed(2)} s, with ${tickets - before} others pending.`)
  } else {
    const rate = (arrivals.length - before) / seconds
    const delay = (tickets - before) / rate
    console.log(
      `The ticket did not arrive within ${timeoutSeconds} s; estimated at ${rate.toFixed(0)} a second: ${delay.toFixed(0)} s.`,
    )
  }
} finally {
  await database.end()
  await usher.stop()
  server.close()
  await rm(dataDir, { recursive: true, force: true })
}
