// Attendees. SQL: supabase/schemas/60-attendees/.

import * as z from 'zod'
import { amountRetained, changesOf, dryRun, dryRunFirst, effect, ifVersions, notice, readAgain } from './changes.ts'
import { salesClosed } from './error-codes.ts'
import { currency, id, money, one, ownFields, timestamp, versioned } from './fields.ts'
import { answersInput, emailAddress, flag, line, oneOf, ownInputs } from './inputs.ts'
import { atOrAfter, emailFilter, forSync, listOf, nextPage, paging, searchInput } from './lists.ts'
import { type Declared, names } from './operation.ts'
import { KeptSchema } from './people.ts'
import { qrPictures } from './ticket-qr.ts'

export const attendeeStatuses = ['active', 'awaiting_payment', 'cancelled'] as const
export const ticketEmailStatuses = [
  'not_requested',
  'waiting',
  'queued',
  'sent',
  'delivered',
  'bounced',
  'failed',
  'cancelled',
] as const

/** What a guest is registered with, and what may be changed of an attendee. Only the first two are needed. */
export const guestFields = {
  name: line(200).describe('Name of the person.'),
  email: emailAddress,
  company: line(200).nullable().describe('Company of the person.'),
  answers: answersInput,
  ...ownInputs,
}

export const AttendeeSchema = z.strictObject({
  object: z.literal('attendee'),
  id: id('attendee'),
  order_id: id('order'),
  event_id: id('event'),
  ticket_type_id: id('ticket type'),
  order: z.strictObject({ id: id('order'), reference: z.string().describe('Short reference for people.') }),
  ticket_type: z.strictObject({ id: id('ticket type'), name: z.string() }),
  name: z.string(),
  email: z.string(),
  company: z.string().nullable(),
  price: money.describe('Price when the ticket was registered, in minor units; 0 when complimentary.'),
  discount: money.describe('Discount of the promo code, or its share of an amount off the order, in minor units.'),
  currency,
  status: z.enum(attendeeStatuses),
  ticket_code: z
    .string()
    .nullable()
    .describe('Content of the QR code, for check_in. null in answers to orders:read and orders:write.'),
  ticket_url: z
    .string()
    .nullable()
    .describe(
      'Ticket page for the holder, a secret as ticket_code is. null in webhooks, and where ticket_code is null.',
    ),
  checked_in_at: timestamp.nullable(),
  inside: z.boolean().describe('Checked in without a later exit scan, on any day.'),
  ticket_email: z.strictObject({
    status: z.enum(ticketEmailStatuses),
    sent_at: timestamp.nullable(),
    last_error: z.string().nullable(),
  }),
  cancelled_at: timestamp.nullable(),
  erased_at: timestamp.nullable().describe('When the personal data was erased.'),
  ...ownFields,
  answers: z
    .record(z.string(), z.unknown())
    .describe('By key of the question. Those of sensitive questions only in list_attendees and get_attendee.'),
  unanswered: z.array(z.string()).describe('Keys of required questions without an answer.'),
  ...versioned,
})

const attendeeEssentials = names('id name email company status order.reference ticket_type.name ticket_email.status')

export const listAttendees = {
  name: 'list_attendees',
  title: 'List attendees',
  description: `Lists attendees, newest first; checked_in false: not arrived. ${nextPage} ${forSync}`,
  method: 'GET',
  path: '/attendees',
  scope: 'attendees:read',
  lean: [...attendeeEssentials, 'event_id', 'checked_in_at'],
  input: z.strictObject({
    event_id: id('event').optional(),
    order_id: id('order').optional(),
    ticket_type_id: id('ticket type').optional(),
    search: searchInput
      .optional()
      .describe('Parts of name, e-mail address, company, external_id or reference; one of 3 characters.'),
    status: oneOf(attendeeStatuses).optional(),
    checked_in: flag.optional().describe('Only those who are, or are not.'),
    inside: flag.optional().describe('Only those inside now, or not.'),
    ticket_email_status: oneOf(ticketEmailStatuses).optional().describe('bounced and failed need attention.'),
    email: emailFilter,
    reference: line(20).optional().describe('Of the order with this reference.'),
    external_id: line(255).optional().describe('Your own identifier.'),
    answer: line(200).optional().describe('Only with this answer at event_id: diet:vegan.'),
    unanswered: flag.optional().describe('true: at event_id, only those with an unanswered required question.'),
    updated_after: atOrAfter,
    ...paging,
  }),
  output: listOf(AttendeeSchema),
} satisfies Declared

export const getAttendee = {
  name: 'get_attendee',
  title: 'Get an attendee',
  description: 'Returns one attendee with all fields.',
  method: 'GET',
  path: '/attendees/{attendee_id}',
  scope: 'attendees:read',
  unlisted: true,
  input: z.strictObject({ attendee_id: id('attendee') }),
  output: one(AttendeeSchema),
} satisfies Declared

