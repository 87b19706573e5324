// Couriers are killed at random while an endpoint fails a third of the time: afterwards everything that was pending has arrived,
// nothing is left claimed, and every ticket was e-mailed exactly once, but where its courier died between sending and saying so.
// Time passes by SQL: what would be tried again in five minutes is due now.

import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, expect, test } from 'vitest'
import { serveApp } from '../../scripts/support/serve-app.ts'
import { createOrganisation, issueKey } from '../../src/local/admin.ts'
import { startEmbeddedStack } from '../../src/local/stack.ts'
import { scopes } from '../../src/operations/operation.ts'
import { createLog } from '../../src/process/log.ts'
import { cleanUp, spawnUsher, waitFor } from '../cli/support.ts'
import { makeDataDirectory } from '../support/data-directory.ts'
import { rest } from '../support/rest.ts'
import { hang, reset, startWebhookReceiver, status } from '../support/webhook-receiver.ts'

afterAll(cleanUp)

const guests = 25
const endpoints = ['a', 'b']
const overdue = 5
const failures = [status(500), hang, reset, status(302, { Location: '/elsewhere' })]

test('nothing that was pending is lost, whoever dies', async () => {
  const dataDir = await makeDataDirectory()
  const stack = await startEmbeddedStack({ dataDir, progress: () => {} })
  const app = await serveApp({ dataApiUrl: stack.dataApiUrl, jwtSecret: stack.jwtSecret, log: createLog('silent') })
  const database = new pg.Client({ connectionString: stack.databaseUrl })
  const receiver = await startWebhookReceiver()
  try {
    await database.connect()
    const one = async (sql: string, values: unknown[] = []) => (await database.query(sql, values)).rows[0]

    /** Webhooks that an endpoint said it has: its path and the webhook-id. */
    const accepted = new Set<string>()
    let calm = false
    receiver.answerWith((response, webhook) => {
      const failure = calm || Math.random() > 1 / 3 ? undefined : failures[Math.floor(Math.random() * failures.length)]
      if (failure) return failure(response, webhook)
      accepted.add(`${webhook.path} ${webhook.headers['webhook-id']}`)
      status(204)(response, webhook)
    })

    const organisation = await createOrganisation(database, { name: 'Chaos', slug: 'chaos', plan: 'enterprise' })
    const send = rest(await issueKey(database, { organisation: 'chaos', name: 'test', scopes }), app.url)
    const event = await one(
      `insert into public.events (organisation_id, name, slug, starts_at, ends_at)
       values ($1, 'Chaos', 'chaos', now() + interval '1 day', now() + interval '2 days') returning id`,
      [organisation.id],
    )
    const ticketType = await one("insert into public.ticket_types (event_id, name) values ($1, 'G') returning id", [
      event.id,
    ])
    await database.query("update public.events set status = 'published' where id = $1", [event.id])
    const seat = await one(
      "insert into public.ticket_types (event_id, name, price) values ($1, 'Seat', 4900) returning id",
      [event.id],
    )
    for (let i = 0; i < overdue; i++) {
      const { id } = await one(
        `insert into public.orders (event_id, name, email, payment_method, payment_due_at, send_email)
         values ($1, 'Buyer', 'buyer@example.com', 'invoice', now(), false) returning id`,
        [event.id],
      )
      await database.query(
        `insert into public.attendees (order_id, ticket_type_id, name, email)
         values ($1, $2, 'Guest', 'guest@example.com')`,
        [id, seat.id],
      )
    }
    async function registerAndArrive(): Promise<void> {
      const one = async (i: number) => {
        const body = { ticket_type_id: ticketType.id, name: `Guest ${i}`, email: `g${i}@example.com` }
        const answer = await send('POST', `/events/${event.id}/registrations`, body)
        expect(answer.status).toBe(201)
        const code = answer.body.data.attendees[0].ticket_code
        expect((await send('POST', '/check-ins', { event_id: event.id, code })).status).toBe(200)
      }
      await Promise.all(Array.from({ length: guests }, (_, i) => one(i)))
    }

    const courier = async () => {
      const started = spawnUsher(['courier'], { dataDir, env: { WEBHOOK_TIMEOUT_SECONDS: '2', LOG_LEVEL: 'error' } })
      await waitFor(() => started.stdout().includes('ready') || started.child.exitCode !== null)
      expect(started.child.exitCode, started.stderr()).toBeNull()
      return started
    }
    const emails = async () => (await readdir(join(dataDir, 'mail')).catch(() => [])).filter((n) => n.endsWith('.eml'))
    const timesSent = async (id: string) => (await emails()).filter((name) => name.includes(id)).length

    const couriers = await Promise.all([courier(), courier()])
    // One on this machine can be added once a courier has announced a stack for developing.
    for (const name of endpoints) {
      const url = `${receiver.url}/${name}`
      await send('POST', '/webhook-endpoints', { url, types: ['order.completed', 'attendee.checked_in'] })
    }
    const working = registerAndArrive()
    // In the middle of what they have to do: there are as many webhooks for each endpoint as guests and arrivals.
    await expect.poll(() => accepted.size, { interval: 10 }).toBeGreaterThan(5 + Math.random() * guests)
    for (const { child } of couriers) child.kill('SIGKILL')
    await Promise.all([working, ...couriers.map(({ ended }) => ended)])
    // PostgREST finishes what the dead asked for: until then their calls are under way.
    await expect
      .poll(() =>
        one("select count(*)::int as n from pg_stat_activity where state = 'active' and usename = 'authenticator'"),
      )
      .toEqual({ n: 0 })
    const { rows: claimed } = await database.query(
      "select id from public.emails where claim is not null and status = 'queued'",
    )
    /** Ticket e-mails whose courier died after it had sent it and before it said so. */
    const unsettled = new Set<string>()
    for (const { id } of claimed) if ((await timesSent(id)) > 0) unsettled.add(id)
    // Time passes.
    await database.query(
      "update public.emails set next_attempt_at = now(), claimed_until = null where status = 'queued'",
    )
    await database.query(
      "update public.webhook_deliveries set next_attempt_at = now(), claimed_until = null where status = 'pending'",
    )

    calm = true
    const last = await Promise.all([courier(), courier()])
    const pending = () =>
      one(`select
        (select count(*)::int from public.webhook_deliveries where status = 'pending') as webhooks,
        (select count(*)::int from public.emails where status = 'queued') as emails`)
    while (Object.values(await pending()).some((n) => Number(n) > 0)) {
      await database.query(
        "update public.webhook_deliveries set next_attempt_at = now() where status = 'pending' and claim is null",
      )
      await sleep(200)
    }
    for (const { child } of last) child.kill('SIGTERM')
    expect((await Promise.all(last.map(({ ended }) => ended))).map(({ code }) => code)).toEqual([0, 0])

    expect(await pending()).toEqual({ webhooks: 0, emails: 0 })
    const { rows: deliveries } = await database.query(
      `select w.url, d.notification_id as id, d.status, d.claim from public.webhook_deliveries d
       join public.webhook_endpoints w on w.id = d.webhook_endpoint_id`,
    )
    expect(deliveries).toHaveLength(endpoints.length * guests * 2)
    expect(deliveries.filter(({ status, claim }) => status !== 'delivered' || claim !== null)).toEqual([])
    expect(deliveries.filter(({ url, id }) => !accepted.has(`${new URL(url).pathname} ${id}`))).toEqual([])

    const { rows: sent } = await database.query('select id, status, claim from public.emails')
    expect(sent).toHaveLength(guests)
    expect(sent.filter(({ status, claim }) => status !== 'sent' || claim !== null)).toEqual([])
    const files = await emails()
    const counted = sent.map(({ id }) => [id, files.filter((name) => name.includes(id)).length])
    expect(counted.filter(([id, n]) => n !== (unsettled.has(id) ? 2 : 1))).toEqual([])

    // Each once, however many couriers found them overdue.
    const { rows: expiries } = await database.query(
      "select type, count(*)::int as times from public.notifications where type in ('order.expired', 'order.cancelled') group by type order by type",
    )
    expect(expiries).toEqual(['order.cancelled', 'order.expired'].map((type) => ({ type, times: overdue })))
  } finally {
    await database.end()
    await receiver.close()
    await app.close()
    await stack.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
})
