// Orders as an organiser edits them in Studio: what they cost, what is paid, and what that does to their attendees. The steps
// from one status to another are in test/states/orders.test.ts.

import { describe, expect, test } from 'vitest'
import { refusalOf, row, studio } from '../../support/database.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { addAttendee, addOrder, edit, pay, read, refusalOfEdit } from '../../support/studio.ts'
import { expectExactCounts } from '../counts.ts'

const statuses = ['pending', 'completed', 'cancelled'] as const
type Status = (typeof statuses)[number]

/** An order with one attendee. It is pending with 4900 due, completed with nothing due, or was cancelled while pending. */
async function orderThatIs(status: Status) {
  const event = await (await createOrganisation()).event()
  const { id, attendeeIds } = await addOrder(event, { subtotal: status === 'completed' ? 0 : 4900 })
  if (status === 'cancelled') await edit('orders', id, "status = 'cancelled'")
  return { event, id, attendeeId: attendeeIds[0] as string }
}

const attendee = (id: string) => read('attendees', id, 'status', 'ticket_email_status')

describe('an order', () => {
  test('keeps its discount, and the refusal says how to get another', async () => {
    const { event, id, attendeeId } = await orderThatIs('pending')
    const { code } = await row<{ code: string }>(
      "insert into public.promo_codes (event_id, code, percent_off) values ($1, 'LATE', 10) returning code",
      [event.id],
    )
    const hint = expect.stringMatching(/^For another discount cancel the (order|ticket), and register anew with /)
    const refused = {
      code: 'PT409',
      message: expect.stringContaining('This field is fixed once the row exists.'),
      hint,
    }
    await expect(edit('orders', id, 'promo_code = $2', [code])).rejects.toMatchObject(refused)
    await expect(edit('attendees', attendeeId, 'discount = 490')).rejects.toMatchObject(refused)
    await expect(edit('orders', id, 'discount_total = 490')).rejects.toMatchObject({
      hint: expect.stringContaining('For another discount cancel the order, and register anew with a promo code.'),
    })
  })

  test('cannot be completed while a cent is due', async () => {
    const { id } = await orderThatIs('pending')
    await pay(id, 4899)
    expect(await refusalOfEdit('orders', id, "status = 'completed'")).toEqual({
      sqlstate: 'PT409',
      code: 'payment_due',
      param: 'status',
    })
  })

  test.each([
    { discount: 0, paid: 4900 },
    { discount: 4900, paid: 0 },
    { discount: 900, paid: 4000 },
  ])('completes with a discount of $discount and $paid paid', async ({ discount, paid }) => {
    const event = await (await createOrganisation()).event()
    const { id, attendeeIds } = await addOrder(event, { subtotal: 4900, discount })
    const [attendeeId = ''] = attendeeIds
    if (paid > 0) {
      expect(await attendee(attendeeId)).toEqual({ status: 'awaiting_payment', ticket_email_status: 'waiting' })
      await pay(id, paid)
    }
    expect(await read('orders', id, 'status', 'completed_at', 'cancelled_at')).toEqual({
      status: 'completed',
      completed_at: expect.any(Date),
      cancelled_at: null,
    })
    expect(await attendee(attendeeId)).toEqual({ status: 'active', ticket_email_status: 'queued' })
    expect(await event.sold()).toBe(1)
    await expectExactCounts(event)
  })

  test('completes without e-mail where none was asked for', async () => {
    const event = await (await createOrganisation()).event()
    const { id, attendeeIds } = await addOrder(event, { subtotal: 4900, sendEmail: false })
    await pay(id, 4900)
    expect(await attendee(attendeeIds[0] as string)).toEqual({
      status: 'active',
      ticket_email_status: 'not_requested',
    })
  })

  test('that is to be paid cannot be completed before it has tickets, nor be made complimentary', async () => {
    const event = await (await createOrganisation()).event()
    const { id } = await row<{ id: string }>(
      "insert into public.orders (event_id, name, email, payment_method) values ($1, 'B', 'b@example.com', 'invoice') returning id",
      [event.id],
    )
    expect(await refusalOfEdit('orders', id, "status = 'completed'")).toMatchObject({ code: 'payment_due' })
    expect(await refusalOfEdit('orders', id, 'payment_method = null')).toEqual({
      sqlstate: 'PT409',
      code: 'read_only_field',
      param: 'payment_method',
    })
    await edit('orders', id, "payment_method = 'cash'")
    expect(await read('orders', id, 'status', 'payment_method')).toEqual({ status: 'pending', payment_method: 'cash' })
  })

  test('stays completed: what was paid cannot be taken away, nor the price be raised', async () => {
    const { id } = await orderThatIs('pending')
    await pay(id, 4900)
    expect(await refusalOfEdit('orders', id, 'amount_paid = 4899')).toMatchObject({ code: 'read_only_field' })
    for (const assignment of ['subtotal = 5000', 'discount_total = 100']) {
      expect(await refusalOfEdit('orders', id, assignment)).toMatchObject({
        code: 'read_only_field',
        param: assignment.split(' ')[0],
      })
    }
  })

  test.each(['pending', 'completed'] as const)(
    'that is %s and cancelled cancels its attendees, their e-mails and their places',
    async (from) => {
      const event = await (await createOrganisation()).event()
      const other = await event.ticketType()
      const { id, attendeeIds } = await addOrder(event, {
        subtotal: from === 'pending' ? 4900 : 0,
        ticketTypeIds: [event.ticketTypeId, event.ticketTypeId, other],
      })
      const bystander = await event.guest()
      await edit('orders', id, "status = 'cancelled'")

      for (const attendeeId of attendeeIds) {
        expect(await attendee(attendeeId)).toEqual({ status: 'cancelled', ticket_email_status: 'cancelled' })
      }
      expect((await attendee(bystander.attendeeId)).status).toBe('active')
      expect([await event.sold(), await event.sold(other)]).toEqual([1, 0])
      await expectExactCounts(event)
    },
  )

  test('that is cancelled leaves an e-mail that was sent as sent', async () => {
    const { id, attendeeId } = await orderThatIs('completed')
    await edit('attendees', attendeeId, "ticket_email_status = 'sent'")
    await edit('orders', id, "status = 'cancelled'")
    expect(await attendee(attendeeId)).toEqual({ status: 'cancelled', ticket_email_status: 'sent' })
  })

  test('gives back the places of those who were not cancelled before, and no more', async () => {
    const event = await (await createOrganisation()).event({ quantity: 2 })
    const { id, attendeeIds } = await addOrder(event, { ticketTypeIds: [event.ticketTypeId, event.ticketTypeId] })
    await edit('attendees', attendeeIds[0] as string, "status = 'cancelled'")
    await edit('orders', id, "status = 'cancelled'")
    expect(await event.sold()).toBe(0)
    await expectExactCounts(event)
  })

  test('that is cancelled takes no more attendees', async () => {
    const { event, id } = await orderThatIs('cancelled')
    expect(await refusalOf(addAttendee(id, event.ticketTypeId))).toEqual({
      sqlstate: 'PT409',
      code: 'order_cancelled',
      param: 'order_id',
    })
    await expectExactCounts(event)
  })

  test('cannot be deleted while it has attendees', async () => {
    const { event, id } = await orderThatIs('completed')
    expect(await refusalOf(studio.query('delete from public.orders where id = $1', [id]))).toEqual({
      sqlstate: 'PT409',
      code: 'in_use',
    })
    await expectExactCounts(event)
  })
})

