// Registering guests: an order with its attendees. SQL: supabase/schemas/10_registrations.sql, which leans on
// 08_orders.sql and 09_attendees.sql for every rule.

import * as z from 'zod'
import type { Operation } from '../operation.ts'
import { currency, externalId, id, line, metadata, money, one, timestamp } from './fields.ts'

export const AttendeeSchema = z.strictObject({
  object: z.literal('attendee'),
  id: id('attendee'),
  order_id: id('order'),
  event_id: id('event'),
  ticket_type_id: id('ticket type'),
  name: z.string(),
  email: z.string(),
  company: z.string().nullable(),
  status: z.enum(['active', 'awaiting_payment', 'cancelled']),
  ticket_code: z.string().describe('What the QR code of the ticket holds; check_in takes it.'),
  checked_in_at: timestamp.nullable(),
  ticket_email: z.strictObject({
    status: z.enum(['not_requested', 'waiting', 'queued', 'sent', 'delivered', 'bounced', 'failed', 'cancelled']),
    sent_at: timestamp.nullable(),
    last_error: z.string().nullable(),
  }),
  cancelled_at: timestamp.nullable(),
  external_id: externalId,
  metadata,
  created_at: timestamp,
  updated_at: timestamp,
})

export const OrderSchema = z.strictObject({
  object: z.literal('order'),
  id: id('order'),
  event_id: id('event'),
  reference: z.string().describe('Short and readable, for people.'),
  status: z.enum(['pending', 'completed', 'cancelled']),
  payment_status: z.enum(['not_required', 'awaiting_payment', 'partially_paid', 'paid', 'refund_due']),
  name: z.string(),
  email: z.string(),
  company: z.string().nullable(),
  currency,
  subtotal: money,
  discount_total: money,
  total: money,
  amount_paid: money,
  amount_due: money,
  payment_method: z.string().nullable(),
  source: z.enum(['api', 'mcp', 'studio']),
  attendees: z.array(AttendeeSchema),
  completed_at: timestamp.nullable(),
  cancelled_at: timestamp.nullable(),
  external_id: externalId,
  metadata,
  created_at: timestamp,
  updated_at: timestamp,
})

export const registerAttendee = {
  name: 'register_attendee',
  title: 'Register an attendee',
  summary: 'Issue a complimentary ticket to a guest and e-mail it.',
  description:
    'Issues one complimentary ticket of a ticket type to a guest and e-mails it, unless send_email is false. Answers the order with its attendee; the attendee holds the ticket_code. The event must be published (event_not_published) and the ticket type on sale (see list_ticket_types). On sold_out choose another ticket type; on sales_not_started or sales_ended tell the person when. Send an idempotency_key so that repeating the call after a lost answer registers nobody twice.',
  method: 'POST',
  path: '/events/{event_id}/registrations',
  scope: 'attendees:write',
  input: z.strictObject({
    event_id: id('event'),
    ticket_type_id: id('ticket type, which must be one of the event'),
    name: line(200).describe('Name of the attendee.'),
    email: z
      .string()
      .trim()
      .max(254, 'must be at most 254 characters')
      .pipe(z.email('must be an e-mail address'))
      .describe('E-mail address of the attendee; the QR ticket is sent here.'),
    company: line(200).nullish().describe('Company of the attendee.'),
    send_email: z
      .boolean('must be true or false')
      .optional()
      .describe('false: the ticket is not e-mailed. Left out: it is.'),
  }),
  output: one(OrderSchema),
  hints: { destructive: false, idempotent: false },
} satisfies Operation
