// What a ticket says, once, for the HTML, the text and the calendar alike: whatever one of them tells, the others tell, too. In
// comes what is owed, out go lines of text ready to be shown, but not yet escaped for HTML.

import type * as z from 'zod'
import type { EventSchema } from '../operations/events.ts'
import { type EventTime, eventTime } from './event-time.ts'
import { linesOf, oneLine } from './plain-text.ts'

/** A ticket e-mail that is owed, as the database hands it out; `claim` and `attempt` are for settling it. */
export type OwedTicketEmail = {
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
  /** Where answers reach the organiser, if that is an address. */
  replyTo: string | undefined
  event: string
  time: EventTime | undefined
  /** Name and address of the venue, a line each; empty when there is none. */
  venue: string[]
  onlineUrl: string | undefined
  attendee: string
  company: string | undefined
  ticketType: string
  reference: string
  /** In groups of four, as it is read aloud; the door takes it with or without the blanks. */
  code: string
}

export function ticketFacts({ organisation, event, ticket_type, order, attendee }: OwedTicketEmail): TicketFacts {
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

/** What to do with the ticket: the closing sentences. */
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

function venueLines(venue: OwedTicketEmail['event']['venue']): string[] {
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

// What every mail service takes, as private.is_email_address has it: with any other, all tickets of the organisation would fail.
const address =
  /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@(?:[A-Za-z0-9][A-Za-z0-9-]*\.)+[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]$/

const replyAddress = (text: string | null): string | undefined =>
  text !== null && text.length <= 254 && address.test(text) ? text : undefined

// Only http and https become a link: anything else would be a program that the reader starts.
function webAddress(text: string | null): string | undefined {
  const url = text === null ? null : URL.parse(text)
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url.href : undefined
}
