// Reminders of payments by hand. SQL: supabase/schemas/50-orders/reminders.sql.

import * as z from 'zod'
import { dryRun, effect } from './changes.ts'
import { currency, id, money, one, timestamp } from './fields.ts'
import { type Declared, names } from './operation.ts'
import { OrderSchema, orderMoney } from './orders.ts'

const notReminded = [
  'reminded_recently',
  'buyer_not_mailed',
  'nothing_due',
  'order_cancelled',
  'order_expired',
] as const

export const sendPaymentReminder = {
  name: 'send_payment_reminder',
  title: 'Remind of a payment',
  description: 'E-mails the buyer a reminder of the amount due, at most one a day, automatic ones included.',
  method: 'POST',
  path: '/orders/{order_id}/payment-reminder',
  errors: notReminded,
  scope: 'orders:write',
  unlisted: true,
  lean: [...orderMoney, 'email', 'payment_reminded_at'],
  input: z.strictObject({ order_id: id('order'), dry_run: dryRun }),
  output: one(OrderSchema).extend({ effect }),
  hints: { destructive: false, idempotent: false, openWorld: true },
} satisfies Declared

export const PaymentRemindersSchema = z.strictObject({
  object: z.literal('payment_reminders'),
  event_id: id('event'),
  reminded: z.int().describe('Orders whose buyer is reminded.'),
  not_reminded: z.int().describe('Orders whose buyer is not reminded; code has the reason.'),
  remaining: z.int().describe('Orders beyond the first 1,000: repeat the call.'),
  results: z
    .array(
      z.strictObject({
        order_id: id('order'),
        reference: z.string(),
        name: z.string(),
        email: z.string(),
        amount_due: money,
        currency,
        result: z.enum(['reminded', 'not_reminded']),
        code: z.enum(notReminded).nullable().describe('Error code of send_payment_reminder; null if reminded.'),
        next_reminder_at: timestamp.nullable().describe('For reminded_recently: the next possible time.'),
      }),
    )
    .describe('At most 1,000: reminded ones first, by deadline.'),
})

export const sendPaymentReminders = {
  name: 'send_payment_reminders',
  title: 'Remind all buyers with an amount due',
  description:
    'E-mails a reminder to all buyers of an event with an amount due, or to the buyers of orders; each gets at most one a day, automatic ones included. Answers who was not reminded and why. Reopen expired orders with reopen_order.',
  method: 'POST',
  path: '/events/{event_id}/payment-reminders',
  scope: 'orders:write',
  confirmed: 'by_effect',
  lean: names(`
    reminded not_reminded remaining
    results.reference results.name results.email results.amount_due results.code results.next_reminder_at
  `),
  input: z.strictObject({
    event_id: id('event'),
    order_ids: z
      .array(id('order'))
      .min(1, 'must name at least one order')
      .max(100, 'must name at most 100 orders')
      .optional()
      .describe('Only these, of the event.'),
    dry_run: dryRun,
  }),
  output: one(PaymentRemindersSchema).extend({ effect }),
  hints: { destructive: false, idempotent: false, openWorld: true },
} satisfies Declared
