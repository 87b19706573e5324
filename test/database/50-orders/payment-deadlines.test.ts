// Payment deadlines: who gets one, when the buyer is reminded, what happens after it, and that a payment of the same moment is either
// received or refused. Other tests share the database, so what the courier does for all orders is called for those of one event.

import { expect, test } from 'vitest'
import { during, refusalOf, row, studio } from '../../support/database.ts'
import { interfaces } from '../../support/interfaces.ts'
import { createOrganisation, type TestEvent } from '../../support/organisation.ts'
import { byTypeAndId, lockOutbox } from '../../support/outbox.ts'
import { rest } from '../../support/rest.ts'
import { addAttendee, addOrder, addPromoCode, edit, pay, read, refusalOfEdit } from '../../support/studio.ts'
import { rolledBack } from '../as-courier.ts'
import { meanwhile } from '../meanwhile.ts'
import { outboxFixture, tell } from '../outbox-fixture.ts'

const dayMs = 86_400_000
const inDays = (days: number) => new Date(Date.now() + days * dayMs).toISOString()

const expire = async (...ids: string[]) =>
  (await row<{ ids: string[] }>('select private.expire_orders($1) as ids', [ids])).ids
const remind = async (...ids: string[]) =>
  (await row<{ ids: string[] }>('select private.remind_of_payments($1) as ids', [ids])).ids

const dueAt = (id: string, when: string | null) => edit('orders', id, 'payment_due_at = $2', [when])
/** Of an order that is to expire: a time before now is refused. */
const dueNow = (id: string) => edit('orders', id, 'payment_due_at = now()')

/** An order of two tickets at 30.00, to be paid. */
const unpaid = async (event: TestEvent, { paid = 0, sendEmail = true } = {}) =>
  addOrder(event, { subtotal: 3000, paid, sendEmail, ticketTypeIds: [event.ticketTypeId, event.ticketTypeId] })

/** Kinds of the e-mails to the buyer, beside those of a registration and a payment. */
const mailed = async (orderId: string) =>
  (
    await row<{ kinds: string[] }>(
      `select array(select e.kind::text from public.emails e
         where e.order_id = $1 and e.kind in ('payment_reminder', 'order_expired') order by e.id) as kinds`,
      [orderId],
    )
  ).kinds

const unpaidTicket = async (orderId: string) =>
  (await row<{ id: string }>('select id from public.attendees where order_id = $1 order by id limit 1', [orderId])).id

test.each(interfaces)('an order that is to be paid is given the days of its event, %s', async (_where, open) => {
  const { event, actions, send, order } = await outboxFixture(open)
  const ticketTypeId = await event.ticketType({ price: 4900 })
  const without = await order(await actions.register({ ticketTypeId, invoice: true }))
  const changed = await send('PATCH', `/events/${event.id}`, { payment_due_days: 14 })
  expect([changed.status, changed.body.data.payment_due_days]).toEqual([200, 14])

  const made = await order(await actions.register({ ticketTypeId, invoice: true }))
  expect(Date.parse(made.payment_due_at as string) - Date.parse(made.created_at as string)).toBe(14 * dayMs)
  expect((await order(without.id)).payment_due_at).toBeNull()
  const complimentary = await order(await actions.register({ ticketTypeId }))
  expect(complimentary).toMatchObject({ status: 'completed', payment_due_at: null, cancellation_reason: null })
})

test.each(interfaces)(
  'an order of nothing, or of nothing that is left to pay, keeps no deadline, %s',
  async (_where, open) => {
    const { event, actions, order, attendeesOf } = await outboxFixture(open)
    await edit('events', event.id, 'payment_due_days = 14')
    const ticketTypeId = await event.ticketType({ price: 4900 })
    const promoCode = await addPromoCode(event, 100)
    const nothing = { status: 'completed', total: 0, payment_method: 'invoice', payment_due_at: null }
    expect(await order(await actions.register({ ticketTypeId, invoice: true, promoCode }))).toMatchObject(nothing)
    expect(await order(await actions.register({ invoice: true }))).toMatchObject(nothing)

    const id = await actions.register({ ticketTypeId, invoice: true })
    await addAttendee(id, event.ticketTypeId)
    expect(await order(id)).toMatchObject({ status: 'pending', payment_due_at: expect.any(String) })
    const priced = (await attendeesOf(id)).find(({ price }) => price === 4900)
    await actions.cancelAttendee(String(priced?.id))
    expect(await order(id)).toMatchObject(nothing)

    // What was paid in time still says by when it was to be.
    const paid = await actions.register({ ticketTypeId, invoice: true })
    await actions.pay(paid, 4900)
    expect(await order(paid)).toMatchObject({ status: 'completed', payment_due_at: expect.any(String) })
  },
)

