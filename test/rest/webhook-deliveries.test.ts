// Deliveries over REST: the log of them, by any of its filters, and sending one once more.

import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { createOrganiser } from '../support/organiser.ts'
import { addEndpoint, enqueued } from '../support/outbox.ts'
import { problemOf, rest } from '../support/rest.ts'
import { addAttendee } from '../support/studio.ts'

type Delivery = { id: string; type: string; webhook_endpoint_id: string; notification_id: string }

/** Two endpoints, one of which is subscribed to two types: two deliveries are pending for it, and one for the other. */
async function arrange() {
  const { organisation, event, send } = await createOrganiser()
  const everything = await addEndpoint(organisation.id)
  const created = await addEndpoint(organisation.id, ['order.created'])
  const { orderId } = await event.guest()
  await addAttendee(orderId, event.ticketTypeId)
  await enqueued(organisation.id)
  const list = async (query = ''): Promise<Delivery[]> => (await send('GET', `/webhook-deliveries${query}`)).body.data
  const [delivery] = await list(`?webhook_endpoint_id=${created}`)
  if (!delivery) throw new Error('nothing is pending')
  return { organisation, everything, created, send, list, delivery }
}

const settle = (id: string, status: 'delivered' | 'failed' | 'cancelled') =>
  studio.query(
    `update public.webhook_deliveries set status = $2, next_attempt_at = null, attempts = 3, last_attempt_at = now(),
       last_response_status = 503, last_response_body = 'Busy', last_response_milliseconds = 12 where id = $1`,
    [id, status],
  )

test('deliveries are listed newest first, by pages and by any of the filters', async () => {
  const { everything, created, list, send, delivery } = await arrange()
  const all = await list()
  // One guest is an order created and completed, with somebody added to it.
  expect(all).toHaveLength(4)
  expect(all.map(({ id }) => id)).toEqual(
    all
      .map(({ id }) => id)
      .toSorted()
      .reverse(),
  )
  const first = (await send('GET', '/webhook-deliveries?limit=2')).body
  const second = (await send('GET', `/webhook-deliveries?limit=2&cursor=${first.next_cursor}`)).body
  expect([...first.data, ...second.data]).toEqual(all)

  await settle(delivery.id, 'failed')
  const ids = async (query: string) => (await list(query)).map(({ id }) => id)
  const where = (matches: (d: Delivery) => boolean) => all.filter(matches).map(({ id }) => id)
  expect(await ids(`?webhook_endpoint_id=${everything}`)).toEqual(where((d) => d.webhook_endpoint_id === everything))
  expect(await ids(`?webhook_endpoint_id=${created}`)).toEqual([delivery.id])
  expect(await ids(`?notification_id=${delivery.notification_id}`)).toEqual(where((d) => d.type === 'order.created'))
  expect(await ids('?type=order.completed')).toEqual(where((d) => d.type === 'order.completed'))
  expect(await ids('?status=failed')).toEqual([delivery.id])
  expect(await ids('?status=pending')).toEqual(where((d) => d.id !== delivery.id))
  expect(await ids(`?status=failed&type=order.completed`)).toEqual([])
})

test("nothing becomes pending once more of what the key may not read, nor another organisation's", async () => {
  const [ours, theirs] = [await arrange(), await arrange()]
  await settle(ours.delivery.id, 'failed')
  const narrow = rest(await ours.organisation.key('events:write', 'events:read', 'attendees:read'))
  for (const [send, id] of [
    [narrow, ours.delivery.id],
    [theirs.send, ours.delivery.id],
    [ours.send, randomUUID()],
  ] as const) {
    expect(problemOf(await send('POST', `/webhook-deliveries/${id}/redeliver`))).toEqual([
      404,
      'not_found',
      'webhook_delivery_id',
    ])
  }
  expect(await ours.list('?status=failed')).toHaveLength(1)
  // A filter by another organisation's endpoint finds nothing, as one that is not.
  expect(await ours.list(`?webhook_endpoint_id=${theirs.created}`)).toEqual([])
  expect(await ours.list(`?notification_id=${theirs.delivery.notification_id}`)).toEqual([])
})

