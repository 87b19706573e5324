// Registration: creates an order with its attendees, for one guest, a group, or each guest of an import.
// SQL: supabase/schemas/60-attendees/registrations.sql and 60-attendees/imports.sql; the rules are in 50-orders/rules.sql and 60-attendees/rules.sql.

import * as z from 'zod'
import { AttendeeSchema, attendeeStatuses, guestFields } from './attendees.ts'
import { dryRun } from './changes.ts'
import { promoCodeRefused, salesClosed } from './error-codes.ts'
import { id, one } from './fields.ts'
import { between, flag, line, metadataInput, minorUnits, oneOf } from './inputs.ts'
import { type Declared, names } from './operation.ts'
import { newOrder, OrderSchema, paymentMethods } from './orders.ts'

const Guest = z
  .strictObject({ ticket_type_id: id('ticket type; default: the ticket_type_id beside the list'), ...guestFields })
  .partial()
  .required({ name: true, email: true })

const Registration = z
  .strictObject({
    event_id: id('event'),
    ticket_type_id: id('ticket type, one of the event'),
    name: guestFields.name,
    email: guestFields.email,
    company: guestFields.company,
    answers: guestFields.answers,
    attendees: z
      .array(Guest)
      .min(1, 'must name at least one attendee')
      .max(50, 'must name at most 50 attendees')
      .describe(
        'A group in one order; name, email and company beside it are those of the buyer, by default the first attendee.',
      ),
    payment_method: oneOf(paymentMethods).describe('Left out: complimentary. Usually invoice.'),
    promo_code: line(50).describe('For a discount; needs a payment_method.'),
    expected_total: minorUnits(0, 10_000_000_000_000).describe('Refuses the order if it comes to another amount.'),
    send_email: flag.describe('false: nothing is e-mailed.'),
    external_id: guestFields.external_id,
    metadata: metadataInput.describe('Your own flat JSON object, on the order.'),
  })
  .partial()
  .required({ event_id: true })

// The two forms, as published. That each guest of a group needs a ticket type, their own or the one beside the list, no form says.
const body = Registration.omit({ event_id: true })
const ofOneGuest = body.omit({ attendees: true }).required({ ticket_type_id: true, name: true, email: true })
const ofAGroup = body.required({ attendees: true })

const requiredOfOne = (field: string) =>
  between(field, (input) => (input.attendees ?? input[field]) !== undefined, 'is required')

export const registerAttendee = {
  name: 'register_attendee',
  title: 'Register attendees',
  description:
    'Registers a guest (ticket type, name, email) or a group (attendees: up to 50, all or none) and e-mails the tickets. Without payment_method they are complimentary and valid at once. With invoice they have their prices, and become valid and e-mailed once record_invoice_payment covers the order. On sold_out choose another ticket type, or join_waiting_list. Send an idempotency_key.',
  method: 'POST',
  path: '/events/{event_id}/registrations',
  errors: [...salesClosed, 'sold_out', 'quantity_not_allowed', ...promoCodeRefused, 'total_changed', 'already_exists'],
  batch: 'register_attendees',
  scope: 'attendees:write',
  lean: newOrder,
  input: Registration.check(...['ticket_type_id', 'name', 'email'].map(requiredOfOne)).refine(
    (input) => input.ticket_type_id !== undefined || !input.attendees?.some((guest) => !guest.ticket_type_id),
    { path: ['attendees'], error: 'must each have a ticket_type_id, unless there is one beside the list' },
  ),
  body: {
    name: 'RegistrationRequest',
    forms: { GuestRegistration: ofOneGuest, GroupRegistration: ofAGroup },
  },
  output: one(OrderSchema),
  hints: { destructive: false, idempotent: false, openWorld: true },
} satisfies Declared

export const addAttendee = {
  name: 'add_attendee',
  title: 'Add an attendee to an order',
  description:
    'Adds a guest to a pending order, at the price and with the promo code of the order: its total rises, and the ticket becomes valid with the others once record_invoice_payment covers it. Other orders take no more guests: register_attendee.',
  method: 'POST',
  path: '/orders/{order_id}/attendees',
  errors: [
    'order_completed',
    'order_cancelled',
    'order_expired',
    ...salesClosed,
    'sold_out',
    'quantity_not_allowed',
    ...promoCodeRefused,
    'already_exists',
  ],
  scope: 'attendees:write',
  unlisted: true,
  lean: names('id name status price discount ticket_code order.reference'),
  input: z
    .strictObject({
      order_id: id('pending order'),
      ticket_type_id: id('ticket type, one of the event'),
      ...guestFields,
    })
    .partial()
    .required({ order_id: true, ticket_type_id: true, name: true, email: true }),
  output: one(AttendeeSchema),
  hints: { destructive: false, idempotent: false, openWorld: true },
} satisfies Declared

const ImportResultSchema = z.strictObject({
  external_id: z.string().nullable(),
  result: z.enum(['created', 'updated', 'unchanged', 'refused']),
  attendee_id: z.string().nullable().describe('Identifier of the attendee.'),
  order_id: z.string().nullable().describe('Identifier of the order.'),
  status: z.enum(attendeeStatuses).nullable().describe('Status of the attendee; null if refused.'),
  error: z
    .strictObject({
      code: z.string().describe('Error code of register_attendee or update_attendee, or cancelled.'),
      message: z.string().describe('For people.'),
      param: z.string().nullable().describe('The field with the error.'),
      details: z.unknown().optional().describe('Depends on the code.'),
      hint: z.string().nullable().describe('What to do.'),
    })
    .nullable()
    .describe('Why the guest was refused.'),
})

export const AttendeeImportSchema = z.strictObject({
  object: z.literal('attendee_import'),
  event_id: id('event'),
  dry_run: z.boolean().describe('true: nothing was changed.'),
  created: z.int(),
  updated: z.int(),
  unchanged: z.int(),
  refused: z.int(),
  remaining: z
    .int()
    .describe('Guests at the end of the list without a result, because time ran out: send them in a new call.'),
  results: z.array(ImportResultSchema).describe('In the order of the list.'),
})

export const importAttendees = {
  name: 'import_attendees',
  title: 'Import attendees',
  description:
    'Registers up to 1,000 guests with complimentary tickets, an order each, or updates those with the same external_id, or the same email and name. A refused guest does not stop the others. Send remaining guests again. Tickets are e-mailed only with send_email true: ask the person first.',
  method: 'POST',
  path: '/events/{event_id}/attendees/import',
  bodyLimit: { bytes: 2 * 1024 * 1024, values: 100_000 },
  judged: 'attendees',
  scope: 'attendees:write',
  confirmed: 'by_effect',
  lean: ['dry_run', 'created', 'updated', 'unchanged', 'refused', 'remaining', 'results.external_id', 'results.error'],
  leanItems: { list: 'results', path: 'result', value: 'refused' },
  input: z.strictObject({
    event_id: id('event'),
    ticket_type_id: id('ticket type of new attendees without their own').optional(),
    attendees: z
      .array(Guest)
      .min(1, 'must name at least one attendee')
      .max(1000, 'must name at most 1000 attendees')
      .describe('Each guest once.'),
    send_email: flag.optional().describe('true: e-mail the tickets of new attendees.'),
    dry_run: dryRun,
  }),
  output: one(AttendeeImportSchema),
  hints: { destructive: true, idempotent: true, openWorld: true },
} satisfies Declared