test.each(interfaces)('an order that is overdue expires and gives back what it held, %s', async (_where, open) => {
  const { event, send, told, order, attendeesOf } = await outboxFixture(open)
  const ticketTypeId = await event.ticketType({ price: 3000, quantity: 2 })
  const promoCode = await addPromoCode(event, 50)
  const orderId = await open(send, event).register({ ticketTypeId, invoice: true, promoCode, guests: 2 })
  expect(await expire(orderId)).toEqual([])
  await dueAt(orderId, inDays(1))
  expect(await expire(orderId)).toEqual([])
  await dueNow(orderId)
  await told()

  expect(await expire(orderId)).toEqual([orderId])
  const expired = await order(orderId)
  expect(expired).toMatchObject({
    status: 'cancelled',
    cancellation_reason: 'expired',
    payment_status: 'not_required',
    amount_due: 0,
    cancelled_at: expect.any(String),
    attendees: [{ status: 'cancelled' }, { status: 'cancelled' }],
  })
  expect(await event.sold(ticketTypeId)).toBe(0)
  const uses = 'select times_redeemed from public.promo_codes where event_id = $1'
  expect(await row(uses, [event.id])).toEqual({ times_redeemed: 0 })
  // Cancelled as well, for those who know of no expiry.
  const cancelled = (await attendeesOf(orderId)).map((attendee) => tell('attendee.cancelled', attendee))
  expect(await told()).toEqual(
    byTypeAndId([...cancelled, tell('order.cancelled', expired), tell('order.expired', expired)]),
  )

  expect(await mailed(orderId)).toEqual(['order_expired'])

  // Once, and for good: neither money nor time helps now.
  expect(await expire(orderId)).toEqual([])
  await expect(open(send, event).pay(orderId, 3000)).rejects.toThrow('order_expired')
  expect(await refusalOf(dueAt(orderId, inDays(1)))).toMatchObject({ code: 'order_expired' })
  const late = await send('POST', `/orders/${orderId}/payments`, { amount: 3000 })
  expect([late.status, late.body.error]).toMatchObject([
    409,
    { code: 'order_expired', details: { payment_due_at: expired.payment_due_at, cancelled_at: expired.cancelled_at } },
  ])
  expect(await order(orderId)).toEqual(expired)
})

test('what is paid in part stays pending past its deadline, and the courier reminds once when that comes', async () => {
  const event = await (await createOrganisation()).event()
  const { id } = await unpaid(event, { paid: 1000 })
  await dueAt(id, inDays(30))
  await dueNow(id)
  const silent = await unpaid(event, { paid: 1000, sendEmail: false })
  await dueNow(silent.id)
  expect(await expire(id, silent.id)).toEqual([])
  expect(await remind(id, silent.id)).toEqual([id])
  for (const order of [id, silent.id]) {
    expect(await read('orders', order, 'status', 'payment_status', 'payment_check_at')).toEqual({
      status: 'pending',
      payment_status: 'partially_paid',
      payment_check_at: null,
    })
  }
  expect([await expire(id), await remind(id), await mailed(id)]).toEqual([[], [], ['payment_reminder']])
  // A ticket less changes nothing of that.
  await edit('attendees', await unpaidTicket(id), "status = 'cancelled'")
  expect([await expire(id), await remind(id)]).toEqual([[], []])
  await pay(id, 2000)
  expect(await read('orders', id, 'status')).toEqual({ status: 'completed' })
})

test('a buyer who pays a part after the reminder is reminded again when the deadline comes, and not within a day', async () => {
  const event = await (await createOrganisation()).event()
  const [far, near] = [await unpaid(event), await unpaid(event)]
  await dueAt(far.id, inDays(2))
  await dueAt(near.id, inDays(0.5))
  expect((await remind(far.id, near.id)).toSorted()).toEqual([far.id, near.id].toSorted())
  for (const { id } of [far, near]) await pay(id, 1000)
  const checks = async (id: string) => read('orders', id, 'payment_check_at = payment_due_at as at_the_deadline')
  expect([await checks(far.id), await checks(near.id)]).toEqual([{ at_the_deadline: true }, { at_the_deadline: null }])
})

