// Composes an e-mail of any kind. It reads neither database nor clock, so the same pending e-mail gives the same e-mail. Text that a
// person typed must never reach a header with a line break, or the HTML unescaped.

import { Buffer } from 'node:buffer'
import { calendarOf } from '../../guests/calendar.ts'
import { type Facts, factsOf } from '../../guests/facts.ts'
import { calendarMethodOf, isToAttendee, isToBuyer, type PendingEmail, ticketsOf } from '../../guests/pending.ts'
import { clip, oneLine } from '../../guests/plain-text.ts'
import { qrPictures } from '../../operations/ticket-qr.ts'
import type { Attachment, Email } from '../email.ts'
import { contentOf, typesOf } from './content.ts'
import { emailHtml } from './render-html.ts'
import { emailText } from './render-text.ts'

// As much as a mailbox list shows, and well below the limit of a header line.
const maxNameLength = 100
const maxSubjectLength = 150

/** @param from the sender address (MAIL_FROM); the sender name is the organiser's. */
export async function composeEmail(pending: PendingEmail, from: string): Promise<Email> {
  const { id, attempt } = pending
  const recipient = recipientOf(pending)
  const facts = factsOf(pending)
  const content = contentOf(pending, facts)
  const domain = from.slice(from.lastIndexOf('@') + 1)
  const cidOf = (number: number) => `qr${number || ''}.${id}@${domain}`
  return {
    id,
    attempt,
    from: { name: clip(facts.organisation, maxNameLength), address: from },
    to: { name: clip(oneLine(recipient.name), maxNameLength), address: oneLine(recipient.email) },
    ...(facts.replyTo !== undefined && {
      replyTo: { name: clip(facts.organisation, maxNameLength), address: facts.replyTo },
    }),
    subject: clip(`${facts.test === undefined ? '' : `[${facts.test}] `}${content.subject}`, maxSubjectLength),
    html: emailHtml(content, facts, pending.organisation.logo_url, cidOf),
    text: emailText(content, facts),
    ...(content.optOut && { optOutUrl: content.optOut.url }),
    attachments: [...(await picturesOf(pending, cidOf)), ...calendarFile(pending, facts, from)],
    messageId: `<${id}@${domain}>`,
  }
}

/** Whom an e-mail is for: an attendee, the contact of an order, or somebody on a waiting list. */
export function recipientOf(pending: PendingEmail): { id: string; name: string; email: string } {
  if (isToAttendee(pending)) return pending.attendee
  return isToBuyer(pending) ? pending.order : pending.waiting_list_entry
}

/** Of each ticket the one that is shown, and one to save. */
async function picturesOf(pending: PendingEmail, cidOf: (number: number) => string): Promise<Attachment[]> {
  if (pending.kind !== 'ticket') return []
  const pictures = ticketsOf(pending).map(async ({ ticket_code }, i) => {
    const content = await qrPictures.png.draw({ ticket_code })
    const number = i === 0 ? '' : `-${i + 1}`
    return [
      { filename: `qr-code${number}.png`, contentType: 'image/png', content, cid: cidOf(i) },
      { filename: `${fileName(pending)}-ticket${number}.png`, contentType: 'image/png', content },
    ]
  })
  return (await Promise.all(pictures)).flat()
}

function calendarFile(pending: PendingEmail, facts: Facts, from: string): Attachment[] {
  if (!isToAttendee(pending)) return []
  const method = calendarMethodOf(pending)
  if (method === undefined) return []
  const ticket_type = { name: typesOf(pending).join(', ') }
  const calendar = calendarOf({ ...pending, ticket_type }, facts, from, method)
  if (calendar === undefined) return []
  return [
    {
      filename: `${fileName(pending)}.ics`,
      contentType: `text/calendar; charset=utf-8; method=${method}`,
      content: Buffer.from(calendar),
    },
  ]
}

const fileName = ({ event }: PendingEmail) => event.slug.toLowerCase().replace(/[^a-z0-9-]/g, '') || 'event'
