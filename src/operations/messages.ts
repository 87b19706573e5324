// Messages to attendees in the organiser's own words. SQL: supabase/schemas/60-attendees/messages.sql.

import * as z from 'zod'
import { attendeeStatuses } from './attendees.ts'
import { dryRun, effect } from './changes.ts'
import { id, one } from './fields.ts'
import { flag, line, oneOf, prose } from './inputs.ts'
import type { Declared } from './operation.ts'

export const MessageSchema = z.strictObject({
  object: z.literal('message'),
  id: id('message').nullable().describe('null in a dry run.'),
  event_id: id('event'),
  subject: z.string(),
  told: z.int().describe('People who are e-mailed. effect.not_told counts the others by reason.'),
})

export const messageAttendees = {
  name: 'message_attendees',
  title: 'Write to attendees',
  description:
    'E-mails a message to the attendees of an event, or to those whom the filters name, one e-mail for each address. Call it with dry_run first, and show the person subject, text and number. Repeated with the same subject and message it reaches only those who have not had it. For changes of the event itself use notify of update_event.',
  method: 'POST',
  path: '/events/{event_id}/messages',
  errors: ['event_not_published'],
  scope: 'attendees:write',
  unlisted: true,
  confirmed: 'always',
  input: z.strictObject({
    event_id: id('event'),
    subject: line(150).describe('Subject of the e-mail.'),
    message: prose(5000).describe('Text in the language of the guests; Markdown: **bold**, *italic*, lists, links.'),
    ticket_type_id: id('ticket type').optional().describe('Only its holders.'),
    status: oneOf(attendeeStatuses).optional().describe('Only this status; otherwise all but cancelled.'),
    checked_in: flag.optional().describe('Only those who are, or are not.'),
    answer: line(200).optional().describe('Only with this answer: diet:vegan.'),
    unanswered: flag.optional().describe('true: only those with an unanswered required question.'),
    dry_run: dryRun,
  }),
  output: one(MessageSchema).extend({ effect }),
  hints: { destructive: false, idempotent: false, openWorld: true },
} satisfies Declared