test('an overdue order whose part payment is voided is unpaid: it has three days, is reminded, and then expires', async () => {
  const event = await (await createOrganisation()).event()
  const [overdue, inTime] = [await unpaid(event, { paid: 1000 }), await unpaid(event, { paid: 1000 })]
  await dueNow(overdue.id)
  await dueAt(inTime.id, inDays(1))
  await remind(overdue.id)
  const voidAll = (id: string) =>
    studio.query(
      'insert into public.payment_voids (payment_id) select p.id from public.payments p where p.order_id = $1',
      [id],
    )
  for (const { id } of [overdue, inTime]) await voidAll(id)
  expect(await expire(overdue.id)).toEqual([])
  expect(
    await read(
      'orders',
      overdue.id,
      'status',
      'payment_status',
      "payment_due_at between now() + interval '71 hours' and now() + interval '72 hours' as in_three_days",
      'payment_check_at <= payment_due_at as is_looked_at',
    ),
  ).toEqual({ status: 'pending', payment_status: 'awaiting_payment', in_three_days: true, is_looked_at: true })
  // One that is not overdue keeps its deadline.
  expect(
    await read('orders', inTime.id, "payment_due_at < now() + interval '1 day' as kept", 'payment_status'),
  ).toEqual({ kept: true, payment_status: 'awaiting_payment' })
  await dueNow(overdue.id)
  expect(await expire(overdue.id)).toEqual([overdue.id])
  expect(await mailed(overdue.id)).toEqual(['payment_reminder', 'order_expired'])
})

test('a payment counts until the order has expired, and a completed order never does', async () => {
  const { id } = await unpaid(await (await createOrganisation()).event())
  await dueNow(id)
  await pay(id, 6000)
  expect(await expire(id)).toEqual([])
  await studio.query(
    'insert into public.payment_voids (payment_id) select p.id from public.payments p where p.order_id = $1',
    [id],
  )
  expect(await expire(id)).toEqual([])
  expect(await read('orders', id, 'status', 'payment_status')).toEqual({
    status: 'completed',
    payment_status: 'awaiting_payment',
  })
  expect(await refusalOf(dueAt(id, inDays(3)))).toMatchObject({ code: 'order_completed', param: 'payment_due_at' })
})

test('an order that was cancelled says why, and takes no deadline', async () => {
  const event = await (await createOrganisation()).event()
  const [asked, withLastTicket, withEvent] = [await unpaid(event), await unpaid(event), await unpaid(event)]
  await edit('orders', asked.id, "status = 'cancelled'")
  for (const id of withLastTicket.attendeeIds) await edit('attendees', id, "status = 'cancelled'")
  await edit('events', event.id, "status = 'cancelled'")
  const reasons = [asked, withLastTicket, withEvent].map(
    async ({ id }) => (await read('orders', id, 'cancellation_reason')).cancellation_reason,
  )
  expect(await Promise.all(reasons)).toEqual(['requested', 'requested', 'event_cancelled'])
  expect(await refusalOf(dueAt(asked.id, inDays(1)))).toMatchObject({ code: 'order_cancelled' })
})

test('why an order is cancelled has to be true', async () => {
  const { id } = await unpaid(await (await createOrganisation()).event())
  await dueAt(id, inDays(1))
  for (const reason of ['expired', 'event_cancelled']) {
    const refusal = await refusalOfEdit('orders', id, `status = 'cancelled', cancellation_reason = '${reason}'`)
    expect(refusal).toMatchObject({ code: 'read_only_field', param: 'cancellation_reason' })
  }
})

test('the buyer is reminded once of each deadline: three days before it, or at once of one that is set nearer', async () => {
  const { id } = await unpaid(await (await createOrganisation()).event())
  await dueAt(id, inDays(4))
  expect(await read('orders', id, 'payment_due_at - payment_remind_at as lead')).toMatchObject({ lead: { days: 3 } })
  expect(await remind(id)).toEqual([])
  await dueAt(id, inDays(2))
  expect(await remind(id)).toEqual([id])
  expect(await read('orders', id, 'payment_reminded_at', 'status')).toMatchObject({
    payment_reminded_at: expect.any(Date),
    status: 'pending',
  })
  expect(await remind(id)).toEqual([])
  await dueAt(id, inDays(1))
  expect(await remind(id)).toEqual([id])
  // Too late for that.
  await dueNow(id)
  expect(await remind(id)).toEqual([])
  expect(await mailed(id)).toEqual(['payment_reminder', 'payment_reminder'])
})

