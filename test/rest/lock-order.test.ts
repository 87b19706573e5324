// Writes that touch the same rows from two ends at once: they wait for one another in one order, so that none of them is ended by
// a deadlock, which an API answers with 503.

import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { during, row, studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { createOrganiser } from '../support/organiser.ts'
import { addEndpoint, enqueued } from '../support/outbox.ts'
import { rest } from '../support/rest.ts'

const rounds = 4

/** How many deadlocks Postgres has ended in this database. Sessions report it when they are idle, so it may lag behind. */
const deadlocks = async () =>
  (
    await row<{ n: number }>(
      'select deadlocks::int as n from pg_stat_database where datname = current_database() and pg_stat_clear_snapshot() is not null',
    )
  ).n

/** Other tests of the shared database may end in a deadlock on purpose: what these rounds cause themselves, they cause each time. */
async function expectNoDeadlocks(work: () => Promise<void>): Promise<void> {
  const seen: number[] = []
  for (let attempt = 0; attempt < 3; attempt++) {
    const before = await deadlocks()
    await work()
    seen.push((await deadlocks()) - before)
    if (seen.at(-1) === 0) return
  }
  expect(seen, 'deadlocks in three attempts').toContain(0)
}

test('batches of two events that share codes in opposite orders are both judged', async () => {
  const organisation = await createOrganisation()
  const [here, there] = [await organisation.event(), await organisation.event()]
  const send = rest(await organisation.key('checkin:write'))
  const guests: string[] = []
  for (let i = 0; i < 30; i++) guests.push((await (i % 2 === 0 ? here : there).guest()).code)
  await expectNoDeadlocks(async () => {
    for (let round = 0; round < rounds; round++) {
      const scans = (codes: string[]) =>
        codes.map((code, i) => ({
          scan_id: randomUUID(),
          code,
          scanned_at: `2026-11-01T10:${String(i).padStart(2, '0')}:00Z`,
        }))
      const answers = await Promise.all([
        send('POST', '/check-ins/batch', { event_id: here.id, scans: scans(guests) }),
        send('POST', '/check-ins/batch', { event_id: there.id, scans: scans(guests.toReversed()) }),
      ])
      expect(answers.map(({ status }) => status)).toEqual([200, 200])
    }
  })
})

test('deliveries are pending once more while the types of their endpoint change', async () => {
  const organisation = await createOrganisation()
  const endpoint = await addEndpoint(organisation.id, ['event.updated', 'event.cancelled'])
  const send = rest(await organisation.key())
  await studio.query(
    `insert into public.notifications (organisation_id, type, data)
     select $1, 'event.updated', '{}' from generate_series(1, 300)`,
    [organisation.id],
  )
  await enqueued(organisation.id)
  const { id } = await row<{ id: string }>(
    'select id from public.webhook_deliveries where organisation_id = $1 order by id desc limit 1',
    [organisation.id],
  )
  await expectNoDeadlocks(async () => {
    for (let round = 0; round < rounds; round++) {
      await send('PATCH', `/webhook-endpoints/${endpoint}`, { types: ['event.updated', 'event.cancelled'] })
      // Half is pending, which the change of types cancels; the other half is what the redelivery takes.
      await studio.query(
        `update public.webhook_deliveries d
         set status = case when f.n % 2 = 0 then 'pending' else 'failed' end::public.webhook_delivery_status
         from (select id, row_number() over () as n from public.webhook_deliveries where organisation_id = $1) f
         where d.id = f.id`,
        [organisation.id],
      )
      const answers = await Promise.all([
        send('POST', `/webhook-endpoints/${endpoint}/redeliver`, { updated_after: '2020-01-01T00:00:00Z' }),
        send('PATCH', `/webhook-endpoints/${endpoint}`, { types: ['event.cancelled'] }),
        send('POST', `/webhook-deliveries/${id}/redeliver`),
      ])
      expect(answers[0].status).toBe(200)
      expect(answers[1].status).toBe(200)
      expect([200, 409]).toContain(answers[2].status)
    }
  })
})

test('an import of a group waits for a change of its order before it locks one of them', async () => {
  const { event, send } = await createOrganiser({}, 'attendees:write')
  const guests = ['first', 'second'].map((name) => ({
    external_id: name,
    name,
    email: `${name}@example.com`,
    ticket_type_id: event.ticketTypeId,
  }))
  const { body } = await send('POST', `/events/${event.id}/registrations`, { attendees: guests })
  const imported = await during(async (client) => {
    const { rows } = await client.query(
      'select pg_backend_pid() as pid from public.orders where id = $1 for no key update',
      [body.data.id],
    )
    const importing = send('POST', `/events/${event.id}/attendees/import`, {
      attendees: guests.map((guest) => ({ ...guest, name: 'Changed' })),
    })
    const waits = async () =>
      (await studio.query('select pid from pg_stat_activity where $1 = any(pg_blocking_pids(pid))', [rows[0].pid])).rows
    await expect.poll(waits).toHaveLength(1)
    // What cancels an order locks its attendees in any order.
    await client.query('select from public.attendees where order_id = $1 order by id desc for no key update nowait', [
      body.data.id,
    ])
    return { importing }
  })
  expect((await imported.importing).body.data.updated).toBe(2)
})

test('orders are reopened, expire, are registered and cancelled, with one code and two ticket types, in any order', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event({ capacity: 200 })
  const types = [
    await event.ticketType({ price: 3000, quantity: 90 }),
    await event.ticketType({ price: 2000, quantity: 90 }),
  ]
  await studio.query(
    "insert into public.promo_codes (event_id, code, percent_off, max_redemptions) values ($1, 'TEN', 10, 150)",
    [event.id],
  )
  const send = rest(await organisation.key())
  const register = (order: string[]) =>
    send('POST', `/events/${event.id}/registrations`, {
      payment_method: 'invoice',
      promo_code: 'TEN',
      attendees: order.map((ticket_type_id) => ({ ticket_type_id, name: 'Guest', email: 'guest@example.com' })),
    })
  const ids: string[] = []
  for (let i = 0; i < 12; i++) ids.push((await register(i % 2 === 0 ? types : types.toReversed())).body.data.id)
  const expire = async (orderIds: string[]) => {
    await studio.query("update public.orders set payment_due_at = now() where id = any ($1) and status = 'pending'", [
      orderIds,
    ])
    await studio.query('select private.expire_orders($1)', [orderIds])
  }
  await expectNoDeadlocks(async () => {
    for (let round = 0; round < rounds; round++) {
      const [back, out] = round % 2 === 0 ? [ids.slice(0, 6), ids.slice(6)] : [ids.slice(6), ids.slice(0, 6)]
      await expire(back)
      const [reopened, [registered]] = await Promise.all([
        Promise.all(back.map((id) => send('POST', `/orders/${id}/reopen`, { payment_due_at: '2041-01-01T00:00:00Z' }))),
        Promise.all([register(types.toReversed()), expire(out)]),
      ])
      expect(reopened.map(({ status }) => status)).toEqual(back.map(() => 200))
      await send('POST', `/orders/${registered.body.data.id}/cancel`)
    }
  })
})
