// Orders. SQL: supabase/schemas/50-orders/.

import * as z from 'zod'
import { AttendeeSchema } from './attendees.ts'
import { amountRetained, changesOf, dryRun, dryRunFirst, effect, ifVersions, notice, notify } from './changes.ts'
import { currency, id, money, one, ownFields, timestamp, versioned } from './fields.ts'
import { currencyInput, emailAddress, flag, line, minorUnits, oneOf, ownInputs, timestampInput } from './inputs.ts'
import { anyOf, atOrAfter, before, emailFilter, forSync, listOf, nextPage, paging, searchInput } from './lists.ts'
import { type Declared, names } from './operation.ts'

export const orderStatuses = ['pending', 'completed', 'cancelled'] as const
export const paymentMethods = ['invoice', 'bank_transfer', 'card', 'cash', 'other'] as const
export const paymentStatuses = [
  'not_required',
  'awaiting_payment',
  'partially_paid',
  'paid',
  'refund_due',
  'refunded',
] as const

const sources = ['api', 'mcp', 'studio', 'page'] as const

/** What a payment and a refund have alike. */
const movedMoney = {
  order_id: id('order'),
  event_id: id('event'),
  method: z.enum(paymentMethods),
  amount: money,
  currency,
  external_reference: z.string().nullable(),
  source: z.enum(sources),
  created_at: timestamp,
}

export const PaymentSchema = z.strictObject({
  object: z.literal('payment'),
  id: id('payment'),
  ...movedMoney,
  received_at: timestamp,
  voided_at: timestamp.nullable().describe('When it was voided. A voided payment does not count.'),
})

export const RefundSchema = z.strictObject({
  object: z.literal('refund'),
  id: id('refund'),
  ...movedMoney,
  refunded_at: timestamp,
})

export const OrderSchema = z.strictObject({
  object: z.literal('order'),
  id: id('order'),
  event_id: id('event'),
  reference: z.string().describe('Short reference for people.'),
  status: z.enum(orderStatuses),
  payment_status: z.enum(paymentStatuses),
  name: z.string(),
  email: z.string(),
  company: z.string().nullable(),
  currency,
  subtotal: money.describe('Prices of its valid tickets, in minor units; for a cancelled order, before cancellation.'),
  discount_total: money.describe('Discounts of the same tickets, in minor units.'),
  total: money.describe('subtotal minus discount_total.'),
  amount_paid: money.describe('Sum of the payments that are not voided, in minor units.'),
  amount_due: money.describe('total - amount_paid + amount_refunded; at least 0, and 0 for a cancelled order.'),
  amount_refunded: money.describe('Sum of the refunds, in minor units.'),
  amount_retained: money.describe('Amount retained after cancellations, in minor units.'),
  amount_refundable: money.describe('Paid beyond the total, neither refunded nor retained, in minor units.'),
  payment_method: z
    .enum(paymentMethods)
    .nullable()
    .describe('Payment method of the order; null: complimentary. Each payment has its own method.'),
  payment_due_at: timestamp.nullable().describe('Deadline after which an unpaid order expires; null: none.'),
  payment_reminded_at: timestamp
    .nullable()
    .describe('When the buyer was last reminded; null again after payment_due_at changes.'),
  promo_code: z.string().nullable(),
  source: z.enum(sources),
  attendees: z.array(AttendeeSchema),
  payments: z.array(PaymentSchema),
  refunds: z.array(RefundSchema),
  completed_at: timestamp.nullable(),
  cancelled_at: timestamp.nullable(),
  cancellation_reason: z
    .enum(['requested', 'expired', 'event_cancelled'])
    .nullable()
    .describe('Reason of the cancellation; expired: not paid by payment_due_at.'),
  ...ownFields,
  ...versioned,
})

/** What a payment, a refund or a cancellation changes. */
export const orderMoney = names(`
  id reference status payment_status total amount_paid amount_due amount_refunded amount_retained amount_refundable
  payment_due_at
`)
const wholeOrder = names(`
  * event_id
  attendees.id attendees.name attendees.email attendees.company attendees.ticket_type.name attendees.price
  attendees.discount attendees.status attendees.checked_in_at attendees.external_id
  payments.id payments.method payments.amount payments.received_at payments.external_reference payments.voided_at
  refunds.id refunds.method refunds.amount refunds.refunded_at refunds.external_reference
`)
/** What a registration answers. */
export const newOrder = names(`
  id reference status total discount_total amount_due payment_due_at
  attendees.id attendees.name attendees.ticket_code
`)