test('a deadline that is near from the beginning is reminded of in the middle', async () => {
  const event = await (await createOrganisation()).event()
  await edit('events', event.id, 'payment_due_days = 1')
  const { id } = await unpaid(event)
  expect(await read('orders', id, 'payment_remind_at - created_at as wait')).toMatchObject({ wait: { hours: 12 } })
  expect(await remind(id)).toEqual([])
})

test('who wants no e-mail is not reminded, and an order of which nothing is due does not expire', async () => {
  const event = await (await createOrganisation()).event()
  const { id } = await unpaid(event, { sendEmail: false })
  await dueAt(id, inDays(1))
  expect(await remind(id)).toEqual([])
  await dueNow(id)
  expect(await expire(id)).toEqual([id])
  expect(await mailed(id)).toEqual([])
  const { id: empty } = await row<{ id: string }>(
    `insert into public.orders (event_id, name, email, payment_method, payment_due_at)
     values ($1, 'Buyer', 'buyer@example.com', 'invoice', now()) returning id`,
    [event.id],
  )
  expect(await expire(empty)).toEqual([])
})

test('of a payment and the expiry at once, the one that holds the order is done, and the other one not', async () => {
  const event = await (await createOrganisation()).event()
  const [paidFirst, expiredFirst] = [await unpaid(event), await unpaid(event)]
  for (const { id } of [paidFirst, expiredFirst]) await dueNow(id)

  await during(async (payer) => {
    await payer.query('insert into public.payments (order_id, amount) values ($1, 6000)', [paidFirst.id])
    // It does not wait for a payment in flight.
    expect(await expire(paidFirst.id, expiredFirst.id)).toEqual([expiredFirst.id])
    await payer.query('commit')
  })
  expect(await expire(paidFirst.id)).toEqual([])
  expect(await read('orders', paidFirst.id, 'status')).toEqual({ status: 'completed' })

  const third = await unpaid(event)
  await dueNow(third.id)
  const refused = await meanwhile(
    (courier) => courier.query('select private.expire_orders($1)', [[third.id]]),
    () => refusalOf(pay(third.id, 6000)),
  )
  expect(refused).toMatchObject({ sqlstate: 'PT409', code: 'order_expired' })
  expect(await read('orders', third.id, 'amount_paid::int as paid')).toEqual({ paid: 0 })
  expect(await event.sold()).toBe(2)
})

test('the courier takes a bounded number, and of each organisation in turn', async () => {
  const [large, small] = [await createOrganisation(), await createOrganisation()]
  const event = await large.event()
  const overdue = [await unpaid(event), await unpaid(event), await unpaid(event)]
  const soon = await unpaid(event)
  const other = await unpaid(await small.event())
  for (const { id } of [...overdue, other]) await dueNow(id)
  await dueAt(soon.id, inDays(1))
  const expired = (ids: string[]) =>
    `select array(select id from public.orders where id = any ('{${ids}}') and cancellation_reason = 'expired') as ids`
  await rolledBack(async (client, asCourier) => {
    // Whatever other tests have due is out of the way.
    await lockOutbox(client, 'public.orders')
    await client.query(
      `update public.orders set payment_due_at = null where payment_check_at <= now() and organisation_id <> all ($1)`,
      [[large.id, small.id]],
    )
    expect(await asCourier('select api.enforce_payment_deadlines(2)')).toEqual({
      expired: 2,
      reminded: 0,
      has_more: true,
    })
    const first = (await client.query(expired([...overdue, other].map(({ id }) => id)))).rows[0].ids
    expect(first).toContain(other.id)
    expect(await asCourier('select api.enforce_payment_deadlines(10)')).toEqual({
      expired: 2,
      reminded: 1,
      has_more: false,
    })
    expect((await client.query('select payment_reminded_at from public.orders where id = $1', [soon.id])).rows).toEqual(
      [{ payment_reminded_at: expect.any(Date) }],
    )
  })
})

