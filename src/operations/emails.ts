// E-mails to attendees, buyers and whoever waits: what became of each, what one says, and one again.
// SQL: supabase/schemas/90-outbox/email-operations.sql.

import * as z from 'zod'
import { ticketEmailStatuses } from './attendees.ts'
import { emailKinds } from './email-kinds.ts'
import { id, one, timestamp } from './fields.ts'
import { oneOf } from './inputs.ts'
import { listOf, nextPage, paging } from './lists.ts'
import type { Declared } from './operation.ts'

export const EmailSchema = z.strictObject({
  object: z.literal('email'),
  id: id('e-mail'),
  kind: z.enum(emailKinds),
  status: z
    .enum(ticketEmailStatuses)
    .describe('sent: accepted by the mail service. failed: given up. cancelled: outdated or stopped.'),
  to: z.string().nullable().describe('null: to the buyer, and not sent yet or the key may not read orders.'),
  order_id: id('order').nullable(),
  attendee_id: id('attendee').nullable().describe('null: to the buyer or to a person on the waiting list.'),
  waiting_list_entry_id: id('entry of the waiting list').nullable(),
  attempts: z.int().describe('Attempts since it was last queued.'),
  next_attempt_at: timestamp.nullable(),
  sent_at: timestamp.nullable(),
  error: z.string().nullable().describe('Why it failed or bounced.'),
  created_at: timestamp,
  updated_at: timestamp,
})

const essentials = ['id', 'kind', 'status', 'to', 'attendee_id', 'sent_at', 'error', 'created_at']

export const listEmails = {
  name: 'list_emails',
  title: 'List e-mails',
  description: `Lists e-mails, newest first, without content; get_email has it for test organisations. resend_email sends one again. ${nextPage}`,
  method: 'GET',
  path: '/emails',
  scope: 'attendees:read',
  unlisted: true,
  lean: essentials,
  input: z.strictObject({
    order_id: id('order: to its buyer and attendees').optional(),
    attendee_id: id('attendee').optional(),
    kind: oneOf(emailKinds).optional().describe('Only this kind.'),
    status: oneOf(ticketEmailStatuses).optional().describe('Only e-mails with this status.'),
    ...paging,
  }),
  output: listOf(EmailSchema),
} satisfies Declared

const AttachmentSchema = z.strictObject({
  filename: z.string(),
  content_type: z.string(),
  content_id: z.string().nullable().describe('For a picture in the HTML: what follows cid: there.'),
  content: z.string().describe('Base64.'),
})

const ofTests = 'null in a live organisation, and until it is composed.'

export const getEmail = {
  name: 'get_email',
  title: 'Get an e-mail',
  description:
    'Returns an e-mail of list_emails. Of a test organisation, which keeps what it would send: with subject, text, HTML and attachments.',
  method: 'GET',
  path: '/emails/{email_id}',
  scope: 'attendees:read',
  unlisted: true,
  lean: [...essentials, 'subject', 'text'],
  input: z.strictObject({ email_id: id('e-mail') }),
  output: one(
    EmailSchema.extend({
      subject: z.string().nullable().describe(ofTests),
      text: z.string().nullable().describe(ofTests),
      html: z.string().nullable().describe(ofTests),
      attachments: z.array(AttachmentSchema).nullable().describe(ofTests),
    }),
  ),
} satisfies Declared

export const resendEmail = {
  name: 'resend_email',
  title: 'Resend an e-mail',
  description:
    'Sends an e-mail of list_emails again to the current address; a ticket as resend_ticket does. email_obsolete: out of date, or a reminder, of which send_payment_reminder sends another. ticket_not_active: cancelled or unpaid.',
  method: 'POST',
  path: '/emails/{email_id}/resend',
  errors: ['email_obsolete', 'ticket_not_active', 'no_address', 'attendee_erased'],
  scope: 'attendees:write',
  unlisted: true,
  lean: essentials,
  input: z.strictObject({ email_id: id('e-mail') }),
  output: one(EmailSchema),
  hints: { destructive: false, idempotent: false, openWorld: true },
} satisfies Declared
