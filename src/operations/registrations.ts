// Registering guests: an order with its attendees. SQL: supabase/schemas/22_registrations.sql, which leans on
// 15_orders.sql to 20_places.sql for every rule.

import * as z from 'zod'
import type { Operation } from '../operation.ts'
import { emailAddress, externalIdInput, id, line, metadataInput, one } from './fields.ts'
import { OrderSchema, paymentMethods } from './orders.ts'

const company = line(200).nullish()

const Guest = z.strictObject({
  ticket_type_id: id('ticket type; the one beside the list when left out').optional(),
  name: line(200).describe('Name of the attendee.'),
  email: emailAddress,
  company: company.describe('Company of the attendee.'),
  external_id: externalIdInput.optional(),
  metadata: metadataInput.optional(),
})

const Registration = z.strictObject({
  event_id: id('event'),
  ticket_type_id: id('ticket type, which must be one of the event').optional(),
  name: line(200).optional().describe('Name of the attendee; of the buyer, where there are attendees.'),
  email: emailAddress.optional(),
  company: company.describe('Company of the attendee; of the buyer, where there are attendees.'),
  attendees: z
    .array(Guest)
    .min(1, 'must name at least one attendee')
    .max(50, 'must name at most 50 attendees')
    .optional()
    .describe(
      'A group in one order, all or none: up to 50, each with ticket_type_id, name and email. name, email and company beside the list are then the buyer, who is the first of them when left out.',
    ),
  payment_method: z
    .enum(paymentMethods, `must be one of ${paymentMethods.join(', ')}`)
    .optional()
    .describe(
      'Left out: the tickets are complimentary. Given, usually invoice: they have their prices, and the order is pending until record_invoice_payment covers it.',
    ),
  promo_code: line(50).optional().describe('Takes a percentage off; needs a payment_method. Case does not matter.'),
  send_email: z
    .boolean('must be true or false')
    .optional()
    .describe('false: the tickets are not e-mailed. Left out: they are, once the order is completed.'),
  external_id: externalIdInput
    .optional()
    .describe('Your own identifier of the order, and of its attendee where there is no list of them.'),
  metadata: metadataInput
    .optional()
    .describe('Your own flat object on the order, and on its attendee where there is no list of them.'),
})

/** What the two forms need. Also asked when another field is bad, so that an answer names them all. */
const always = { when: () => true }

export const registerAttendee = {
  name: 'register_attendee',
  title: 'Register attendees',
  summary: 'Register a guest, or a group in one order: complimentary tickets, or tickets to be paid by invoice.',
  description:
    'Registers one guest (ticket_type_id, name, email) or a group (attendees, up to 50, all or none) and e-mails the tickets, unless send_email is false. Without a payment_method the tickets are complimentary and good at once. With payment_method invoice they have their prices, a promo_code may take something off, and they are good and e-mailed once record_invoice_payment covers the order. Answers the order with its attendees; each holds a ticket_code. The event must be published (event_not_published) and the ticket type on sale (see list_ticket_types). On sold_out choose another ticket type; on quantity_not_allowed change the number of tickets; on sales_not_started or sales_ended tell the person when; on a refusal about promo_code try without it. Send an idempotency_key so that repeating the call after a lost answer registers nobody twice.',
  method: 'POST',
  path: '/events/{event_id}/registrations',
  scope: 'attendees:write',
  input: Registration.refine((input) => input.attendees || input.ticket_type_id !== undefined, {
    path: ['ticket_type_id'],
    error: 'is required',
    ...always,
  })
    .refine((input) => input.attendees || input.name !== undefined, { path: ['name'], error: 'is required', ...always })
    .refine((input) => input.attendees || input.email !== undefined, {
      path: ['email'],
      error: 'is required',
      ...always,
    })
    .refine((input) => input.ticket_type_id !== undefined || !input.attendees?.some((guest) => !guest.ticket_type_id), {
      path: ['attendees'],
      error: 'must each name their ticket_type_id, or there must be one beside the list',
    })
    .meta({
      anyOf: [
        { required: ['ticket_type_id', 'name', 'email'] },
        { required: ['ticket_type_id', 'attendees'] },
        {
          required: ['attendees'],
          properties: { attendees: { items: { required: ['ticket_type_id'], properties: { ticket_type_id: {} } } } },
        },
      ],
    }),
  output: one(OrderSchema),
  hints: { destructive: false, idempotent: false },
} satisfies Operation
