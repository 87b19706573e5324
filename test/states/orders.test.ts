// Orders: pending, completed, cancelled; and payment_status, which follows from the payments and the tickets that are left.

import { expect } from 'vitest'
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
} from './state-machine.ts'

/** An order of one ticket or two, 30.00 each unless they are complimentary. */
type Sale = { event: TestEvent; id: string; attendeeIds: string[] }

const orderOf =
  (tickets: 1 | 2, { paid = 0, complimentary = false } = {}, work: (sale: Sale) => Promise<unknown> = async () => {}) =>
  async (organisation: TestOrganisation): Promise<Sale> => {
    const event = await organisation.event()
    const ticketTypeIds = Array.from({ length: tickets }, () => event.ticketTypeId)
    const sale = { event, ...(await addOrder(event, { subtotal: complimentary ? 0 : 3000, paid, ticketTypeIds })) }
    await work(sale)
    return sale
  }

const cancel = ({ id }: Sale, hand?: Hand) => edit('orders', id, "status = 'cancelled'", [], hand)
const retainAll = ({ id }: Sale) => edit('orders', id, "status = 'cancelled', amount_retained = 6000")
const cancelTicket = ({ attendeeIds: [first] }: Sale) => edit('attendees', first as string, "status = 'cancelled'")

/** Not paid by its deadline. */
const expire = async ({ id }: Sale) => {
  await edit('orders', id, 'payment_due_at = now()')
  // The courier leaves out what is paid in part; it took that once.
  await edit('orders', id, "status = 'cancelled', cancellation_reason = 'expired'")
}

const voidPayment = ({ id }: Sale) =>
  studio.query(
    `insert into public.payment_voids (payment_id)
     select p.id from public.payments p where p.order_id = $1 order by p.id limit 1`,
    [id],
  )
const refund = (amount: number) => (sale: Sale) =>
  studio.query('insert into public.refunds (order_id, amount) values ($1, $2)', [sale.id, amount])
const voidAndPay = (amount: number) => async (sale: Sale) => {
  await voidPayment(sale)
  await pay(sale.id, amount)
}

const states = {
  'pending awaiting_payment': orderOf(2),
  'pending partially_paid, enough for one ticket': orderOf(2, { paid: 3000 }),
  'pending partially_paid, more than one ticket costs': orderOf(2, { paid: 4000 }),
  'completed not_required': orderOf(2, { complimentary: true }),
  'completed paid': orderOf(2, { paid: 6000 }),
  'completed paid, with one ticket': orderOf(1, { paid: 3000 }),
  'completed refund_due, one of two tickets cancelled': orderOf(2, { paid: 6000 }, cancelTicket),
  'completed awaiting_payment, its payment voided': orderOf(2, { paid: 6000 }, voidPayment),
  'completed partially_paid, its payment voided': orderOf(2, { paid: 6000 }, voidAndPay(1000)),
  'completed awaiting_payment, its money returned': orderOf(2, { paid: 6000 }, refund(6000)),
  // A free ticket stands; the one that was paid for is cancelled, and its money returned.
  'completed refunded': async (organisation: TestOrganisation): Promise<Sale> => {
    const event = await organisation.event()
    const { id: freeTypeId } = await row<{ id: string }>(
      "insert into public.ticket_types (event_id, name) values ($1, 'Free') returning id",
      [event.id],
    )
    const ticketTypeIds = [event.ticketTypeId, freeTypeId]
    const sale = { event, ...(await addOrder(event, { subtotal: 3000, paid: 3000, ticketTypeIds })) }
    await cancelTicket(sale)
    await refund(3000)(sale)
    return sale
  },
  'cancelled not_required': orderOf(2, {}, cancel),
  'cancelled refund_due, once paid': orderOf(2, { paid: 6000 }, cancel),
  'cancelled refunded': orderOf(2, { paid: 6000 }, async (sale) => {
    await cancel(sale)
    await refund(6000)(sale)
  }),
  'cancelled paid, all of it retained': orderOf(2, { paid: 6000 }, retainAll),
  'cancelled not_required, expired': orderOf(2, {}, expire),
  'cancelled not_required, expired with one of two tickets': orderOf(2, {}, async (sale) => {
    await cancelTicket(sale)
    await expire(sale)
  }),
  'cancelled refund_due, expired when partly paid': orderOf(2, { paid: 1000 }, expire),
} as const

