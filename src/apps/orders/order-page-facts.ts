// What the order page, its receipt and its tickets on paper show, from the same facts as e-mails to the buyer.

import type * as z from 'zod'
import { dayOf } from '../../guests/event-time.ts'
import { amountOf, factsOf, type Subject } from '../../guests/facts.ts'
import { type AmountRow, amountRows, dueOf, headlineOfDue, whatOfTheMoney } from '../../guests/money.ts'
import type { OrderLine, PendingAttendee, PendingEmail } from '../../guests/pending.ts'
import { ibansIn, linesOf, oneLine } from '../../guests/plain-text.ts'
import { fill, type Words } from '../../guests/words/index.ts'
import type { OrderSchema } from '../../operations/orders.ts'

type Order = z.infer<typeof OrderSchema>

/** As `api.get_order_page` returns it. Secrets of a ticket only where it is the buyer's own. */
export type OrderPage = {
  organisation: Subject['organisation'] &
    Pick<PendingEmail['organisation'], 'logo_url' | 'payment_instructions'> & {
      seller_details: string | null
      tax_note: string | null
    }
  event: Subject['event']
  order: Order
  lines: OrderLine[]
  tickets: (Pick<PendingAttendee, 'name' | 'company' | 'status'> & {
    ticket_type: string
    ticket_token: string | null
    guest_token: string | null
    ticket_code: string | null
  })[]
}

export type OrderFacts = ReturnType<typeof orderFacts>

// As private.order_tickets_json.
const mostTickets = 1000

export function orderFacts(page: OrderPage) {
  const { organisation, order, lines } = page
  const facts = factsOf(page)
  const { words } = facts
  const tickets = page.tickets.slice(0, mostTickets).map((ticket) => ({
    ...ticket,
    name: oneLine(ticket.name),
    company: oneLine(ticket.company ?? '') || undefined,
    ticket_type: oneLine(ticket.ticket_type),
  }))
  return {
    ...facts,
    logo: organisation.logo_url,
    seller: linesOf(organisation.seller_details ?? organisation.name),
    taxNote: linesOf(organisation.tax_note ?? ''),
    buyer: [order.name, order.company ?? ''].map(oneLine).filter(Boolean),
    isCancelled: order.status === 'cancelled',
    isDue: order.amount_due > 0,
    status: statusOf(page, words),
    amounts: amountRows(order, lines, words),
    /** Line by line; every second part of a line is an IBAN. */
    howToPay: linesOf(organisation.payment_instructions ?? '').map(ibansIn),
    payments: paymentRows(page, words),
    /** Only what was received has one. */
    hasReceipt: order.amount_paid > 0,
    tickets,
    hasMore: page.tickets.length > mostTickets,
    /** The buyer's own that admit. */
    printed: tickets.flatMap(({ ticket_code: code, ...ticket }) => (code === null ? [] : { ...ticket, code })),
  }
}

/** What is to be paid by when, or what becomes of the money. */
function statusOf({ order, event }: OrderPage, words: Words): string[] {
  const { amount_due, amount_retained, amount_refundable, currency } = order
  if (order.status === 'cancelled') {
    const amount_unpaid = Math.max(order.total - order.amount_paid, 0)
    const money = { currency, amount_unpaid, amount_retained, amount_refundable }
    return [words.orderPage.cancelled, ...whatOfTheMoney(money, words)]
  }
  if (amount_due > 0) return [headlineOfDue(dueOf(order, event.timezone, words), words)]
  const amount = amountOf(amount_refundable, currency, words)
  return [
    order.total > 0 ? words.orderPage.paid : words.orderPage.free,
    ...(amount_refundable > 0 ? [fill(words.kinds.order_cancelled.rest, { amount })] : []),
  ]
}

/** What was received and returned, by date. A payment that was voided was not received. */
function paymentRows({ order, event }: OrderPage, words: Words): AmountRow[] {
  const { payment, refund } = words.orderPage
  const rows = [
    ...order.payments
      .filter(({ voided_at }) => voided_at === null)
      .map(({ received_at, amount }) => ({ at: received_at, label: payment, amount })),
    ...order.refunds.map(({ refunded_at, amount }) => ({ at: refunded_at, label: refund, amount: -amount })),
  ]
  return rows
    .toSorted((one, other) => one.at.localeCompare(other.at))
    .map(({ at, label, amount }) => ({
      label: fill(label, { date: dayOf(at, event.timezone, words) }),
      amount: amountOf(amount, order.currency, words),
    }))
}
