// Reminders of payments by hand. SQL: supabase/schemas/50-orders/reminders.sql.

import * as z from 'zod'
import { dryRun, effect } from './changes.ts'
import { currency, id, money, one, timestamp } from './fields.ts'
import { names, type Operation } from './operation.ts'
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
  description: 'E-mails the buyer now what is still due: once a day at most, reminders of Usher included.',
  method: 'POST',
  path: '/orders/{order_id}/payment-reminder',
  errors: notReminded,
  scope: 'orders:write',
  toolset: 'orders',
  unlisted: true,
  lean: [...orderMoney, 'email', 'payment_reminded_at'],
  input: z.strictObject({ order_id: id('order'), dry_run: dryRun }),
  output: one(OrderSchema).extend({ effect }),
  hints: { destructive: false, idempotent: false, openWorld: true },
} satisfies Operation

export const PaymentRemindersSchema = z.strictObject({
  object: z.literal('payment_reminders'),
  event_id: id('event'),
  reminded: z.int().describe('Orders whose buyer is reminded.'),
  not_reminded: z.int().describe('Orders whose buyer is not; the code says why.'),
  remaining: z.int().describe('Orders beyond the first 1,000: send the same in a new call.'),
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
        code: z.enum(notReminded).nullable().describe('As send_payment_reminder refuses; null of one who is reminded.'),
        next_reminder_at: timestamp
          .nullable()
          .describe('From when on they can be reminded again, of reminded_recently.'),
      }),
    )
    .describe('At most 1,000: first who is reminded, by deadline.'),
})

export const sendPaymentReminders = {
  name: 'send_payment_reminders',
  title: 'Remind all who have to pay',
  description:
    'E-mails all buyers of an event what is still due, or those of orders only; each once a day at most, reminders of Usher included. Answers who was not reminded and why. Overdue orders have expired: reopen_order.',
  method: 'POST',
  path: '/events/{event_id}/payment-reminders',
  scope: 'orders:write',
  toolset: 'orders',
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
} satisfies Operation
