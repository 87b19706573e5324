// The e-mail that brings a ticket to its attendee. In comes what is owed and the address to send from, out goes an Email. It
// reads no database and no clock, so the same ticket gives the same e-mail; and nothing a person typed reaches a header with a
// line break, or the HTML unescaped.

import { Buffer } from 'node:buffer'
import { qrPictures } from '../operations/ticket-qr.ts'
import type { Attachment, Email } from './email.ts'
import { clip, oneLine } from './plain-text.ts'
import { ticketCalendar } from './ticket-calendar.ts'
import { type OwedTicketEmail, ticketFacts } from './ticket-facts.ts'
import { ticketHtml } from './ticket-html.ts'
import { ticketText } from './ticket-text.ts'

export type { OwedTicketEmail } from './ticket-facts.ts'

// What a mailbox list shows of them anyway, and well below what a header line may hold.
const longestName = 100
const longestSubject = 150

/** `from` is the address that the transport may send from (MAIL_FROM); the name beside it is the organiser's. */
export async function ticketEmail(owed: OwedTicketEmail, from: string): Promise<Email> {
  const { id, attempt, event, attendee } = owed
  const facts = ticketFacts(owed)
  const domain = from.slice(from.lastIndexOf('@') + 1)
  const cid = `qr.${id}@${domain}`
  const slug = event.slug.toLowerCase().replace(/[^a-z0-9-]/g, '') || 'event'
  const picture = await qrPictures.png.draw({ ticket_code: attendee.ticket_code })
  const calendar = ticketCalendar(owed, facts, from)

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
    from: { name: clip(facts.organisation, longestName), address: from },
    to: { name: clip(facts.attendee, longestName), address: oneLine(attendee.email) },
    ...(facts.replyTo !== undefined && {
      replyTo: { name: clip(facts.organisation, longestName), address: facts.replyTo },
    }),
    subject: clip(`Your ticket: ${facts.event}`, longestSubject),
    html: ticketHtml(facts, cid),
    text: ticketText(facts),
    attachments,
    messageId: `<${id}@${domain}>`,
  }
}
