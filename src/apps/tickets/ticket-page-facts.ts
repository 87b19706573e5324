// What the ticket page shows, from the same facts as e-mails and calendar files.

import type * as z from 'zod'
import { calendarOf } from '../../guests/calendar.ts'
import { momentOf } from '../../guests/event-time.ts'
import { type Facts, factsOf, type Subject, spacedCode } from '../../guests/facts.ts'
import type { PendingTicket } from '../../guests/pending.ts'
import { oneLine } from '../../guests/plain-text.ts'
import type { AttendeeSchema } from '../../operations/attendees.ts'

/** As `api.get_ticket_page` returns it. `ticket_code` is null while it does not admit. */
export type TicketPage = Pick<PendingTicket, 'event' | 'ticket_type' | 'order'> & {
  organisation: Subject['organisation'] & Pick<PendingTicket['organisation'], 'logo_url'>
  attendee: Pick<
    z.infer<typeof AttendeeSchema>,
    'id' | 'name' | 'company' | 'status' | 'ticket_code' | 'checked_in_at' | 'updated_at'
  > & {
    /** Whether changes of the event are e-mailed to the address. null: none will be. */
    emails: boolean | null
  }
}

export type PageFacts = ReturnType<typeof pageFacts>

export function pageFacts(page: TicketPage) {
  const { event, attendee } = page
  const { ticket_code, checked_in_at } = attendee
  const facts = factsOf(page)
  const { venue, words } = facts
  const ended = event.phase === 'ended'
  return {
    ...facts,
    attendee: oneLine(attendee.name),
    company: oneLine(attendee.company ?? '') || undefined,
    ticketType: oneLine(page.ticket_type.name),
    /** Undefined while it does not admit. */
    code: ticket_code === null ? undefined : spacedCode(ticket_code),
    state: stateOf(page),
    ended,
    /** Whether changes are e-mailed; undefined where none will be. */
    emails: ended ? undefined : (attendee.emails ?? undefined),
    /** When, in the zone of the event. */
    checkedIn: checked_in_at === null ? undefined : momentOf(checked_in_at, event.timezone, words),
    mapUrl: venue.length === 0 ? undefined : mapUrl(venue.join(', ')),
    /** Undefined where nothing is to be put into a calendar. */
    googleCalendarUrl: googleCalendarUrl(page, facts),
  }
}

/** The calendar file. Undefined while the event has no start time, and for a ticket that is not valid. */
export function pageCalendar(page: TicketPage, mailFrom: string): string | undefined {
  if (isCancelled(page)) return undefined
  return calendarOf(page, factsOf(page), mailFrom)
}

const isCancelled = ({ event, attendee }: TicketPage): boolean =>
  event.status === 'cancelled' || attendee.status === 'cancelled'

function stateOf({ event, attendee }: TicketPage) {
  if (event.status === 'cancelled') return 'event_cancelled'
  if (attendee.status !== 'active') return attendee.status
  return attendee.checked_in_at === null ? 'valid' : 'checked_in'
}

// Documented, without a key: https://developers.google.com/maps/documentation/urls/get-started
const mapUrl = (query: string): string =>
  `https://www.google.com/maps/search/?${new URLSearchParams({ api: '1', query })}`

/** Must hold neither the ticket code nor the token: calendars are shared. */
function googleCalendarUrl(page: TicketPage, facts: Facts): string | undefined {
  const { starts_at, ends_at, timezone } = page.event
  if (starts_at === null || isCancelled(page) || page.event.phase === 'ended') return undefined
  const moment = (time: string) => new Date(time).toISOString().replace(/[-:]|\.\d+/g, '')
  const query = new URLSearchParams({
    action: 'TEMPLATE',
    text: facts.event,
    dates: `${moment(starts_at)}/${moment(ends_at ?? starts_at)}`,
    ctz: timezone,
    location: facts.venue.join(', ') || facts.onlineUrl || '',
    details: [facts.organisation, facts.onlineUrl].filter(Boolean).join('\n'),
  })
  return `https://calendar.google.com/calendar/render?${query}`
}