const outstanding = async ({ id }: Sale) =>
  Number(
    (
      await row<{ due: string }>(
        'select total - amount_paid + amount_refunded as due from public.orders where id = $1',
        [id],
      )
    ).due,
  )

/** A payment of an amount that follows from the order; of a cent where that is no amount. */
const payment = (amountOf: (sale: Sale) => Promise<number>) => {
  const amount = async (sale: Sale) => Math.max(await amountOf(sale), 1)
  return {
    rest: async (send: Send, sale: Sale) => send('POST', `/orders/${sale.id}/payments`, { amount: await amount(sale) }),
    sql: async (sale: Sale, hand: Hand) => pay(sale.id, await amount(sale), hand),
  }
}

const transitions = {
  'to pending': {
    offered: false as const,
    rest: (send: Send, { id }: Sale) => send('PATCH', `/orders/${id}`, { status: 'pending' }),
    sql: ({ id }: Sale, hand: Hand) => edit('orders', id, "status = 'pending'", [], hand),
  },
  // Over REST an order is completed by the payment that covers it.
  'to completed': {
    offered: false as const,
    rest: (send: Send, { id }: Sale) => send('PATCH', `/orders/${id}`, { status: 'completed' }),
    sql: ({ id }: Sale, hand: Hand) => edit('orders', id, "status = 'completed'", [], hand),
  },
  'to cancelled': {
    rest: (send: Send, { id }: Sale) => send('POST', `/orders/${id}/cancel`),
    sql: cancel,
  },
  'paying a part': payment(async () => 500),
  'paying what is due': payment(outstanding),
  'paying more than is due': payment(async (sale) => (await outstanding(sale)) + 1),
  reopening: {
    rest: (send: Send, { id }: Sale) =>
      send('POST', `/orders/${id}/reopen`, { payment_due_at: '2041-01-01T00:00:00Z' }),
    sql: ({ id }: Sale, hand: Hand) => hand.query("select public.reopen_order($1, '2041-01-01Z')", [id]),
  },
  'cancelling the last ticket': {
    rest: (send: Send, { attendeeIds }: Sale) => send('POST', `/attendees/${attendeeIds.at(-1)}/cancel`),
    sql: ({ attendeeIds }: Sale, hand: Hand) =>
      edit('attendees', attendeeIds.at(-1) as string, "status = 'cancelled'", [], hand),
  },
  'cancelling the event': {
    rest: (send: Send, { event }: Sale) => send('POST', `/events/${event.id}/cancel`),
    sql: ({ event }: Sale, hand: Hand) => edit('events', event.id, "status = 'cancelled'", [], hand),
  },
}

const ofTicket = (which: 1 | 2, changes: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(changes).map(([key, to]) => [`attendee${which === 1 ? '' : ' 2'}.${key}`, to]))
const ticketGone = (which: 1 | 2) =>
  ofTicket(which, { status: 'cancelled', cancelled_at: 'set', ticket_email_status: 'cancelled' })
const ticketGood = (which: 1 | 2) => ofTicket(which, { status: 'active', ticket_email_status: 'queued' })

/** The order is cancelled with the tickets it still has. */
const orderGone = (tickets: object, paymentStatus: object = {}) => ({
  'order.status': 'cancelled',
  'order.cancelled_at': 'set',
  'order.cancellation_reason': 'requested',
  ...paymentStatus,
  ...tickets,
  'ticket_type.quantity_sold': 0,
})
const bothGone = { ...ticketGone(1), ...ticketGone(2) }
/** The free ticket was the last that stood; it has a ticket type of its own. */
const { 'ticket_type.quantity_sold': freeSold, ...freeOrderGone } = orderGone(ticketGone(2))
const freeGone = { ...freeOrderGone, 'ticket_type 2.quantity_sold': freeSold }
const bothGood = { ...ticketGood(1), ...ticketGood(2) }
const refundDue = { 'order.payment_status': 'refund_due' }
const nothingDue = { 'order.payment_status': 'not_required' }

/** What cancelling the order changes, cancelling its event changes, too. */
const withEvent = (changes: object) => ({
  ...changes,
  ...('order.status' in changes && { 'order.cancellation_reason': 'event_cancelled' }),
  'event.status': 'cancelled',
  'event.cancelled_at': 'set',
})

/** The second of two tickets is gone, and its price with it; `left` is what that makes of the rest. */
const oneTicketLess = (left: object) => ({
  'order.subtotal': 3000,
  'order.total': 3000,
  'ticket_type.quantity_sold': 1,
  ...ticketGone(2),
  ...left,
})

