// The contents of a ticket, shared by the HTML, the text and the calendar, so that all of them say the same. Every value is ready to
// be shown, but not escaped for HTML.

import type * as z from 'zod'
import type { EventSchema } from '../operations/events.ts'
import { type EventTime, eventTime } from './event-time.ts'
import { linesOf, oneLine } from './plain-text.ts'

/** One ticket e-mail, as `api.claim_ticket_emails` returns it. `claim` is for settling it. */
export type PendingTicketEmail = {
  id: string
  claim: string
  attempt: number
  organisation: { name: string; reply_to: string | null }
  event: z.infer<typeof EventSchema>
  ticket_type: { name: string }
  order: { reference: string }
  attendee: { id: string; name: string; email: string; company: string | null; ticket_code: string }
}

export type TicketFacts = {
  organisation: string
  /** The organiser's address, if it is a valid one. */
  replyTo: string | undefined
  event: string
  time: EventTime | undefined
  /** Name and address of the venue, line by line; empty when there is none. */
  venue: string[]
  onlineUrl: string | undefined
  attendee: string
  company: string | undefined
  ticketType: string
  reference: string
  /** In groups of four, as it is read aloud. A check-in accepts it with or without the spaces. */
  code: string
}

export function ticketFacts({ organisation, event, ticket_type, order, attendee }: PendingTicketEmail): TicketFacts {
  return {
    organisation: oneLine(organisation.name),
    replyTo: replyAddress(organisation.reply_to),
    event: oneLine(event.name),
    time: eventTime(event),
    venue: venueLines(event.venue),
    onlineUrl: webAddress(event.online_url),
    attendee: oneLine(attendee.name),
    company: attendee.company === null ? undefined : oneLine(attendee.company) || undefined,
    ticketType: oneLine(ticket_type.name),
    reference: oneLine(order.reference),
    code: oneLine(attendee.ticket_code).replace(/(.{4})(?=.)/gu, '$1 '),
  }
}

/** The closing sentences: what to do with the ticket. */
export function ticketAdvice({ time, venue, onlineUrl, replyTo, organisation }: TicketFacts): string[] {
  const isOnlineOnly = venue.length === 0 && onlineUrl !== undefined
  return [
    isOnlineOnly
      ? 'Keep this ticket at hand: you may be asked for its code.'
      : 'Show the QR code at the door, on your phone or on paper. It lets one person in, once: please share it with nobody.',
    time
      ? 'The QR code is attached as a picture, and the date as a calendar file.'
      : 'The QR code is attached as a picture.',
    replyTo ? `Questions? Reply to this e-mail to reach ${organisation}.` : `Questions? Please ask ${organisation}.`,
  ]
}

function venueLines(venue: PendingTicketEmail['event']['venue']): string[] {
  if (venue === null) return []
  const city = [venue.postcode, venue.city].filter(Boolean).join(' ')
  const address = linesOf(venue.address ?? '')
  return [venue.name, ...address, city, countryName(venue.country)].map((text) => oneLine(text ?? '')).filter(Boolean)
}

const countries = new Intl.DisplayNames('en', { type: 'region', fallback: 'code' })

function countryName(code: string | null): string | null {
  try {
    return code && (countries.of(code) ?? code)
  } catch {
    return code
  }
}

// The addresses that every mail service accepts, as in private.is_email_address. With any other, all tickets of the organisation would
// fail.
const address =
  /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@(?:[A-Za-z0-9][A-Za-z0-9-]*\.)+[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]$/

const replyAddress = (text: string | null): string | undefined =>
  text !== null && text.length <= 254 && address.test(text) ? text : undefined

// Only http and https become a link: another scheme, such as javascript:, could start a program.
function webAddress(text: string | null): string | undefined {
  const url = text === null ? null : URL.parse(text)
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url.href : undefined
}
