// What an e-mail to the buyer of an order says: what is paid, what is due, and by when.

import { dayOf } from '../../guests/event-time.ts'
import { amountOf, type Facts } from '../../guests/facts.ts'
import { amountRows, dueOf, headlineOfDue, whatOfTheMoney, withRefund } from '../../guests/money.ts'
import type { Of, PendingToBuyer } from '../../guests/pending.ts'
import { linesOf, oneLine } from '../../guests/plain-text.ts'
import { fill } from '../../guests/words/index.ts'
import {
  type Block,
  details,
  guestLines,
  lineOf,
  orderLink,
  orderRow,
  sentences,
  unique,
  whenAndWhere,
} from './blocks.ts'

export function headlineToBuyer(pending: PendingToBuyer, facts: Facts): string {
  const { words, reference } = facts
  const { headline } = words.kinds[pending.kind]
  const due = dueOf(pending.order, pending.event.timezone, words)
  switch (pending.kind) {
    case 'order_confirmation': {
      const { payHeadline, payByHeadline } = words.kinds.order_confirmation
      const asking = due.date === '' ? payHeadline : payByHeadline
      return fill(pending.order.amount_due > 0 ? asking : headline, due)
    }
    case 'payment_reminder':
      return headlineOfDue(due, words)
    case 'payment_received':
    case 'payment_voided':
      return fill(headline, paymentOf(pending, facts))
    case 'order_cancelled':
      return withRefund(fill(headline, { reference }), pending.money, words)
    case 'order_expired':
      return headline
  }
}

export const toBuyer = (pending: PendingToBuyer, facts: Facts): Block[] => [
  sentences(...saidToBuyer(pending, facts)),
  ...(pending.kind === 'order_confirmation' ? orderLink(pending, facts, 'button') : []),
  whenAndWhere(facts),
  { type: 'amounts', rows: amountRows(pending.order, pending.lines, facts.words) },
  ...(pending.kind === 'order_confirmation' ? whatIsToPay(pending, facts) : []),
  ...(asksForMoney(pending) ? paymentInstructions(pending, facts) : []),
  ...(pending.kind === 'order_confirmation' ? guestList(pending.guests, facts) : []),
  details(orderRow(facts)),
  ...(pending.kind === 'order_confirmation' ? [] : orderLink(pending, facts)),
]

const asksForMoney = ({ kind, order }: PendingToBuyer): boolean =>
  order.amount_due > 0 && kind !== 'order_expired' && kind !== 'order_cancelled'

function saidToBuyer(pending: PendingToBuyer, facts: Facts): string[] {
  const { order, kind } = pending
  const { words, event, reference } = facts
  const { kinds } = words
  const name = oneLine(order.name)
  switch (kind) {
    case 'order_confirmation':
      return [fill(kinds.order_confirmation.thanks, { name })]
    case 'payment_received': {
      const { received, complete } = kinds.payment_received
      const said = fill(received, { name, ...paymentOf(pending, facts) })
      // Of an order that was cancelled since, nothing is due and no ticket is sent; what another payment completed, its receipt says.
      if (order.status === 'cancelled') return [said]
      if (order.amount_due > 0) return [said, requestOf(pending, facts)]
      return pending.payment.is_latest ? [said, complete] : [said]
    }
    case 'payment_voided': {
      const said = fill(kinds.payment_voided.voided, { name, ...paymentOf(pending, facts) })
      return order.amount_due > 0 ? [said, requestOf(pending, facts)] : [said]
    }
    case 'payment_reminder': {
      const { consequence, reserved } = kinds.payment_reminder
      const request = requestOf(pending, facts)
      // An order that is paid in part does not expire.
      if (order.status === 'pending' && order.amount_paid > order.amount_refunded) return [request, reserved]
      return dueOf(order, pending.event.timezone, words).date === '' ? [request] : [request, consequence]
    }
    case 'order_expired':
      return [kinds.order_expired.expired, kinds.order_expired.doNotPay]
    case 'order_cancelled': {
      const { requested, eventCancelled } = kinds.order_cancelled
      const cancelled = order.cancellation_reason === 'event_cancelled' ? eventCancelled : requested
      return [fill(cancelled, { event, reference }), ...whatOfTheMoney(pending.money, words)]
    }
  }
}

/** What is still to be paid, and by when. */
function requestOf({ order, event }: PendingToBuyer, { words }: Facts): string {
  const { reminder, undated } = words.kinds.payment_reminder
  const due = dueOf(order, event.timezone, words)
  return fill(due.date === '' ? undated : reminder, due)
}

const paymentOf = ({ payment, order, event }: Of<'payment_received' | 'payment_voided'>, { words }: Facts) => ({
  amount: amountOf(payment.amount, order.currency, words),
  date: dayOf(payment.received_at, event.timezone, words),
})

function whatIsToPay({ order, event }: Of<'order_confirmation'>, { words }: Facts): Block[] {
  const { pay, payBy, ticketsFollow, nothingDue } = words.kinds.order_confirmation
  if (order.amount_due === 0) return [sentences(nothingDue)]
  const due = dueOf(order, event.timezone, words)
  return [sentences(fill(due.date === '' ? pay : payBy, due), ticketsFollow)]
}

/** Whom an order is for, with their ticket types where these differ. */
function guestList(guests: Of<'order_confirmation'>['guests'], { words }: Facts): Block[] {
  const isOneType = unique(guests.map(({ ticket_type }) => ticket_type)).length === 1
  const lines = guestLines(guests.map((guest) => (isOneType ? oneLine(guest.name) : lineOf(guest))))
  return lines.length > 0 ? [details({ label: words.guests, lines, isList: true })] : []
}

function paymentInstructions({ organisation }: PendingToBuyer, { words }: Facts): Block[] {
  const lines = linesOf(organisation.payment_instructions ?? '')
  return lines.length > 0 ? [details({ label: words.howToPay, lines })] : []
}
