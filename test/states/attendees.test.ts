// Attendees: awaiting_payment, active, cancelled; and what becomes of their tickets.

import { row, studio } from '../support/database.ts'
import type { TestEvent, TestOrganisation } from '../support/organisation.ts'
import { addOrder, edit, type Hand, pay } from '../support/studio.ts'
import {
  type Cell,
  columnOf,
  done,
  invalid,
  refused,
  type Send,
  savedAsItIs,
  testStateMachine,
  unchanged,
} from './state-machine.ts'

/** One ticket, the only one of its order: 30.00 unless it is complimentary. Its e-mail went out, where it was to. */
type Guest = { event: TestEvent; orderId: string; id: string; complimentary: boolean }

const guest =
  ({ paid = 0, complimentary = false } = {}, work: (guest: Guest) => Promise<unknown> = async () => {}) =>
  async (organisation: TestOrganisation): Promise<Guest> => {
    const event = await organisation.event()
    const { id: orderId, attendeeIds } = await addOrder(event, { subtotal: complimentary ? 0 : 3000, paid })
    const it = { event, orderId, id: attendeeIds[0] as string, complimentary }
    await studio.query("update public.attendees set ticket_email_status = 'sent' where id = $1 and status = 'active'", [
      it.id,
    ])
    await work(it)
    return it
  }

const cancel = ({ id }: Guest, hand?: Hand) => edit('attendees', id, "status = 'cancelled'", [], hand)
const eventIs = (status: 'cancelled' | 'completed') => (it: Guest, hand?: Hand) =>
  edit('events', it.event.id, 'status = $2', [status], hand)

async function scan({ event, id }: Guest) {
  const { code } = await row<{ code: string }>('select ticket_code as code from public.attendees where id = $1', [id])
  return studio.query('insert into public.check_ins (event_id, code) values ($1, $2)', [event.id, code])
}

const states = {
  awaiting_payment: guest(),
  'awaiting_payment, partly paid': guest({ paid: 1000 }),
  'awaiting_payment, at a completed event': guest({}, eventIs('completed')),
  'active, complimentary': guest({ complimentary: true }),
  'active, paid': guest({ paid: 3000 }),
  'active, checked in': guest({ paid: 3000 }, scan),
  'active, at a completed event': guest({ paid: 3000 }, eventIs('completed')),
  'cancelled, after it was paid': guest({ paid: 3000 }, cancel),
  'cancelled, with its order': guest({ paid: 3000 }, ({ orderId }) => edit('orders', orderId, "status = 'cancelled'")),
  'cancelled, with its event': guest({ paid: 3000 }, eventIs('cancelled')),
}

const transitions = {
  // Over REST a ticket becomes good by the payment of its order, and none ever waits again.
  'to active': {
    offered: false as const,
    rest: (send: Send, { id }: Guest) => send('PATCH', `/attendees/${id}`, { status: 'active' }),
    sql: ({ id }: Guest, hand: Hand) => edit('attendees', id, "status = 'active'", [], hand),
  },
  'to awaiting_payment': {
    offered: false as const,
    rest: (send: Send, { id }: Guest) => send('PATCH', `/attendees/${id}`, { status: 'awaiting_payment' }),
    sql: ({ id }: Guest, hand: Hand) => edit('attendees', id, "status = 'awaiting_payment'", [], hand),
  },
  'to cancelled': {
    rest: (send: Send, { id }: Guest) => send('POST', `/attendees/${id}/cancel`),
    sql: cancel,
  },
  'paying 20.00': {
    rest: (send: Send, { orderId }: Guest) => send('POST', `/orders/${orderId}/payments`, { amount: 2000 }),
    sql: ({ orderId }: Guest, hand: Hand) => pay(orderId, 2000, hand),
  },
  'cancelling the order': {
    rest: (send: Send, { orderId }: Guest) => send('POST', `/orders/${orderId}/cancel`),
    sql: ({ orderId }: Guest, hand: Hand) => edit('orders', orderId, "status = 'cancelled'", [], hand),
  },
  'cancelling the event': {
    rest: (send: Send, { event }: Guest) => send('POST', `/events/${event.id}/cancel`),
    sql: eventIs('cancelled'),
  },
  'completing the event': {
    rest: (send: Send, { event }: Guest) => send('POST', `/events/${event.id}/complete`),
    sql: eventIs('completed'),
  },
  'reissuing the ticket': {
    rest: (send: Send, { id }: Guest) => send('PATCH', `/attendees/${id}`, { reissue_ticket: true }),
    sql: ({ id }: Guest, hand: Hand) => edit('attendees', id, 'ticket_code = null', [], hand),
  },
  'resending the ticket': {
    rest: (send: Send, { id }: Guest) => send('POST', `/attendees/${id}/ticket-email`),
    sql: ({ id }: Guest, hand: Hand) => edit('attendees', id, "ticket_email_status = 'queued'", [], hand),
  },
}