const completes = { 'order.status': 'completed', 'order.completed_at': 'set' }
const received = (amount: number, paidBefore = 0) => ({
  [paidBefore > 0 ? 'payment 2.amount' : 'payment.amount']: amount,
  'order.amount_paid': paidBefore + amount,
})

const receivedAgain = (amount: number) => ({ 'payment 2.amount': amount, 'order.amount_paid': amount })

/** What can be done with any order that is pending, with so much due. */
const pending = (due: number) => ({
  'to pending': done(),
  reopening: invalid('pending', 'pending'),
  'to completed': refused('payment_due', { param: 'status' }),
  'paying more than is due': refused('overpayment', { param: 'amount', details: { amount_due: due } }),
})

const noMoneyFor = (status: 'completed' | 'cancelled') => {
  const refusal = refused('nothing_due', { param: 'order_id', details: { status } })
  return {
    'paying a part': refusal,
    'paying what is due': refusal,
    'paying more than is due': refusal,
  }
}

const completed = {
  'to pending': invalid('completed', 'pending'),
  reopening: invalid('completed', 'pending'),
  'to completed': done(),
  ...noMoneyFor('completed'),
}

const cancelled: Record<keyof typeof transitions, Cell> = {
  'to pending': invalid('cancelled', 'pending'),
  'to completed': invalid('cancelled', 'completed'),
  'to cancelled': savedAsItIs('cancelled'),
  reopening: refused('order_cancelled', { param: 'order_id', details: { cancellation_reason: 'requested' } }),
  ...noMoneyFor('cancelled'),
  'cancelling the last ticket': savedAsItIs('cancelled'),
  'cancelling the event': done(withEvent({})),
}

/** Reopened with the tickets that expired with it. */
const reopened = (...tickets: (1 | 2)[]) => ({
  'order.status': 'pending',
  'order.payment_status': 'awaiting_payment',
  'order.cancelled_at': null,
  'order.cancellation_reason': null,
  'order.payment_due_at': 'moved',
  'order.payment_remind_at': 'moved',
  'order.payment_check_at': 'set',
  'ticket_type.quantity_sold': tickets.length,
  ...Object.assign(
    {},
    ...tickets.map((which) =>
      ofTicket(which, { status: 'awaiting_payment', cancelled_at: null, ticket_email_status: 'waiting' }),
    ),
  ),
})

const tooLate = refused('order_expired', { param: 'order_id', details: expect.any(Object) })
const expired: typeof cancelled = {
  ...cancelled,
  reopening: done(reopened(1, 2)),
  'paying a part': tooLate,
  'paying what is due': tooLate,
  'paying more than is due': tooLate,
}

