// Two people at once, who register, cancel, pay, move and scan.

import { expect, test } from 'vitest'
import { during, refusalOf, row, studio } from '../../support/database.ts'
import { createOrganisation, type TestEvent } from '../../support/organisation.ts'
import { rest } from '../../support/rest.ts'
import { meanwhile } from '../meanwhile.ts'

type Statement = [sql: string, values: unknown[]]

const addOrder = (event: TestEvent): Statement => [
  "insert into public.orders (event_id, name, email) values ($1, 'Guest', 'guest@example.com') returning id",
  [event.id],
]
const addAttendee = (orderId: string, ticketTypeId: string): Statement => [
  "insert into public.attendees (order_id, ticket_type_id, name, email) values ($1, $2, 'Guest', 'guest@example.com') returning id",
  [orderId, ticketTypeId],
]

const register = (event: TestEvent, key: string) =>
  rest(key)('POST', `/events/${event.id}/registrations`, {
    ticket_type_id: event.ticketTypeId,
    name: 'Mary Jackson',
    email: 'mary@example.com',
  })

test('registrations that wait while a capacity is set all get an answer, and none is a deadlock', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const key = await organisation.key()

  const answers = await meanwhile(
    (organiser) => organiser.query('update public.events set capacity = 5 where id = $1', [event.id]),
    () => Promise.all(Array.from({ length: 8 }, () => register(event, key))),
  )
  expect(answers.map((a) => a.status).sort()).toEqual([201, 201, 201, 201, 201, 409, 409, 409])
  expect(await event.sold()).toBe(5)
})

test('a currency cannot change under an order that is being made', async () => {
  const event = await (await createOrganisation()).event()
  const change = await meanwhile(
    (buyer) => buyer.query(...addOrder(event)),
    () => refusalOf(studio.query("update public.events set currency = 'USD' where id = $1", [event.id])),
  )
  expect(change).toMatchObject({ sqlstate: 'PT409', code: 'event_has_orders' })
})

test('an event cannot become a draft under an order that is being made', async () => {
  const event = await (await createOrganisation()).event()
  const change = await meanwhile(
    (buyer) => buyer.query(...addOrder(event)),
    () => refusalOf(studio.query("update public.events set status = 'draft' where id = $1", [event.id])),
  )
  expect(change).toMatchObject({ sqlstate: 'PT409', code: 'event_has_orders' })
})

test('nobody is added to an order that is being cancelled', async () => {
  const event = await (await createOrganisation()).event()
  const order = await row<{ id: string }>(...addOrder(event))
  const added = await meanwhile(
    (organiser) => organiser.query("update public.orders set status = 'cancelled' where id = $1", [order.id]),
    () => refusalOf(studio.query(...addAttendee(order.id, event.ticketTypeId))),
  )
  expect(added).toMatchObject({ sqlstate: 'PT409', code: 'order_cancelled' })
  expect(await event.sold()).toBe(0)
})

test('an attendee added to an order that is being paid for is active once it is', async () => {
  const event = await (await createOrganisation()).event()
  const { orderId } = await event.payer()
  const attendee = await meanwhile(
    (organiser) => organiser.query('insert into public.payments (order_id, amount) values ($1, 4900)', [orderId]),
    () => row<{ id: string }>(...addAttendee(orderId, event.ticketTypeId)),
  )
  expect(await row('select status from public.attendees where id = $1', [attendee.id])).toEqual({ status: 'active' })
})

test('moving an attendee to another ticket type and registering for the first do not deadlock', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event({ capacity: 10 })
  const other = await event.ticketType()
  const guests = await Promise.all(Array.from({ length: 4 }, () => event.guest()))
  const key = await organisation.key()

  const moves = guests.map(({ attendeeId }) =>
    studio.query('update public.attendees set ticket_type_id = $2 where id = $1', [attendeeId, other]),
  )
  const answers = await Promise.all([...Array.from({ length: 6 }, () => register(event, key)), ...moves])
  expect(answers.slice(0, 6).map((a) => 'status' in a && a.status)).toEqual(Array(6).fill(201))
  expect([await event.sold(), await event.sold(other)]).toEqual([6, 4])
})

test('editing the slug of an event does not hold up registrations', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const key = await organisation.key()
  await during(async (organiser) => {
    await organiser.query("update public.events set slug = slug || '-x', external_id = 'x' where id = $1", [event.id])
    expect((await register(event, key)).status).toBe(201)
  })
})

test('of two payments of the whole sum by hand at once, the second finds nothing due', async () => {
  const { orderId } = await (await (await createOrganisation()).event()).payer()
  const pay: Statement = ['insert into public.payments (order_id, amount) values ($1, 4900)', [orderId]]
  const second = await meanwhile(
    (organiser) => organiser.query(...pay),
    () => refusalOf(studio.query(...pay)),
  )
  expect(second).toMatchObject({ sqlstate: 'PT409', code: 'nothing_due' })
  expect(await row('select amount_paid::int from public.orders where id = $1', [orderId])).toEqual({
    amount_paid: 4900,
  })
})

test('of two scans of one ticket by hand at once, the second is a rejected row and no error', async () => {
  const event = await (await createOrganisation()).event()
  const { code } = await event.guest()
  const scan: Statement = [
    'insert into public.check_ins (event_id, code) values ($1, $2) returning result, reason',
    [event.id, code],
  ]
  const second = await meanwhile(
    (door) => door.query(...scan),
    () => row(...scan),
  )
  expect(second).toEqual({ result: 'rejected', reason: 'already_checked_in' })
})

test('a batch of scans and a cancellation of their order do not deadlock', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const send = rest(await organisation.key())
  const attendees = Array.from({ length: 50 }, (_, i) => ({ name: `Guest ${i}`, email: `g${i}@example.com` }))
  for (let round = 0; round < 6; round++) {
    const { data: order } = (
      await send('POST', `/events/${event.id}/registrations`, { ticket_type_id: event.ticketTypeId, attendees })
    ).body
    // Backwards, so that the two lock them from either end.
    const scans = order.attendees.map(({ ticket_code: code }: { ticket_code: string }, i: number) => ({
      scan_id: `${round}-${i}`,
      code,
      scanned_at: new Date(Date.UTC(2026, 0, 1) - i * 1000).toISOString(),
    }))
    const [batch, cancelled] = await Promise.all([
      send('POST', '/check-ins/batch', { event_id: event.id, scans }),
      send('POST', `/orders/${order.id}/cancel`),
    ])
    expect([batch.status, cancelled.status]).toEqual([200, 200])
    // One came first, whichever: all were let in, or none.
    expect([0, 50]).toContain(batch.body.data.accepted)
  }
})
