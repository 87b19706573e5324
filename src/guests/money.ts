// What an order costs, and what becomes of its money, as e-mails to buyers and the order page say it.

import type * as z from 'zod'
import type { OrderSchema } from '../operations/orders.ts'
import { momentOf } from './event-time.ts'
import { amountOf } from './facts.ts'
import type { CancelledMoney, OrderLine } from './pending.ts'
import { oneLine } from './plain-text.ts'
import { fill, type Words } from './words/index.ts'

type Order = z.infer<typeof OrderSchema>

export type AmountRow = { label: string; amount: string; isTotal?: boolean }

export function amountRows(order: Order, lines: OrderLine[], words: Words): AmountRow[] {
  const row = (label: string, amount: number) => ({ label, amount: amountOf(amount, order.currency, words) })
  return [
    ...lines.map(({ quantity, name, price }) =>
      row(fill(words.line, { quantity: `${quantity}`, name: oneLine(name) }), quantity * price),
    ),
    ...(order.discount_total > 0 ? [row(words.discount, -order.discount_total)] : []),
    { ...row(words.total, order.total), isTotal: true },
    ...(order.amount_paid > 0 ? [row(words.paid, order.amount_paid - order.amount_refunded)] : []),
    ...(order.amount_paid > 0 && order.amount_due > 0 ? [{ ...row(words.due, order.amount_due), isTotal: true }] : []),
  ]
}

/** Said to the contact of a cancelled order, and to nobody else. */
export function whatOfTheMoney(cancelled: CancelledMoney | null, words: Words): string[] {
  if (cancelled === null) return []
  const { amount_unpaid, amount_refundable, amount_retained, currency } = cancelled
  const { doNotPay, refund, retained, rest } = words.kinds.order_cancelled
  const money = (amount: number) => amountOf(amount, currency, words)
  return [
    ...(amount_unpaid > 0 ? [doNotPay] : []),
    ...(amount_retained > 0 ? [fill(retained, { retained: money(amount_retained) })] : []),
    ...(amount_refundable > 0 ? [fill(amount_retained > 0 ? rest : refund, { amount: money(amount_refundable) })] : []),
  ]
}

/** The headline of a cancellation that returns money. */
export function withRefund(headline: string, money: CancelledMoney | null, words: Words): string {
  if (money === null || money.amount_refundable === 0) return headline
  const amount = amountOf(money.amount_refundable, money.currency, words)
  return fill(words.kinds.order_cancelled.refundHeadline, { headline, amount })
}

/**
 * What is due, for the sentences that ask for it. No date once the buyer was reminded after it, and where the order is completed: it
 * keeps its tickets, even where something is due again.
 */
export function dueOf(order: Order, timezone: string, words: Words) {
  const { payment_due_at: due, payment_reminded_at: reminded } = order
  const isDated = order.status === 'pending' && due !== null && !(reminded && reminded >= due)
  return {
    amount: amountOf(order.amount_due, order.currency, words),
    date: isDated ? momentOf(due, timezone, words) : '',
    reference: oneLine(order.reference),
  }
}

export const headlineOfDue = (due: ReturnType<typeof dueOf>, { kinds: { payment_reminder } }: Words): string =>
  fill(due.date === '' ? payment_reminder.undatedHeadline : payment_reminder.headline, due)
