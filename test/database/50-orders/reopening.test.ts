// Orders that expired and are reopened: what comes back, what is refused, and that no place and no use of a code is given twice. How each
// state of an order takes it is in test/states/orders.test.ts.

import { expect, test } from 'vitest'
import { row, studio } from '../../support/database.ts'
import { interfaces } from '../../support/interfaces.ts'
import { createOrganisation, type TestEvent } from '../../support/organisation.ts'
import { byTypeAndId } from '../../support/outbox.ts'
import { rest } from '../../support/rest.ts'
import { addAttendee, addOrder, edit, pay, read, remove } from '../../support/studio.ts'
import { outboxFixture, tell } from '../outbox-fixture.ts'

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
const later = '2041-05-01T10:00:00.000Z'

const expire = async (id: string) => {
  await edit('orders', id, 'payment_due_at = now()')
  // The courier leaves out what is paid in part; it took that once.
  await edit('orders', id, "status = 'cancelled', cancellation_reason = 'expired'")
  return id
}

/** An order of so many tickets at 30.00 that was not paid in time. */
async function expired(
  event: TestEvent,
  { tickets = 2, paid = 0, ticketTypeId = event.ticketTypeId, sendEmail = true } = {},
) {
  const ticketTypeIds = Array.from({ length: tickets }, () => ticketTypeId)
  const order = await addOrder(event, { subtotal: 3000, paid, ticketTypeIds, sendEmail })
  await expire(order.id)
  return order
}

const confirmations = async (id: string) =>
  (
    await row<{ count: number }>(
      "select count(*)::int from public.emails where order_id = $1 and kind = 'order_confirmation'",
      [id],
    )
  ).count

async function arrange(options?: { capacity?: number; quantity?: number }) {
  const organisation = await createOrganisation()
  const event = await organisation.event(options)
  const send = rest(await organisation.key())
  const reopen = async (id: string, body: object = { payment_due_at: later }) =>
    send('POST', `/orders/${id}/reopen`, body)
  return { organisation, event, send, reopen }
}

test.each(interfaces)('an order comes back as it was, and notifies of it, %s', async (where, open) => {
  const { event, send, told, order, attendeesOf, actions } = await outboxFixture(open)
  const ticketTypeId = await event.ticketType({ price: 3000, quantity: 2 })
  const { code: promoCode, id: promoCodeId } = await row<{ id: string; code: string }>(
    "insert into public.promo_codes (event_id, code, amount_off, max_redemptions) values ($1, 'FIVE', 500, 2) returning id, code",
    [event.id],
  )
  const id = await actions.register({ ticketTypeId, invoice: true, promoCode, guests: 2 })
  const before = await order(id)
  const tickets = await attendeesOf(id)
  await expire(id)
  // Neither the end of the sale nor that of the code matters to who kept both.
  await studio.query("update public.ticket_types set sales_end_at = now() - interval '1 hour' where id = $1", [
    ticketTypeId,
  ])
  await studio.query("update public.promo_codes set status = 'disabled' where id = $1", [promoCodeId])
  await told()

  if (where === 'in Studio') {
    const sql = 'select public.reopen_order($1, $2) as tickets'
    expect(await row(sql, [id, later])).toEqual({ tickets: 2 })
  } else {
    const dry = await send('POST', `/orders/${id}/reopen`, { payment_due_at: later, dry_run: true })
    expect(dry.body.data).toMatchObject({ status: 'cancelled', cancellation_reason: 'expired' })
    expect(await told()).toEqual([])
    const { status, body } = await send('POST', `/orders/${id}/reopen`, { payment_due_at: later })
    expect(status).toBe(200)
    expect(body.effect).toMatchObject({
      orders: 1,
      attendees: 2,
      emails: 0,
      not_told: [{ reason: 'notify_nobody', count: 1 }],
    })
    expect(dry.body.effect).toEqual({ ...body.effect, dry_run: true })
    expect(body.warnings).toMatchObject([{ code: 'due_after_event' }])
  }
  const after = await order(id)
  const isKept = ({ version, updated_at, ...kept }: Record<string, unknown>) => kept
  expect(isKept(after)).toEqual({
    ...isKept(before),
    payment_due_at: later,
    attendees: (before.attendees as Record<string, unknown>[]).map((attendee) => ({
      ...attendee,
      version: expect.any(Number),
      updated_at: expect.any(String),
    })),
  })
  const reopened = await attendeesOf(id)
  expect(reopened.map(({ ticket_code }) => ticket_code)).toEqual(tickets.map(({ ticket_code }) => ticket_code))
  expect(await event.sold(ticketTypeId)).toBe(2)
  expect(await read('promo_codes', promoCodeId, 'times_redeemed')).toEqual({ times_redeemed: 2 })
  // The last place is taken with it.
  const soldOut = expect.objectContaining({ type: 'ticket_type.sold_out' })
  expect(await told()).toEqual([
    ...byTypeAndId([...reopened.map((attendee) => tell('attendee.updated', attendee)), tell('order.reopened', after)]),
    soldOut,
  ])
  const { changes } = await row<{ changes: object }>(
    "select changes from public.audit_entries where object_id = $1 and changes -> 'status' ->> 'to' = 'pending'",
    [id],
  )
  expect(changes).toMatchObject({ status: { from: 'cancelled', to: 'pending' } })

  // Like any other pending order from here: unpaid at the door, then paid, then good.
  expect((await actions.scan(tickets[0]?.ticket_code as string)).result).toBe('rejected')
  await actions.pay(id, after.amount_due as number)
  expect((await actions.scan(tickets[0]?.ticket_code as string)).result).toBe('accepted')
  await expect(actions.pay(id, 1)).rejects.toThrow('nothing_due')
})