describe('a new order', () => {
  test('has the status that its payment makes it, and no totals', async () => {
    const event = await (await createOrganisation()).event()
    const insert = (paymentMethod: 'invoice' | null) =>
      row<{ status: string; completed_at: Date | null; cancelled_at: Date | null }>(
        `insert into public.orders (event_id, name, email, payment_method) values ($1, 'Buyer', 'buyer@example.com', $2)
         returning status, subtotal::int, completed_at, cancelled_at`,
        [event.id, paymentMethod],
      )
    expect(await insert('invoice')).toEqual({ status: 'pending', subtotal: 0, completed_at: null, cancelled_at: null })
    const free = await insert(null)
    expect([free.status, free.cancelled_at]).toEqual(['completed', null])
    expect(free.completed_at?.getFullYear()).toBeGreaterThan(2000)
  })

  test.each([
    ['status', "'completed'"],
    ['status', "'cancelled'"],
    ['payment_status', "'paid'"],
    ['subtotal', '700'],
    ['amount_paid', '700'],
    ['currency', "'USD'"],
    ['reference', "'CHZSEN00'"],
    ['completed_at', "'2000-01-01'"],
    ['cancelled_at', 'now()'],
  ])('cannot bring along its %s: %s', async (column, value) => {
    const event = await (await createOrganisation()).event()
    for (const paymentMethod of ['invoice', null]) {
      const insert = `insert into public.orders (event_id, name, email, payment_method, ${column})
        values ($1, 'Buyer', 'buyer@example.com', $2, ${value})`
      expect(await refusalOf(studio.query(insert, [event.id, paymentMethod]))).toEqual({
        sqlstate: 'PT409',
        code: 'read_only_field',
        param: column,
      })
    }
  })

  test("has the event's organisation and currency, a readable reference and its door", async () => {
    const organisation = await createOrganisation()
    const event = await organisation.event()
    await edit('events', event.id, "currency = 'GBP'")
    const order = await row(
      `insert into public.orders (event_id, name, email, currency) values ($1, 'Buyer', 'buyer@example.com', 'GBP')
       returning organisation_id, currency, reference, source`,
      [event.id],
    )
    expect(order).toEqual({
      organisation_id: organisation.id,
      currency: 'GBP',
      reference: expect.stringMatching(/^[0-9A-HJKMNP-TV-Z]{8}$/),
      source: 'studio',
    })
  })
})