const attendeeGone = { 'attendee.status': 'cancelled', 'attendee.cancelled_at': 'set', 'ticket_type.quantity_sold': 0 }
const orderGone = {
  'order.status': 'cancelled',
  'order.cancelled_at': 'set',
  'order.cancellation_reason': 'requested',
}
const withEvent = { 'order.cancellation_reason': 'event_cancelled' }
const eventGone = { 'event.status': 'cancelled', 'event.cancelled_at': 'set' }
const refundDue = { 'order.payment_status': 'refund_due' }
const emailGone = { 'attendee.ticket_email_status': 'cancelled' }

/** The only ticket of its order, and what else of it changes: one goes with the other, whichever is cancelled. */
const cancelling = (also: object = {}) => ({
  'to cancelled': done({ ...attendeeGone, ...orderGone, ...also }),
  'cancelling the order': done({ ...attendeeGone, ...orderGone, ...also }),
})
const atPublished = (also: object = {}) => ({
  ...cancelling(also),
  'cancelling the event': done({ ...attendeeGone, ...orderGone, ...withEvent, ...eventGone, ...also }),
  'completing the event': done({ 'event.status': 'completed', 'event.completed_at': 'set' }),
})
const atCompleted = (also: object = {}) => ({
  ...cancelling(also),
  'cancelling the event': invalid('completed', 'cancelled'),
  'completing the event': savedAsItIs('completed'),
})

const notActive = (status: string) => refused('ticket_not_active', { param: 'status', details: { status } })
const notReissuable = refused('ticket_not_reissuable', { param: 'ticket_code' })
const nothingDue = (status: string) => refused('nothing_due', { param: 'order_id', details: { status } })

const awaiting = {
  'to active': refused('payment_due', { param: 'status' }),
  'to awaiting_payment': unchanged,
  'reissuing the ticket': done({ 'attendee.ticket_code': 'new' }),
  'resending the ticket': notActive('awaiting_payment'),
}
const firstPayment = done({
  'payment.amount': 2000,
  'order.amount_paid': 2000,
  'order.payment_status': 'partially_paid',
})

const active = {
  'to active': unchanged,
  'to awaiting_payment': invalid('active', 'awaiting_payment'),
  'paying 20.00': nothingDue('completed'),
  'reissuing the ticket': done({ 'attendee.ticket_code': 'new', 'attendee.ticket_email_status': 'queued' }),
  'resending the ticket': done({ 'attendee.ticket_email_status': 'queued' }),
}

const cancelled = {
  'to active': invalid('cancelled', 'active'),
  'to awaiting_payment': invalid('cancelled', 'awaiting_payment'),
  'to cancelled': savedAsItIs('cancelled'),
  'paying 20.00': nothingDue('cancelled'),
  'cancelling the order': savedAsItIs('cancelled'),
  'cancelling the event': done(eventGone),
  'completing the event': done({ 'event.status': 'completed', 'event.completed_at': 'set' }),
  'reissuing the ticket': notReissuable,
  'resending the ticket': notActive('cancelled'),
} satisfies Record<keyof typeof transitions, Cell>

testStateMachine({
  name: 'an attendee',
  dimensions: [{ values: 'attendee_status', read: columnOf(({ id }: Guest) => id, 'status'), settable: true }],
  states,
  transitions,
  table: {
    awaiting_payment: {
      ...awaiting,
      ...atPublished({ ...emailGone, 'order.payment_status': 'not_required' }),
      'paying 20.00': firstPayment,
    },
    'awaiting_payment, partly paid': {
      ...awaiting,
      ...atPublished({ ...emailGone, ...refundDue }),
      'paying 20.00': done({
        'payment 2.amount': 2000,
        'order.amount_paid': 3000,
        'order.payment_status': 'paid',
        'order.status': 'completed',
        'order.completed_at': 'set',
        'attendee.status': 'active',
        'attendee.ticket_email_status': 'queued',
      }),
    },
    'awaiting_payment, at a completed event': {
      ...awaiting,
      ...atCompleted({ ...emailGone, 'order.payment_status': 'not_required' }),
      'paying 20.00': firstPayment,
    },
    'active, complimentary': { ...active, ...atPublished() },
    'active, paid': { ...active, ...atPublished(refundDue) },
    // Cancelled afterwards, they were inside nevertheless: checked_in_at stays.
    'active, checked in': { ...active, ...atPublished(refundDue), 'reissuing the ticket': notReissuable },
    'active, at a completed event': { ...active, ...atCompleted(refundDue) },
    'cancelled, after it was paid': cancelled,
    'cancelled, with its order': cancelled,
    'cancelled, with its event': {
      ...cancelled,
      'cancelling the event': savedAsItIs('cancelled'),
      'completing the event': invalid('cancelled', 'completed'),
    },
  },
})