testStateMachine({
  name: 'an order',
  dimensions: [
    { values: 'order_status', read: columnOf(({ id }: Sale) => id, 'status'), settable: true },
    { values: 'payment_status', read: columnOf(({ id }: Sale) => id, 'payment_status') },
  ],
  unreachable: {
    'pending not_required': 'it would be completed',
    'pending paid': 'it would be completed',
    'pending refund_due': 'it would be completed',
    'pending refunded': 'a refund needs an order of which nothing is due',
    'cancelled awaiting_payment': 'a cancelled order is pending nothing',
    'cancelled partially_paid': 'what was paid is to be refunded',
  },
  states,
  transitions,
  table: {
    'pending awaiting_payment': {
      ...pending(6000),
      'to cancelled': done(orderGone(bothGone, nothingDue)),
      'paying a part': done({ ...received(500), 'order.payment_status': 'partially_paid' }),
      'paying what is due': done({ ...received(6000), ...completes, 'order.payment_status': 'paid', ...bothGood }),
      'cancelling the last ticket': done(oneTicketLess({})),
      'cancelling the event': done(withEvent(orderGone(bothGone, nothingDue))),
    },
    'pending partially_paid, enough for one ticket': {
      ...pending(3000),
      'to cancelled': done(orderGone(bothGone, refundDue)),
      'paying a part': done(received(500, 3000)),
      'paying what is due': done({
        ...received(3000, 3000),
        ...completes,
        'order.payment_status': 'paid',
        ...bothGood,
      }),
      'cancelling the last ticket': done(
        oneTicketLess({ ...completes, 'order.payment_status': 'paid', ...ticketGood(1) }),
      ),
      'cancelling the event': done(withEvent(orderGone(bothGone, refundDue))),
    },
    'pending partially_paid, more than one ticket costs': {
      ...pending(2000),
      'to cancelled': done(orderGone(bothGone, refundDue)),
      'paying a part': done(received(500, 4000)),
      'paying what is due': done({
        ...received(2000, 4000),
        ...completes,
        'order.payment_status': 'paid',
        ...bothGood,
      }),
      'cancelling the last ticket': done(oneTicketLess({ ...completes, ...refundDue, ...ticketGood(1) })),
      'cancelling the event': done(withEvent(orderGone(bothGone, refundDue))),
    },
    'completed not_required': {
      ...completed,
      'to cancelled': done(orderGone(bothGone)),
      'cancelling the last ticket': done({ ...ticketGone(2), 'ticket_type.quantity_sold': 1 }),
      'cancelling the event': done(withEvent(orderGone(bothGone))),
    },
    'completed paid': {
      ...completed,
      'to cancelled': done(orderGone(bothGone, refundDue)),
      'cancelling the last ticket': done(oneTicketLess(refundDue)),
      'cancelling the event': done(withEvent(orderGone(bothGone, refundDue))),
    },
    'completed paid, with one ticket': {
      ...completed,
      'to cancelled': done(orderGone(ticketGone(1), refundDue)),
      'cancelling the last ticket': done(orderGone(ticketGone(1), refundDue)),
      'cancelling the event': done(withEvent(orderGone(ticketGone(1), refundDue))),
    },
    'completed refund_due, one of two tickets cancelled': {
      ...completed,
      'to cancelled': done(orderGone(ticketGone(2))),
      'cancelling the last ticket': done(orderGone(ticketGone(2))),
      'cancelling the event': done(withEvent(orderGone(ticketGone(2)))),
    },
    'completed awaiting_payment, its payment voided': {
      ...completed,
      ...pending(6000),
      'to pending': invalid('completed', 'pending'),
      reopening: invalid('completed', 'pending'),
      'to completed': done(),
      'to cancelled': done(orderGone(bothGone, nothingDue)),
      'paying a part': done({ ...receivedAgain(500), 'order.payment_status': 'partially_paid' }),
      'paying what is due': done({ ...receivedAgain(6000), 'order.payment_status': 'paid' }),
      'cancelling the last ticket': done(oneTicketLess({})),
      'cancelling the event': done(withEvent(orderGone(bothGone, nothingDue))),
    },
    'completed partially_paid, its payment voided': {
      ...completed,
      ...pending(5000),
      'to pending': invalid('completed', 'pending'),
      reopening: invalid('completed', 'pending'),
      'to completed': done(),
      'to cancelled': done(orderGone(bothGone, refundDue)),
      'paying a part': done({ 'payment 3.amount': 500, 'order.amount_paid': 1500 }),
      'paying what is due': done({
        'payment 3.amount': 5000,
        'order.amount_paid': 6000,
        'order.payment_status': 'paid',
      }),
      'cancelling the last ticket': done(oneTicketLess({})),
      'cancelling the event': done(withEvent(orderGone(bothGone, refundDue))),
    },
    'completed awaiting_payment, its money returned': {
      ...completed,
      ...pending(6000),
      'to pending': invalid('completed', 'pending'),
      reopening: invalid('completed', 'pending'),
      'to completed': done(),
      'to cancelled': done(orderGone(bothGone, { 'order.payment_status': 'refunded' })),
      'paying a part': done({ ...received(500, 6000), 'order.payment_status': 'partially_paid' }),
      'paying what is due': done({ ...received(6000, 6000), 'order.payment_status': 'paid' }),
      'cancelling the last ticket': done(oneTicketLess({})),
      'cancelling the event': done(withEvent(orderGone(bothGone, { 'order.payment_status': 'refunded' }))),
    },
    'completed refunded': {
      ...completed,
      'to cancelled': done(freeGone),
      'cancelling the last ticket': done(freeGone),
      'cancelling the event': done(withEvent(freeGone)),
    },
    'cancelled not_required': cancelled,
    'cancelled refund_due, once paid': cancelled,
    'cancelled refunded': cancelled,
    'cancelled paid, all of it retained': cancelled,
    'cancelled not_required, expired': expired,
    'cancelled not_required, expired with one of two tickets': { ...expired, reopening: done(reopened(2)) },
    'cancelled refund_due, expired when partly paid': {
      ...expired,
      reopening: done({ ...reopened(1, 2), 'order.payment_status': 'partially_paid' }),
    },
  },
})