test('without a deadline it has the days of the event, and expires again', async () => {
  const { event, reopen } = await arrange()
  const { id } = await expired(event)
  expect((await reopen(id, {})).body.data.payment_due_at).toBeNull()
  await expire(id)
  await edit('events', event.id, 'payment_due_days = 1')
  const { body } = await reopen(id, {})
  expect(Date.parse(body.data.payment_due_at) - Date.parse(body.data.updated_at)).toBeCloseTo(86_400_000, -3)
  // So near that the buyer is reminded half-way.
  expect(await read('orders', id, 'payment_due_at - payment_remind_at as lead')).toMatchObject({ lead: { hours: 12 } })
  await expire(id)
  expect(await read('orders', id, 'status', 'cancellation_reason')).toEqual({
    status: 'cancelled',
    cancellation_reason: 'expired',
  })
  expect(await event.sold()).toBe(0)
})

test('only those come back whom the expiry cancelled, erased or not, and none who was deleted', async () => {
  const { event, reopen } = await arrange()
  const { id, attendeeIds } = await addOrder(event, {
    subtotal: 3000,
    ticketTypeIds: Array.from({ length: 4 }, () => event.ticketTypeId),
  })
  const [gone, erased, deleted, stays] = attendeeIds as [string, string, string, string]
  await edit('attendees', gone, "status = 'cancelled'")
  await expire(id)
  await studio.query('select public.erase_attendee($1)', [erased])
  await remove('attendees', deleted)
  const { body } = await reopen(id)
  expect(body.data).toMatchObject({ total: 6000, amount_due: 6000, status: 'pending' })
  const statusOf = Object.fromEntries(
    body.data.attendees.map(({ id, status, name, ticket_email }: Record<string, { status: string }>) => [
      id,
      [status, name, ticket_email?.status],
    ]),
  )
  expect(statusOf).toEqual({
    [gone]: ['cancelled', 'Guest', 'cancelled'],
    [erased]: ['awaiting_payment', 'Erased', 'cancelled'],
    [stays]: ['awaiting_payment', 'Guest', 'waiting'],
  })
  expect(await event.sold()).toBe(2)

  const other = await expired(event, { tickets: 1 })
  await remove('attendees', other.attendeeIds[0] as string)
  expect((await reopen(other.id)).body.error).toMatchObject({ code: 'order_cancelled' })
})

test('what was paid in part counts, what was returned of it is due again, and it expires for all that', async () => {
  const { event, reopen } = await arrange()
  const [kept, returned] = [await expired(event, { paid: 1000 }), await expired(event, { paid: 4000 })]
  await studio.query('insert into public.refunds (order_id, amount) values ($1, 4000)', [returned.id])
  expect((await reopen(kept.id)).body.data).toMatchObject({ payment_status: 'partially_paid', amount_due: 5000 })
  expect((await reopen(returned.id)).body.data).toMatchObject({ payment_status: 'awaiting_payment', amount_due: 6000 })
  // More than it costs has been received by now, though not kept.
  await pay(returned.id, 5000)
  await expire(returned.id)
  expect(await read('orders', returned.id, 'status', 'payment_status')).toEqual({
    status: 'cancelled',
    payment_status: 'refund_due',
  })
})

test('the buyer is told if that is asked for', async () => {
  const { event, reopen } = await arrange()
  const [mailed, silent] = [await expired(event), await expired(event, { sendEmail: false })]
  const before = await confirmations(mailed.id)
  expect((await reopen(mailed.id, { notify: 'mailed' })).body.effect).toMatchObject({
    emails: 1,
    told: 1,
    not_told: [],
  })
  expect(await confirmations(mailed.id)).toBe(before + 1)
  expect((await reopen(silent.id, { notify: 'mailed' })).body.effect).toMatchObject({
    emails: 0,
    not_told: [{ reason: 'send_email_false', count: 1 }],
  })
  await expire(silent.id)
  expect((await reopen(silent.id, { notify: 'everybody' })).body.effect).toMatchObject({ emails: 1, told: 1 })
})