export const listOrders = {
  name: 'list_orders',
  title: 'List orders',
  description: `Lists orders, newest first. overdue, due_after and due_before list unpaid and expired orders by deadline. An expired order is cancelled with amount_due 0; reopen_order gives it time. ${nextPage} ${forSync}`,
  method: 'GET',
  path: '/orders',
  scope: 'orders:read',
  lean: names(`
    id reference name email status payment_status company event_id total amount_paid amount_due amount_refundable
    payment_due_at cancellation_reason payment_reminded_at
  `),
  input: z.strictObject({
    event_id: id('event').optional(),
    search: searchInput
      .optional()
      .describe(
        'Parts of name, e-mail address, company, external_id or reference, also of attendees; one of 3 characters.',
      ),
    status: oneOf(orderStatuses).optional().describe('Only orders with this status.'),
    payment_status: anyOf(paymentStatuses).optional().describe('Any of these.'),
    overdue: flag
      .refine((overdue) => overdue, 'must be true or left out')
      .optional()
      .describe('true: not paid by its deadline.'),
    due_after: atOrAfter,
    due_before: before,
    email: emailFilter,
    reference: line(20).optional().describe('Only the order with this reference.'),
    external_id: line(255).optional().describe('Only the order with this external_id.'),
    payment_reference: line(255).optional().describe('Only with a payment of this external_reference.'),
    updated_after: atOrAfter,
    ...paging,
  }),
  output: listOf(OrderSchema),
} satisfies Declared

export const getOrder = {
  name: 'get_order',
  title: 'Get an order',
  description: 'Returns one order with its attendees, payments and refunds.',
  method: 'GET',
  path: '/orders/{order_id}',
  scope: 'orders:read',
  lean: wholeOrder,
  input: z.strictObject({ order_id: id('order') }),
  output: one(OrderSchema),
} satisfies Declared

export const updateOrder = {
  name: 'update_order',
  title: 'Change an order',
  description:
    'Changes contact, external_id or metadata of an order, or payment_due_at of a pending one. On order_expired call reopen_order. expire_now cancels the order and e-mails the buyer: ask the person first.',
  method: 'PATCH',
  path: '/orders/{order_id}',
  errors: ['already_exists', 'order_completed', 'order_cancelled', 'order_expired'],
  scope: 'orders:write',
  lean: [...orderMoney, 'name', 'email', 'company', 'external_id', 'event_id'],
  input: z.strictObject({
    order_id: id('order'),
    changes: changesOf({
      name: line(200),
      email: emailAddress.describe('Of the contact.'),
      company: line(200).nullable(),
      amount_retained: amountRetained,
      payment_due_at: timestampInput.nullable().describe('RFC 3339 with offset.'),
      ...ownInputs,
    }),
    expire_now: flag.optional().describe('true: payment_due_at may be past, and the order expires now.'),
    dry_run: dryRun,
    if_version: ifVersions,
  }),
  output: one(OrderSchema).extend({ effect }),
  hints: { destructive: true, idempotent: true, openWorld: true },
} satisfies Declared

export const reopenOrder = {
  name: 'reopen_order',
  title: 'Reopen an expired order',
  description:
    'Reopens an expired order with the same tickets and a new deadline, if places are left for all. Orders cancelled otherwise stay cancelled.',
  method: 'POST',
  path: '/orders/{order_id}/reopen',
  errors: [
    'invalid_transition',
    'order_cancelled',
    'event_not_published',
    'event_ended',
    'sold_out',
    'promo_code_used_up',
  ],
  scope: 'orders:write',
  lean: orderMoney,
  input: z.strictObject({
    order_id: id('order'),
    payment_due_at: timestampInput.optional().describe('Default: payment_due_days of the event from now.'),
    notify: notify.describe('Default nobody.'),
    dry_run: dryRun,
  }),
  output: one(OrderSchema).extend({ effect }),
  hints: { destructive: false, idempotent: false, openWorld: true },
} satisfies Declared