export const TicketQrSchema = z.strictObject({
  object: z.literal('ticket_qr'),
  attendee_id: id('attendee'),
  event_id: id('event'),
  name: z.string(),
  ticket_code: z.string().describe('Content of the QR code.'),
})

export const getTicketQr = {
  name: 'get_ticket_qr',
  title: 'Get the QR code of a ticket',
  description:
    'Shows the ticket of an attendee: its code, and an image of the QR code. Show it only to them; resend_ticket e-mails it. ticket_not_active: cancelled or unpaid.',
  method: 'GET',
  path: '/attendees/{attendee_id}/ticket',
  errors: ['ticket_not_active'],
  scope: 'attendees:read',
  unlisted: true,
  input: z.strictObject({ attendee_id: id('attendee') }),
  output: one(TicketQrSchema),
  pictures: qrPictures,
} satisfies Declared

export const updateAttendee = {
  name: 'update_attendee',
  irreversibleChange: 'reissue_ticket',
  title: 'Change an attendee',
  description: `Changes an attendee, or moves them to another ticket type at their price; resend_ticket sends it. To transfer the ticket, change name and email with reissue_ticket true (attendee by id or reference): a new code is e-mailed, and the old one stops working. ${readAgain}`,
  method: 'PATCH',
  path: '/attendees/{attendee_id}',
  errors: ['attendee_erased', 'ticket_not_reissuable', 'already_exists', ...salesClosed, 'sold_out'],
  scope: 'attendees:write',
  lean: attendeeEssentials,
  input: z.strictObject({
    attendee_id: id('attendee'),
    changes: changesOf({
      ...guestFields,
      ticket_type_id: id('ticket type'),
      reissue_ticket: flag.describe(
        'true: issue a new ticket code, e-mailed if tickets are; the old one stops working.',
      ),
    }),
    if_version: ifVersions,
  }),
  output: one(AttendeeSchema),
  hints: { destructive: true, idempotent: false, openWorld: true },
} satisfies Declared

export const cancelAttendee = {
  name: 'cancel_attendee',
  title: 'Cancel an attendee',
  description: `Cancels one ticket permanently, and with its last ticket the order; overpaid money becomes refund_due. ${dryRunFirst}`,
  method: 'POST',
  path: '/attendees/{attendee_id}/cancel',
  errors: ['invalid_transition'],
  irreversible: true,
  scope: 'attendees:write',
  confirmed: 'by_effect',
  lean: attendeeEssentials,
  input: z.strictObject({
    attendee_id: id('attendee'),
    ...notice,
    amount_retained: amountRetained
      .optional()
      .describe('Further fee kept from the cancelled price; needs orders:write.'),
  }),
  output: one(AttendeeSchema).extend({ effect }),
  hints: { destructive: true, idempotent: false, openWorld: true },
} satisfies Declared

export const resendTicket = {
  name: 'resend_ticket',
  title: 'Resend a ticket',
  description: 'E-mails an attendee their ticket again. Correct a wrong address with update_attendee first.',
  method: 'POST',
  path: '/attendees/{attendee_id}/ticket-email',
  errors: ['ticket_not_active', 'no_address', 'attendee_erased'],
  scope: 'attendees:write',
  lean: attendeeEssentials,
  input: z.strictObject({ attendee_id: id('attendee') }),
  output: one(AttendeeSchema),
  hints: { destructive: false, idempotent: false, openWorld: true },
} satisfies Declared

const ErasureSchema = z.strictObject({
  object: z.literal('erasure'),
  attendee_id: id('attendee'),
  order_id: id('order'),
  event_id: id('event'),
  erased_at: timestamp.nullable().describe('null in a dry run.'),
  attendees: z.int().describe('Attendees erased: 1.'),
  orders: z.int().describe('Orders whose buyer was the person.'),
  waiting_list_entries: z.int(),
  notifications: z.int().describe('Notifications with erased data.'),
  webhook_deliveries: z.int().describe('Deliveries with an erased response, which may repeat the data.'),
  ticket_emails: z.int(),
  audit_entries: z.int(),
  idempotency_records: z.int(),
  kept: KeptSchema,
})

export const eraseAttendee = {
  name: 'erase_attendee',
  title: 'Erase the person of a ticket',
  description:
    'Erases all personal data of one attendee permanently: also in the order if they are its buyer, and in every log. Figures and money stay, and so do other tickets of the person: erase_person finds all. Call it with dry_run first, and only after the person confirmed.',
  method: 'POST',
  path: '/attendees/{attendee_id}/erase',
  errors: ['attendee_erased'],
  irreversible: true,
  scope: 'attendees:write',
  unlisted: true,
  confirmed: 'always',
  input: z.strictObject({ attendee_id: id('attendee'), dry_run: dryRun }),
  output: one(ErasureSchema).extend({ effect }),
  hints: { destructive: true, idempotent: false, openWorld: true },
} satisfies Declared
