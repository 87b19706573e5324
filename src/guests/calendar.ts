// The calendar file (.ics) of a ticket: iCalendar (RFC 5545), METHOD:PUBLISH, or METHOD:CANCEL once it is cancelled (RFC 5546). It must
// never contain the ticket code: calendars are shared with colleagues, and the code admits whoever shows it.

import ical, { ICalCalendarMethod, ICalEventStatus } from 'ical-generator'
import type { Facts } from './facts.ts'
import type { PendingToAttendee } from './pending.ts'
import { oneLine } from './plain-text.ts'
import { fill } from './words/index.ts'

/** Undefined while the event has no start time, which an entry needs. */
export function calendarOf(
  { event, ticket_type }: Pick<PendingToAttendee, 'event' | 'ticket_type'>,
  facts: Facts,
  from: string,
  method: 'PUBLISH' | 'CANCEL' = 'PUBLISH',
): string | undefined {
  if (event.starts_at === null) return undefined
  const isCancelled = method === 'CANCEL'
  const updated = new Date(event.updated_at)
  const calendar = ical({
    prodId: { company: 'Usher', product: 'Tickets' },
    method: ICalCalendarMethod[method],
  })
  calendar.createEvent({
    // One entry per event, however many of its tickets a mailbox gets. A higher sequence replaces the entry when the event changes.
    id: event.id,
    sequence: isCancelled ? event.version + 1 : event.version,
    stamp: updated,
    lastModified: updated,
    // In UTC: correct in every calendar without a VTIMEZONE in the file. The calendar shows the reader's zone, the description that
    // of the event.
    start: new Date(event.starts_at),
    end: event.ends_at === null ? null : new Date(event.ends_at),
    summary: facts.event,
    description: descriptionOf(facts, ticket_type.name, isCancelled),
    location: facts.venue.join(', ') || facts.onlineUrl || null,
    url: facts.onlineUrl ? unescapable(facts.onlineUrl) : null,
    organizer: { name: quotable(facts.organisation) || 'Organiser', email: unescapable(facts.replyTo ?? from) },
    status: isCancelled ? ICalEventStatus.CANCELLED : ICalEventStatus.CONFIRMED,
  })
  return `${calendar.toString()}\r\n`
}

function descriptionOf(
  { words, time, onlineUrl, organisation, reference }: Facts,
  ticketType: string,
  isCancelled: boolean,
): string {
  return [
    fill(words.calendarOrganiser, { organisation }),
    ...(time ? [[...time.lines, time.zone].join(', ')] : []),
    ...(onlineUrl ? [fill(words.calendarOnline, { url: onlineUrl })] : []),
    fill(words.calendarTicket, { ticketType: oneLine(ticketType) }),
    fill(words.calendarOrder, { reference }),
    ...(isCancelled ? [] : [words.calendarCode]),
  ].join('\n')
}

// A parameter such as CN cannot contain a double quote and has no escapes (RFC 5545, 3.2), but the generator would write one.
const quotable = (text: string) => text.replaceAll('"', "'").replaceAll('\\', '/')

// The generator escapes these in a URI as in text, which RFC 5545 (3.3.13) does not allow; percent-encoded they pass.
const unescapable = (uri: string) => uri.replace(/[\\;,]/g, encodeURIComponent)
