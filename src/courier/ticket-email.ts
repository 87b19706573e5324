// Composes the e-mail that brings a ticket to its attendee. It reads neither database nor clock, so the same ticket gives the same
// e-mail. Text that a person typed must never reach a header with a line break, or the HTML unescaped.

import { Buffer } from 'node:buffer'
import { qrPictures } from '../operations/ticket-qr.ts'
import type { Attachment, Email } from './email.ts'
import { clip, oneLine } from './plain-text.ts'
import { ticketCalendar } from './ticket-calendar.ts'
import { type PendingTicketEmail, ticketFacts } from './ticket-facts.ts'
import { ticketHtml } from './ticket-html.ts'
import { ticketText } from './ticket-text.ts'

export type { PendingTicketEmail } from './ticket-facts.ts'

// As much as a mailbox list shows, and well below the limit of a header line.
const maxNameLength = 100
const maxSubjectLength = 150

/** @param from the sender address (MAIL_FROM); the sender name is the organiser's. */
export async function ticketEmail(pending: PendingTicketEmail, from: string): Promise<Email> {
  const { id, attempt, event, attendee } = pending
  const facts = ticketFacts(pending)
  const domain = from.slice(from.lastIndexOf('@') + 1)
  const cid = `qr.${id}@${domain}`
  const slug = event.slug.toLowerCase().replace(/[^a-z0-9-]/g, '') || 'event'
  const picture = await qrPictures.png.draw({ ticket_code: attendee.ticket_code })
  const calendar = ticketCalendar(pending, facts, from)

  const attachments: Attachment[] = [
    { filename: 'qr-code.png', contentType: 'image/png', content: picture, cid },
    { filename: `${slug}-ticket.png`, contentType: 'image/png', content: picture },
  ]
  if (calendar !== undefined) {
    attachments.push({
      filename: `${slug}.ics`,
      contentType: 'text/calendar; charset=utf-8; method=PUBLISH',
      content: Buffer.from(calendar),
    })
  }
  return {
    id,
    attempt,
    from: { name: clip(facts.organisation, maxNameLength), address: from },
    to: { name: clip(facts.attendee, maxNameLength), address: oneLine(attendee.email) },
    ...(facts.replyTo !== undefined && {
      replyTo: { name: clip(facts.organisation, maxNameLength), address: facts.replyTo },
    }),
    subject: clip(`Your ticket: ${facts.event}`, maxSubjectLength),
    html: ticketHtml(facts, cid),
    text: ticketText(facts),
    attachments,
    messageId: `<${id}@${domain}>`,
  }
}
