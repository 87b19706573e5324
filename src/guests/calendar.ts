// The calendar file (.ics) of a ticket, or of an event: iCalendar (RFC 5545), METHOD:PUBLISH, or METHOD:CANCEL once it is cancelled (RFC 5546). It must
// never contain the ticket code: calendars are shared with colleagues, and the code admits whoever shows it.

import ical, { ICalCalendarMethod, ICalEventStatus } from 'ical-generator'
import type { Facts } from './facts.ts'
import type { PendingAttendee, PendingToAttendee } from './pending.ts'
import { oneLine } from './plain-text.ts'
import { fill } from './words/index.ts'

/** Undefined while the event has no start time, which an entry needs. */
export function calendarOf(
  {
    event,
    ticket_type,
    attendee,
  }: Pick<PendingToAttendee, 'event'> & {
    /** Without a ticket the entry is that of an event. */
    ticket_type?: { name: string }
    attendee?: Pick<PendingAttendee, 'updated_at'>
  },
  facts: Facts,
  from: string,
  method: 'PUBLISH' | 'CANCEL' = 'PUBLISH',
): string | undefined {
  if (event.starts_at === null) return undefined
  const isCancelled = method === 'CANCEL'
  const changed = new Date(Math.max(...[event, attendee ?? event].map(({ updated_at }) => Date.parse(updated_at))))
  const calendar = ical({
    prodId: { company: 'Usher', product: 'Tickets' },
    method: ICalCalendarMethod[method],
  })
  calendar.createEvent({
    // One entry per event, however many of its tickets a mailbox gets.
    id: event.id,
    sequence: sequenceOf(changed, event.version),
    stamp: changed,
    lastModified: changed,
    // In UTC: correct in every calendar without a VTIMEZONE in the file. The calendar shows the reader's zone, the description that
    // of the event.
    start: new Date(event.starts_at),
    end: event.ends_at === null ? null : new Date(event.ends_at),
    summary: facts.event,
    description: descriptionOf(facts, ticket_type?.name, isCancelled),
    location: facts.venue.join(', ') || facts.onlineUrl || null,
    url: facts.onlineUrl ? unescapable(facts.onlineUrl) : null,
    organizer: { name: quotable(facts.organisation) || 'Organiser', email: unescapable(facts.replyTo ?? from) },
    status: isCancelled ? ICalEventStatus.CANCELLED : ICalEventStatus.CONFIRMED,
  })
  return `${calendar.toString()}\r\n`
}

const epoch = Date.parse('2020-01-01T00:00:00Z')

/**
 * A calendar keeps the entry whose sequence is highest (RFC 5546, 2.1.5), so whatever an address is sent later must have a higher one: a
 * ticket after the cancellation of another, too. Hence the time of the last change of event or ticket, in seconds, of which 32 bits hold
 * those until 2088; and the version, for two changes of the event within a second.
 */
const sequenceOf = (changed: Date, version: number): number =>
  Math.max(0, Math.floor((changed.getTime() - epoch) / 1000)) + version

function descriptionOf(
  { words, time, onlineUrl, organisation, reference }: Facts,
  ticketType: string | undefined,
  isCancelled: boolean,
): string {
  return [
    fill(words.by, { organisation }),
    ...(time ? [[...time.lines, time.zone].join(', ')] : []),
    ...(onlineUrl ? [fill(words.calendarOnline, { url: onlineUrl })] : []),
    ...(ticketType === undefined
      ? []
      : [
          fill(words.calendarTicket, { ticketType: oneLine(ticketType) }),
          fill(words.calendarOrder, { reference }),
          ...(isCancelled ? [] : [words.calendarCode]),
        ]),
  ].join('\n')
}

// A parameter such as CN cannot contain a double quote and has no escapes (RFC 5545, 3.2), but the generator would write one.
const quotable = (text: string) => text.replaceAll('"', "'").replaceAll('\\', '/')

// The generator escapes these in a URI as in text, which RFC 5545 (3.3.13) does not allow; percent-encoded they pass.
const unescapable = (uri: string) => uri.replace(/[\\;,]/g, encodeURIComponent)
