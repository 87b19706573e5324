// The calendar file of a ticket: iCalendar (RFC 5545), METHOD:PUBLISH (RFC 5546). In comes what is owed with its facts, out goes
// the text of an .ics. It never holds the ticket code: calendars are shared with colleagues, and the code lets its holder in.

import ical, { ICalCalendarMethod, ICalEventStatus } from 'ical-generator'
import type { OwedTicketEmail, TicketFacts } from './ticket-facts.ts'

/** Undefined while nobody has said when the event starts: an entry needs a start. */
export function ticketCalendar(owed: OwedTicketEmail, facts: TicketFacts, from: string): string | undefined {
  const { event } = owed
  if (event.starts_at === null) return undefined
  const updated = new Date(event.updated_at)
  const calendar = ical({ prodId: { company: 'Usher', product: 'Tickets' }, method: ICalCalendarMethod.PUBLISH })
  calendar.createEvent({
    // One entry for the event, however many tickets for it arrive in a mailbox; edits of the event supersede it by their number.
    id: event.id,
    sequence: event.version,
    stamp: updated,
    lastModified: updated,
    // Instants in UTC: right in every calendar without a copy of the zone's rules in the file. The reader's calendar shows its
    // own zone, the description the event's.
    start: new Date(event.starts_at),
    end: event.ends_at === null ? null : new Date(event.ends_at),
    summary: facts.event,
    description: descriptionOf(facts),
    location: facts.venue.join(', ') || facts.onlineUrl || null,
    url: facts.onlineUrl ? unescapable(facts.onlineUrl) : null,
    organizer: { name: quotable(facts.organisation) || 'Organiser', email: unescapable(facts.replyTo ?? from) },
    status: ICalEventStatus.CONFIRMED,
  })
  return `${calendar.toString()}\r\n`
}

function descriptionOf({ time, onlineUrl, organisation, ticketType, reference }: TicketFacts): string {
  return [
    `By ${organisation}`,
    ...(time ? [[...time.lines, time.zone].join(', ')] : []),
    ...(onlineUrl ? [`Online: ${onlineUrl}`] : []),
    `Ticket: ${ticketType}`,
    `Order: ${reference}`,
    'Your QR code is in the ticket e-mail.',
  ].join('\n')
}

// A parameter such as CN cannot hold a double quote, and has no escapes (RFC 5545, 3.2); the generator would write one.
const quotable = (text: string) => text.replaceAll('"', "'").replaceAll('\\', '/')

// The generator escapes these in a URI as if it were text, which RFC 5545 (3.3.13) does not; percent-encoded they pass.
const unescapable = (uri: string) => uri.replace(/[\\;,]/g, encodeURIComponent)