test('what is missing is named, and nothing is done by halves', async () => {
  const { event, reopen } = await arrange({ capacity: 4 })
  const first = await event.ticketType({ price: 3000, quantity: 3, name: 'Standard' })
  const { id } = await expired(event, { tickets: 3, ticketTypeId: first })
  const taken = await addOrder(event, { ticketTypeIds: [first, first] })
  const before = await read('orders', id, '*')
  const ofType = await reopen(id)
  expect(ofType.body.error).toMatchObject({
    code: 'sold_out',
    param: 'ticket_type_id',
    details: {
      missing: [{ ticket_type_id: first, name: 'Standard', needed: 3, available: 1 }],
      event: { needed: 3, available: 2 },
    },
  })
  await edit('ticket_types', first, 'quantity = 9')
  expect((await reopen(id)).body.error).toMatchObject({
    param: 'event_id',
    details: { event: { needed: 3, available: 2 } },
  })
  expect(await read('orders', id, '*')).toEqual(before)
  await edit('orders', taken.id, "status = 'cancelled'")
  expect((await reopen(id)).status).toBe(200)
})

test('a place that is offered to whoever waits is not taken from them', async () => {
  const { event, send, reopen } = await arrange({ quantity: 1 })
  const order = await addOrder(event, { subtotal: 3000 })
  const joined = await send('POST', `/events/${event.id}/waiting-list`, {
    ticket_type_id: event.ticketTypeId,
    name: 'Ann',
    email: 'ann@example.com',
  })
  await expire(order.id)
  expect((await reopen(order.id)).body.error).toMatchObject({ code: 'sold_out' })
  await edit('waiting_list_entries', joined.body.data.id, "status = 'cancelled'")
  expect((await reopen(order.id)).status).toBe(200)
})

test('a code that others have used up since is not used beyond its limit', async () => {
  const { event, reopen } = await arrange()
  const promoCodeId = (
    await row<{ id: string }>(
      "insert into public.promo_codes (event_id, code, percent_off, max_redemptions) values ($1, 'TEN', 10, 2) returning id",
      [event.id],
    )
  ).id
  await edit('ticket_types', event.ticketTypeId, 'price = 3000')
  const register = async (tickets: number) => {
    const { id } = await row<{ id: string }>(
      `insert into public.orders (event_id, name, email, payment_method, promo_code)
       values ($1, 'Buyer', 'buyer@example.com', 'invoice', 'TEN') returning id`,
      [event.id],
    )
    for (let i = 0; i < tickets; i++) await addAttendee(id, event.ticketTypeId)
    return id
  }
  const id = await expire(await register(2))
  await register(1)
  expect((await reopen(id)).body.error).toMatchObject({
    code: 'promo_code_used_up',
    details: { promo_code_id: promoCodeId, needed: 2, available: 1 },
  })
  await edit('promo_codes', promoCodeId, 'max_redemptions = 3')
  expect((await reopen(id)).body.data).toMatchObject({ total: 5400 })
})

test('an event that is cancelled or over, and a deadline that is none, are refused', async () => {
  const { organisation, event, reopen } = await arrange()
  const { id } = await expired(event)
  for (const [payment_due_at, message] of [
    [inDays(-1), /future/],
    ['soon', /RFC 3339/],
    ['9999-12-31T23:59:59Z', /RFC 3339/],
  ] as const) {
    const { status, body } = await reopen(id, { payment_due_at })
    expect([status, body.error.param]).toEqual([422, 'payment_due_at'])
    expect(body.error.message).toMatch(message)
  }
  const stranger = rest(await (await createOrganisation()).key())
  expect((await stranger('POST', `/orders/${id}/reopen`)).body.error).toMatchObject({ code: 'not_found' })
  const reader = rest(await organisation.key('orders:read'))
  expect((await reader('POST', `/orders/${id}/reopen`)).body.error).toMatchObject({ code: 'missing_scope' })
  await edit('events', event.id, "starts_at = now() - interval '2 days', ends_at = now() - interval '1 day'")
  expect((await reopen(id)).body.error).toMatchObject({ code: 'event_ended' })
  await edit('events', event.id, "status = 'cancelled'")
  expect((await reopen(id)).body.error).toMatchObject({ code: 'event_not_published', details: { status: 'cancelled' } })
})