export const cancelOrder = {
  name: 'cancel_order',
  title: 'Cancel an order',
  description: `Cancels an order with all its tickets permanently; paid money becomes refund_due. ${dryRunFirst}`,
  method: 'POST',
  path: '/orders/{order_id}/cancel',
  errors: ['invalid_transition'],
  irreversible: true,
  scope: 'orders:write',
  confirmed: 'by_effect',
  lean: orderMoney,
  input: z.strictObject({
    order_id: id('order'),
    ...notice,
    amount_retained: amountRetained.optional(),
  }),
  output: one(OrderSchema).extend({ effect }),
  hints: { destructive: true, idempotent: false, openWorld: true },
} satisfies Declared

export const listPayments = {
  name: 'list_payments',
  title: 'List payments',
  description: `Lists payments, voided ones as well, the last received first. ${nextPage}`,
  method: 'GET',
  path: '/payments',
  scope: 'orders:read',
  unlisted: true,
  lean: names('id order_id method amount received_at external_reference voided_at'),
  input: z.strictObject({
    event_id: id('event').optional(),
    order_id: id('order').optional(),
    received_after: atOrAfter,
    received_before: before,
    ...paging,
  }),
  output: listOf(PaymentSchema),
} satisfies Declared

const amount = minorUnits(1, 1_000_000_000_000)

export const recordInvoicePayment = {
  name: 'record_invoice_payment',
  title: 'Record a payment',
  description:
    'Records money received for an order, and e-mails the buyer a receipt. Partial payments add up. Once nothing is due, its tickets are valid and e-mailed.',
  method: 'POST',
  path: '/orders/{order_id}/payments',
  errors: ['order_expired', 'nothing_due', 'wrong_currency', 'overpayment'],
  scope: 'orders:write',
  lean: orderMoney,
  input: z.strictObject({
    order_id: id('order'),
    amount: amount.describe('Minor units (cents); at most amount_due.'),
    method: oneOf(paymentMethods).optional().describe('Default invoice.'),
    currency: currencyInput.optional().describe("The order's."),
    received_at: timestampInput.optional().describe('Default: now: RFC 3339 with offset.'),
    external_reference: line(255).nullish().describe('Such as the invoice number.'),
  }),
  output: one(OrderSchema),
  hints: { destructive: false, idempotent: false, openWorld: true },
} satisfies Declared

export const voidPayment = {
  name: 'void_payment',
  title: 'Void a payment',
  description:
    'Voids a payment recorded by mistake (id in payments of get_order): its amount is due again, and a buyer who got its receipt is e-mailed. For returned money use record_refund. Permanent: confirm with the person.',
  method: 'POST',
  path: '/payments/{payment_id}/void',
  errors: ['payment_voided', 'payment_refunded'],
  scope: 'orders:write',
  lean: orderMoney,
  input: z.strictObject({
    payment_id: id('payment'),
    reason: line(255).nullish().describe('For people.'),
  }),
  output: one(OrderSchema),
  hints: { destructive: true, idempotent: false, openWorld: true },
} satisfies Declared

export const recordRefund = {
  name: 'record_refund',
  title: 'Record a refund',
  description:
    'Records returned money. It moves no money, and tickets stay valid. Money beyond amount_refundable is due again. On payment_due cancel the order first.',
  method: 'POST',
  path: '/orders/{order_id}/refunds',
  errors: ['payment_due', 'nothing_refundable', 'wrong_currency', 'refund_too_high'],
  irreversible: true,
  scope: 'orders:write',
  confirmed: 'by_effect',
  lean: orderMoney,
  input: z.strictObject({
    order_id: id('order'),
    amount: amount.describe('Minor units (cents).'),
    method: oneOf(paymentMethods).optional().describe('Default bank_transfer.'),
    currency: currencyInput.optional().describe("The order's."),
    refunded_at: timestampInput.optional().describe('Default: now: RFC 3339 with offset.'),
    external_reference: line(255).nullish().describe('Of the credit note.'),
    dry_run: dryRun,
  }),
  output: one(OrderSchema).extend({ effect }),
  hints: { destructive: false, idempotent: false, openWorld: true },
} satisfies Declared
