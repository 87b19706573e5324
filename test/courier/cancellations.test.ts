// An event of more than 5,000 tickets is cancelled by the courier, in one transaction: until that is committed it is what it was, whoever
// dies, and nothing of what is done meanwhile is lost.

import { setTimeout as sleep } from 'node:timers/promises'
import { expect, inject, test } from 'vitest'
import { cancellationQueue } from '../../src/courier/cancellation-queue.ts'
import { runCourierOnce } from '../../src/courier/courier.ts'
import { prefixOf } from '../../src/gateway/api-key.ts'
import { createCourierRpc } from '../../src/gateway/courier-rpc.ts'
import { DataApi } from '../../src/gateway/data-api.ts'
import { createTokens } from '../../src/gateway/tokens.ts'
import { createLog } from '../../src/process/log.ts'
import { brokenRules } from '../properties/invariants.ts'
import { during, row, studio } from '../support/database.ts'
import { createOrganisation, type TestEvent } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'
import { edit, read } from '../support/studio.ts'

const tickets = 5_001

const tokens = await createTokens({ secret: inject('jwtSecret') })
const rpc = createCourierRpc(new DataApi({ url: inject('dataApiUrl') }, tokens), tokens)
const log = createLog('silent')
const runCourier = () => runCourierOnce([cancellationQueue(rpc, log)], log, 60_000)

/** Six orders of a thousand guests with an address each, the last of one. */
async function fill(event: TestEvent): Promise<void> {
  await studio.query(
    `with orders as (
       insert into public.orders (event_id, name, email, send_email)
       select $1, 'Buyer', 'buyer@example.com', true from generate_series(1, 6) returning id
     ), numbered as (select id, row_number() over (order by id) - 1 as n from orders)
     insert into public.attendees (order_id, ticket_type_id, name, email)
     select o.id, $2, 'Guest', 'guest-' || g || '@example.com'
     from generate_series(0, $3::integer - 1) g join numbered o on o.n = g / 1000`,
    [event.id, event.ticketTypeId, tickets],
  )
}

async function arrange() {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  await fill(event)
  const key = await organisation.key()
  const send = rest(key)
  return {
    organisation,
    event,
    key,
    cancel: (body: object = {}, headers = {}) => send('POST', `/events/${event.id}/cancel`, body, headers),
    counts: async () => ({
      ...(await row(
        `select
           (select count(*)::int from public.attendees where event_id = $1) as attendees,
           (select count(*)::int from public.attendees where event_id = $1 and status = 'cancelled') as cancelled,
           (select count(*)::int from public.orders where event_id = $1 and status <> 'cancelled') as orders,
           (select coalesce(sum(amount), 0)::int from public.payments where event_id = $1) as received`,
        [event.id],
      )),
      mistakes: (await brokenRules(event.id)).length,
    }),
    told: async () =>
      (
        await studio.query<{ kind: string; message: string; count: number }>(
          `select e.kind, e.message, count(*)::int from public.emails e join public.attendees a on a.id = e.attendee_id
           where a.event_id = $1 and e.kind <> 'ticket' group by 1, 2`,
          [event.id],
        )
      ).rows,
  }
}

const isPublished = { status: 'published', cancelled_at: null, cancelling_since: expect.any(Date) }
const isCancelled = { status: 'cancelled', cancelled_at: expect.any(Date), cancelling_since: null }
const stateOf = ({ id }: TestEvent) => read('events', id, 'status', 'cancelled_at', 'cancelling_since')
const carryOut = ({ id }: TestEvent) => rpc('carry_out_cancellation', { event_id: id }, 60_000)

