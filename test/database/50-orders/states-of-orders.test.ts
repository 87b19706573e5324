// Orders as an organiser edits them in Studio: what they cost, what is paid, and what that does to their attendees. The steps
// from one status to another are in test/states/orders.test.ts.

import { describe, expect, test } from 'vitest'
import { refusalOf, row } from '../../support/database.ts'
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

  test('that is cancelled leaves an e-mail that was sent as sent', async () => {
    const { id, attendeeId } = await orderThatIs('completed')
    await edit('attendees', attendeeId, "ticket_email_status = 'sent'")
    await edit('orders', id, "status = 'cancelled'")
    expect(await attendee(attendeeId)).toEqual({ status: 'cancelled', ticket_email_status: 'sent' })
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
