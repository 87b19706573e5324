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
