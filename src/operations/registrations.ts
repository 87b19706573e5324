// Registering guests: an order with its attendees. SQL: supabase/schemas/12_registrations.sql, which leans on
// 08_orders.sql and 09_attendees.sql for every rule.

import * as z from 'zod'
import type { Operation } from '../operation.ts'
import { emailAddress, id, line, one } from './fields.ts'
import { OrderSchema } from './orders.ts'

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
    email: emailAddress,
    company: line(200).nullish().describe('Company of the attendee.'),
    send_email: z
      .boolean('must be true or false')
      .optional()
      .describe('false: the ticket is not e-mailed. Left out: it is.'),
  }),
  output: one(OrderSchema),
  hints: { destructive: false, idempotent: false },
} satisfies Operation
