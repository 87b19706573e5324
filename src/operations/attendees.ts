// Attendees. SQL: supabase/schemas/17_attendees.sql and 18_attendee_operations.sql.

import * as z from 'zod'
import type { Operation } from '../operation.ts'
import {
  changesOf,
  currency,
  dryRun,
  effect,
  emailAddress,
  externalId,
  externalIdInput,
  id,
  ifVersions,
  line,
  listOf,
  metadata,
  metadataInput,
  money,
  one,
  paging,
  timestamp,
  updatedSince,
  version,
} from './fields.ts'
import { qrPictures } from './ticket-qr.ts'

const attendeeStatuses = ['active', 'awaiting_payment', 'cancelled'] as const
const ticketEmailStatuses = [
  'not_requested',
  'waiting',
  'queued',
  'sent',
  'delivered',
  'bounced',
  'failed',
  'cancelled',
] as const

export const AttendeeSchema = z.strictObject({
  object: z.literal('attendee'),
  id: id('attendee'),
  order_id: id('order'),
  event_id: id('event'),
  ticket_type_id: id('ticket type'),
  name: z.string(),
  email: z.string(),
  company: z.string().nullable(),
  price: money.describe('What the ticket cost when it was registered, in minor units; 0 when complimentary.'),
  discount: money.describe('What the promo code took off the price, in minor units.'),
  currency,
  status: z.enum(attendeeStatuses),
  ticket_code: z
    .string()
    .nullable()
    .describe(
      'What the QR code of the ticket holds; check_in takes it. null in the answers to orders:read and orders:write.',
    ),
  checked_in_at: timestamp.nullable(),
  ticket_email: z.strictObject({
    status: z.enum(ticketEmailStatuses),
    sent_at: timestamp.nullable(),
    last_error: z.string().nullable(),
  }),
  cancelled_at: timestamp.nullable(),
  external_id: externalId,
  metadata,
  version,
  created_at: timestamp,
  updated_at: timestamp,
})

export const listAttendees = {
  name: 'list_attendees',
  title: 'List attendees',
  summary: 'Attendees of the organisation, newest first, by any of the filters.',
  description:
    'Lists attendees, newest first. Narrow it down: by event_id, by the e-mail address or the order reference a person gives you, by status, or with checked_in false to see who is missing. When has_more is true, call again with cursor set to next_cursor. For a sync, remember when you started and pass it as updated_since the next time.',
  method: 'GET',
  path: '/attendees',
  scope: 'attendees:read',
  input: z.strictObject({
    event_id: id('event').optional(),
    order_id: id('order').optional(),
    ticket_type_id: id('ticket type').optional(),
    status: z
      .enum(attendeeStatuses, `must be one of ${attendeeStatuses.join(', ')}`)
      .optional()
      .describe('Only attendees with this status.'),
    checked_in: z.boolean('must be true or false').optional().describe('Only those who are inside, or are not.'),
    ticket_email_status: z
      .enum(ticketEmailStatuses, `must be one of ${ticketEmailStatuses.join(', ')}`)
      .optional()
      .describe('Only those whose ticket e-mail has this status: bounced and failed want somebody to look.'),
    email: line(254).optional().describe('Only this e-mail address; upper and lower case are the same.'),
    reference: line(20).optional().describe('Only those of the order with this reference.'),
    external_id: line(255).optional().describe('Only the attendee with this identifier of yours.'),
    updated_since: updatedSince,
    ...paging,
  }),
  output: listOf(AttendeeSchema),
} satisfies Operation

export const getAttendee = {
  name: 'get_attendee',
  title: 'Get an attendee',
  summary: 'One attendee.',
  description: 'Reads one attendee by their identifier. On not_found, find the identifier with list_attendees.',
  method: 'GET',
  path: '/attendees/{attendee_id}',
  scope: 'attendees:read',
  input: z.strictObject({ attendee_id: id('attendee') }),
  output: one(AttendeeSchema),
} satisfies Operation

export const TicketQrSchema = z.strictObject({
  object: z.literal('ticket_qr'),
  attendee_id: id('attendee'),
  event_id: id('event'),
  name: z.string(),
  ticket_code: z.string().describe('What the QR code holds.'),
})

export const getTicketQr = {
  name: 'get_ticket_qr',
  title: 'Get the QR code of a ticket',
  summary: 'The QR code of a ticket.',
  description:
    'Shows the ticket of one active attendee: its code, and the picture of the QR code that the door scans. Show it to nobody but the attendee. On ticket_not_active the ticket is cancelled, or its order is not paid for; to e-mail a ticket use resend_ticket.',
  method: 'GET',
  path: '/attendees/{attendee_id}/ticket',
  scope: 'attendees:read',
  input: z.strictObject({ attendee_id: id('attendee') }),
  output: one(TicketQrSchema),
  pictures: qrPictures,
} satisfies Operation

export const updateAttendee = {
  name: 'update_attendee',
  title: 'Change an attendee',
  summary: 'Correct an attendee, or transfer their ticket to somebody else.',
  description:
    'Corrects the name, e-mail address or company of an attendee. To transfer the ticket to another person, change name and email and set reissue_ticket to true: the ticket gets a new code, which is e-mailed where tickets of the order are, and the old QR code stops working. On ticket_not_reissuable the ticket was used or cancelled; on version_mismatch read the attendee again.',
  method: 'PATCH',
  path: '/attendees/{attendee_id}',
  scope: 'attendees:write',
  input: z.strictObject({
    attendee_id: id('attendee'),
    changes: changesOf({
      name: line(200).describe('Name of the attendee.'),
      email: emailAddress,
      company: line(200).nullable().describe('Company of the attendee.'),
      external_id: externalIdInput,
      metadata: metadataInput,
      reissue_ticket: z
        .boolean('must be true or false')
        .describe(
          'true: a new ticket code is given, and e-mailed where the old one was to be; the old one stops working.',
        ),
    }),
    if_version: ifVersions,
  }),
  output: one(AttendeeSchema),
  hints: { destructive: true, idempotent: false },
} satisfies Operation

export const cancelAttendee = {
  name: 'cancel_attendee',
  title: 'Cancel an attendee',
  summary: 'Cancel one ticket for good; its place is free again.',
  description:
    'Cancels the ticket of one attendee for good and gives the place back. The order costs less by its price; with its last ticket it is cancelled, too; what was paid too much becomes refund_due. Confirm with the person, or try it with dry_run first. To cancel a whole order use cancel_order.',
  method: 'POST',
  path: '/attendees/{attendee_id}/cancel',
  scope: 'attendees:write',
  input: z.strictObject({ attendee_id: id('attendee'), dry_run: dryRun }),
  output: one(AttendeeSchema).extend({ effect }),
  hints: { destructive: true, idempotent: false },
} satisfies Operation

export const resendTicket = {
  name: 'resend_ticket',
  title: 'Resend a ticket',
  summary: 'E-mail the ticket of an attendee once more.',
  description:
    'Queues the ticket e-mail of an active attendee once more, to the address they have now. If the address was wrong, correct it with update_attendee first. On ticket_not_active the ticket is cancelled or not paid for.',
  method: 'POST',
  path: '/attendees/{attendee_id}/ticket-email',
  scope: 'attendees:write',
  input: z.strictObject({ attendee_id: id('attendee') }),
  output: one(AttendeeSchema),
  hints: { destructive: false, idempotent: false },
} satisfies Operation