test('what failed since a time is due once more, and nothing else', async () => {
  const { everything, created, list, send } = await arrange()
  const all = await list()
  const ofEverything = all.filter((d) => d.webhook_endpoint_id === everything)
  const [failed, delivered, pending] = ofEverything
  const other = all.find((d) => d.webhook_endpoint_id === created)
  if (!failed || !delivered || !pending || !other) throw new Error('four are pending')
  await settle(failed.id, 'failed')
  await settle(delivered.id, 'delivered')
  await settle(other.id, 'failed')
  const again = (body: object) => send('POST', `/webhook-endpoints/${everything}/redeliver`, body)
  const since = new Date(Date.now() - 60_000).toISOString()

  // Not what failed before or after. What it failed to take may be older than the failure.
  expect((await again({ updated_after: new Date(Date.now() + 60_000).toISOString() })).body.data.redelivered).toBe(0)
  await studio.query("update public.webhook_deliveries set created_at = now() - interval '1 day' where id = $1", [
    failed.id,
  ])
  expect(
    (await again({ updated_after: '2020-01-01T00:00:00Z', created_before: '2020-01-02T00:00:00Z' })).body.data
      .redelivered,
  ).toBe(0)
  expect((await list('?status=failed')).map(({ id }) => id).sort()).toEqual([failed.id, other.id].sort())

  expect((await again({ updated_after: since })).body.data).toEqual({
    object: 'webhook_redelivery',
    webhook_endpoint_id: everything,
    redelivered: 1,
  })
  expect(await list('?status=failed')).toMatchObject([{ id: other.id }])
  expect((await list('?status=pending')).find(({ id }) => id === failed.id)).toMatchObject({ attempts: 0 })
  await settle(failed.id, 'failed')
  expect((await again({})).body.data.redelivered).toBe(1)
  expect((await again({ updated_after: since, status: 'delivered' })).body.data.redelivered).toBe(1)
  expect(await list('?status=delivered')).toEqual([])

  await send('PATCH', `/webhook-endpoints/${everything}`, { status: 'disabled' })
  expect((await again({ updated_after: since })).body.error.code).toBe('webhook_endpoint_disabled')
  const strange = rest(await (await createOrganisation()).key())
  expect((await strange('POST', `/webhook-endpoints/${everything}/redeliver`, { updated_after: since })).status).toBe(
    404,
  )
})

test('after a short outage what waits for its next attempt is due at once, and what is in flight is left alone', async () => {
  const { everything, list, send } = await arrange()
  const [failed, waiting, inFlight] = await list(`?webhook_endpoint_id=${everything}`)
  if (!failed || !waiting || !inFlight) throw new Error('three are pending')
  await settle(failed.id, 'failed')
  const attempted = (id: string, claimedUntil: string | null) =>
    studio.query(
      `update public.webhook_deliveries set attempts = 2, next_attempt_at = now() + interval '1 hour',
         claim = case when $2::interval is not null then gen_random_uuid() end, claimed_until = now() + $2::interval where id = $1`,
      [id, claimedUntil],
    )
  await attempted(waiting.id, null)
  await attempted(inFlight.id, '1 hour')
  const since = new Date(Date.now() - 60_000).toISOString()
  const again = async (body: object) =>
    (await send('POST', `/webhook-endpoints/${everything}/redeliver`, { updated_after: since, ...body })).body.data
      .redelivered
  const due = async () =>
    (
      await studio.query(
        'select id from public.webhook_deliveries where webhook_endpoint_id = $1 and attempts = 0 and next_attempt_at <= now()',
        [everything],
      )
    ).rows.map(({ id }) => id)

  expect(await again({ status: 'failed' })).toBe(1)
  expect(await due()).toEqual([failed.id])
  expect(await again({})).toBe(1)
  expect((await due()).sort()).toEqual([failed.id, waiting.id].sort())
  expect([await again({}), await again({ status: 'pending' })]).toEqual([0, 0])
})