test('a deadline that is over is refused wherever it is set, and one before the order was made always', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const send = rest(await organisation.key('orders:read', 'orders:write'))
  const { id } = await unpaid(event)
  const hint = expect.stringMatching(/send expire_now to update_order, or set now\(\) by hand/)
  const { over } = await row<{ over: string }>(
    "select private.rfc3339(created_at + interval '1 millisecond') as over from public.orders where id = $1",
    [id],
  )
  const patch = async (body: object) => {
    const { status, body: answer } = await send('PATCH', `/orders/${id}`, body)
    return status < 300 ? answer : answer.error
  }
  const refused = { code: 'validation_failed', param: 'payment_due_at', hint }
  const readAs = (of: RegExp) => ({ ...refused, message: expect.stringMatching(of) })
  expect(await patch({ payment_due_at: over })).toMatchObject(
    readAs(/^payment_due_at was read as \d{4}-\d\d-\d\d \d\d:\d\d Europe\/Berlin, which is in the past\.$/),
  )
  for (const body of [{}, { expire_now: true }]) {
    expect(await patch({ payment_due_at: '2001-01-01T00:00:00Z', ...body })).toMatchObject(
      readAs(/was read as 2001-01-01 01:00 Europe\/Berlin, which is before the order was made/),
    )
  }
  // As by hand, in a row that is there and in a new one.
  for (const due of [over, inDays(-1), '2001-01-01']) {
    expect(await refusalOf(dueAt(id, due))).toMatchObject({ code: 'validation_failed', param: 'payment_due_at' })
  }
  expect(
    await refusalOf(
      studio.query(
        `insert into public.orders (event_id, name, email, payment_method, payment_due_at)
         values ($1, 'Buyer', 'buyer@example.com', 'invoice', now() - interval '1 minute')`,
        [event.id],
      ),
    ),
  ).toMatchObject({ code: 'validation_failed', param: 'payment_due_at' })

  // Made elsewhere long ago: its days may be over, and nobody typed a deadline.
  await studio.query('update public.events set payment_due_days = 14 where id = $1', [event.id])
  await studio.query(
    `insert into public.orders (event_id, name, email, payment_method, created_at)
     values ($1, 'Buyer', 'buyer@example.com', 'invoice', now() - interval '30 days')`,
    [event.id],
  )
  await studio.query('update public.events set payment_due_days = null where id = $1', [event.id])

  // Meant, as it says: alone, with a time to come, or of what does not expire it says nothing.
  const later = { payment_due_at: inDays(1), expire_now: true }
  for (const body of [{ name: 'Buyer', expire_now: true }, later, { payment_due_at: null, expire_now: true }]) {
    expect(await patch(body)).toMatchObject({ code: 'validation_failed', param: 'expire_now' })
  }
  const tried = await patch({ payment_due_at: over, expire_now: true, dry_run: true })
  expect(tried).toMatchObject({
    data: { payment_due_at: null, status: 'pending' },
    effect: { dry_run: true, orders: 1 },
    warnings: [{ code: 'expires_now' }],
  })
  expect(await expire(id)).toEqual([])
  const part = await unpaid(event, { paid: 1000 })
  const ofPart = await send('PATCH', `/orders/${part.id}`, { payment_due_at: inDays(0), expire_now: true })
  expect(ofPart.body.error).toMatchObject({ code: 'validation_failed', param: 'expire_now' })
  expect(await patch({ payment_due_at: over, expire_now: true })).toMatchObject({
    effect: { dry_run: false, orders: 1 },
  })
  expect(await expire(id)).toEqual([id])
})

test('a deadline whose day was read as its month is shown as it was read', async () => {
  const { id } = await unpaid(await (await createOrganisation()).event())
  const refusal = during(async (client) => {
    await client.query("set local datestyle to 'ISO, MDY'")
    await client.query("set local timezone to 'Europe/Berlin'")
    await client.query('update public.orders set payment_due_at = $2 where id = $1', [id, '10.12.2026 18:00'])
  })
  await expect(refusal).rejects.toThrow('payment_due_at was read as 2026-10-12 18:00 Europe/Berlin, which is')
})

test('a new embedded database refuses a day that may be a month', async () => {
  expect(await row('show datestyle')).toEqual({ DateStyle: 'ISO, YMD' })
  expect(await refusalOf(studio.query("select timestamptz '10.12.2026 18:00'"))).toEqual({ sqlstate: '22008' })
})