test('a large event is cancelled by the courier, for the key that asked, whoever dies, registers or pays meanwhile', async () => {
  const { organisation, event, key, cancel, counts, told } = await arrange()
  const payers = await Promise.all(Array.from({ length: 5 }, () => event.payer()))
  const [first, second, ...others] = payers.map(({ orderId }) => orderId)
  const all = tickets + payers.length
  const wish = { notify: 'everybody', message: 'The hall is under water.\n\nWe are sorry.' }
  const dry = await cancel({ ...wish, dry_run: true })
  expect([dry.status, dry.body.data.cancelling_since]).toEqual([200, null])
  expect(dry.body.effect).toMatchObject({ orders: 6 + payers.length, attendees: all, refund_due: 0, dry_run: true })

  const asked = await cancel(wish, { 'Idempotency-Key': 'one' })
  expect(asked).toMatchObject({
    status: 202,
    body: {
      data: { status: 'published', cancelling_since: expect.any(String) },
      effect: { ...dry.body.effect, dry_run: false },
    },
  })
  expect(await stateOf(event)).toEqual(isPublished)
  const again = await cancel(wish, { 'Idempotency-Key': 'one' })
  expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([202, 'true'])
  expect(await cancel({ notify: 'nobody' }), 'the same wish').toMatchObject({ status: 202, body: asked.body })
  expect((await cancel({ dry_run: true })).body.effect).toEqual({ ...asked.body.effect, dry_run: true })

  // It has more time than a call, and waits for payments in flight; a crash leaves all as it was.
  const pay = 'insert into public.payments (order_id, amount) values ($1, 4900)'
  const crashed = await during((one) =>
    during(async (two) => {
      await one.query(pay, [first])
      await two.query(pay, [second])
      const carried = carryOut(event).catch((error) => error)
      // Together longer than the role of the courier has, and neither as long as anybody waits for a lock.
      await sleep(5_000)
      await one.query('commit')
      await sleep(5_000)
      expect((await cancel()).status, 'the same wish, while it is carried out').toBe(202)
      expect(await carryOut(event), 'by another courier').toBe(false)
      expect(await stateOf(event)).toEqual(isPublished)
      const { rows } = await two.query(
        `select pg_terminate_backend(a.pid) as ended from pg_stat_activity a where pg_backend_pid() = any (pg_blocking_pids(a.pid))`,
      )
      expect(rows).toEqual([{ ended: true }])
      return carried
    }),
  )
  expect(crashed).toMatchObject({ code: 'temporarily_unavailable' })
  expect(await stateOf(event)).toEqual(isPublished)

  const late = rest(await organisation.key())
  const guest = { ticket_type_id: event.ticketTypeId, name: 'Late', email: 'late@example.com' }
  const register = async () => (await late('POST', `/events/${event.id}/registrations`, guest)).status
  expect(await register()).toBe(201)
  await studio.query('update public.api_keys set revoked_at = now() where prefix = $1', [prefixOf(key)])
  const carried = carryOut(event)
  const registered = await Promise.all(
    Array.from({ length: 20 }, async (_, n) => {
      await sleep(n * 50)
      return register()
    }),
  )
  const paid = await Promise.all(
    others.map(async (id) => (await late('POST', `/orders/${id}/payments`, { amount: 4900 })).status),
  )
  expect(await carried).toBe(true)
  expect(await carryOut(event), 'once more').toBe(false)
  expect(await stateOf(event)).toEqual(isCancelled)
  expect(registered.every((status) => [201, 409, 503].includes(status))).toBe(true)
  const attendees = all + 1 + registered.filter((status) => status === 201).length
  const received = 4900 * (1 + paid.filter((status) => status === 201).length)
  expect(await counts()).toEqual({ attendees, cancelled: attendees, orders: 0, received, mistakes: 0 })
  expect((await told()).filter(({ kind }) => kind === 'event_cancelled')).toMatchObject([{ message: wish.message }])
  expect(
    await row(
      `select e.actor, e.source, k.prefix, e.changes -> 'status' as status
       from public.audit_entries e join public.api_keys k on k.id = e.api_key_id where e.object_id = $1 and e.action = 'updated'
       order by e.id desc limit 1`,
      [event.id],
    ),
  ).toEqual({
    actor: 'api_key',
    source: 'api',
    prefix: prefixOf(key),
    status: { from: 'published', to: 'cancelled' },
  })
  const logged = await studio.query(
    "select type from public.notifications where subject_id = $1 and type = 'event.cancelled'",
    [event.id],
  )
  expect(logged.rowCount).toBe(1)
})

test('what became of the event meanwhile counts: told as was asked, or nothing done; a copy does nothing', async () => {
  const { event, cancel, told, counts } = await arrange()
  expect((await cancel({ notify: 'everybody' })).status).toBe(202)
  await during(async (copy) => {
    await copy.query('update private.installations set system_identifier = system_identifier + 1')
    await copy.query("insert into private.installations (system_identifier, names) select 1, '{elsewhere}'")
    expect((await copy.query('select api.claim_cancellations(10) as claimed')).rows).toEqual([{ claimed: [] }])
    expect((await copy.query('select api.poll_queues() as due')).rows[0].due).not.toContain('cancellations')
  })
  expect(await rpc('poll_queues', {})).toContain('cancellations')

  await edit('events', event.id, "status = 'completed'")
  expect(await stateOf(event)).toMatchObject({ status: 'completed', cancelling_since: null })
  expect((await cancel()).body.error).toMatchObject({ code: 'invalid_transition' })
  await edit('events', event.id, "status = 'published'")
  await runCourier()
  expect(await stateOf(event)).toEqual({ status: 'published', cancelled_at: null, cancelling_since: null })

  expect((await cancel({ notify: 'everybody', message: 'Sorry.' })).status).toBe(202)
  await edit('events', event.id, "status = 'cancelled'")
  expect(await stateOf(event)).toEqual(isCancelled)
  expect(await told()).toEqual([])
  await runCourier()
  expect(await told()).toEqual([{ kind: 'event_cancelled', message: 'Sorry.', count: tickets }])
  expect(await counts()).toEqual({ attendees: tickets, cancelled: tickets, orders: 0, received: 0, mistakes: 0 })
})

test('in the grid, cancelling_since is read only', async () => {
  const event = await (await createOrganisation()).event()
  await expect(edit('events', event.id, 'cancelling_since = now()')).rejects.toThrow(/cannot be edited/)
})