test.each([
  { subtotal: 0, discount: 0, paid: 0, status: 'completed', payment: 'not_required' },
  { subtotal: 4900, discount: 4900, paid: 0, status: 'completed', payment: 'not_required' },
  { subtotal: 4900, discount: 0, paid: 0, status: 'pending', payment: 'awaiting_payment' },
  { subtotal: 4900, discount: 900, paid: 1, status: 'pending', payment: 'partially_paid' },
  { subtotal: 4900, discount: 900, paid: 4000, status: 'completed', payment: 'paid' },
])('$subtotal less $discount with $paid paid is $status and $payment', async ({ status, payment, ...amounts }) => {
  const event = await (await createOrganisation()).event()
  const { id } = await addOrder(event, amounts)
  expect(await read('orders', id, 'status', 'payment_status')).toEqual({ status, payment_status: payment })
})

describe('the moments of an order', () => {
  const refused = (param: string) => ({ sqlstate: 'PT409', code: 'read_only_field', param })

  test('stay as they were when it was completed and cancelled', async () => {
    const { id } = await orderThatIs('completed')
    await edit('orders', id, "status = 'cancelled'")
    const before = await read('orders', id, 'completed_at', 'cancelled_at')
    expect(before).toEqual({ completed_at: expect.any(Date), cancelled_at: expect.any(Date) })
    expect(await refusalOfEdit('orders', id, 'completed_at = null')).toEqual(refused('completed_at'))
    expect(await refusalOfEdit('orders', id, "cancelled_at = '2000-01-01'")).toEqual(refused('cancelled_at'))
    await edit('orders', id, "name = 'Renamed', completed_at = completed_at, cancelled_at = cancelled_at")
    expect(await read('orders', id, 'completed_at', 'cancelled_at')).toEqual(before)
  })

  test('cannot be set before they come', async () => {
    const { id } = await orderThatIs('pending')
    for (const column of ['completed_at', 'cancelled_at']) {
      expect(await refusalOfEdit('orders', id, `${column} = now()`)).toEqual(refused(column))
    }
    expect(await read('orders', id, 'completed_at', 'cancelled_at')).toEqual({ completed_at: null, cancelled_at: null })
  })
})
