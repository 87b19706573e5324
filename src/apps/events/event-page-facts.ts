// What the registration page of an event shows, from the same facts as e-mails, and what of it is chosen.

import type * as z from 'zod'
import { calendarOf } from '../../guests/calendar.ts'
import { factsOf, type Subject } from '../../guests/facts.ts'
import { decimalsOf } from '../../guests/minor-units.ts'
import type { PendingEmail } from '../../guests/pending.ts'
import { linesOf, oneLine } from '../../guests/plain-text.ts'
import { type Locale, locales } from '../../operations/locales.ts'
import type { TicketTypeSchema } from '../../operations/ticket-types.ts'
import type { Question } from '../fields.ts'
import type { Form } from '../secret-page.ts'

/** `price_with_code`: what a percentage leaves of it. */
type TicketType = z.infer<typeof TicketTypeSchema> & { takes_code: boolean; price_with_code: number }

/** As `api.get_event_page` returns it. */
export type EventPage = {
  organisation: Subject['organisation'] & Pick<PendingEmail['organisation'], 'logo_url'> & { embed_origins: string[] }
  event: Subject['event']
  /** With which the page calls. */
  key: { api_key_id: string; family_id: string; organisation_id: string }
  ticket_types: TicketType[]
  /** Those that are asked while registering. */
  questions: (Question & { ticket_type_ids: string[] })[]
  /** The code that was given, where it can be used. */
  code: string | null
  /** Of the chosen tickets, after the discount. */
  total: number
}

/** What the address of a page chooses. */
export type Choice = { lang: Locale | undefined; code: string; tickets: Record<string, number> }

// As api.register_attendee.
const mostGuests = 50

/** From the query: `lang`, `code`, and `t.ID` for each ticket type, as far as an order has room. Whatever else it has is nothing. */
export function choiceOf(query: Form): Choice {
  const text = (name: string) => [query[name]].flat()[0]?.trim() ?? ''
  const tickets: Choice['tickets'] = {}
  let left = mostGuests
  for (const name of Object.keys(query).filter((name) => /^t\.[0-9a-f-]{36}$/.test(name))) {
    const count = /^\d{1,3}$/.test(text(name)) ? Math.min(Number(text(name)), left) : 0
    if (count > 0) tickets[name.slice(2)] = count
    left -= count
  }
  const lang = locales.find((locale) => locale === text('lang'))
  return { lang, code: text('code').slice(0, 50), tickets }
}

/**
 * Each ticket that is chosen: its type, and what the fields of its guest begin with. By type and number, so that no guest gets the ticket of
 * another when a type is sold out meanwhile.
 */
export const ticketsOf = ({ tickets }: Choice) =>
  Object.entries(tickets).flatMap(([id, count]) =>
    Array.from({ length: count }, (_, i) => ({ id, prefix: `g.${id}.${i}.` })),
  )

/** The address of a choice, relative to the page. */
export function queryOf({ lang, code, tickets }: Choice, more: Record<string, string> = {}): string {
  const query = new URLSearchParams({
    ...(lang && { lang }),
    ...(code !== '' && { code }),
    ...Object.fromEntries(Object.entries(tickets).map(([id, count]) => [`t.${id}`, `${count}`])),
    ...more,
  })
  return query.size === 0 ? '' : `?${query}`
}

const isOnSale = ({ sales_status }: TicketType) => sales_status === 'on_sale'

/** The choice, with the only ticket type where there is nothing to choose. */
export function withOnlyType(choice: Choice, { ticket_types }: EventPage): Choice {
  const [only, ...others] = ticket_types.filter(isOnSale)
  if (only === undefined || others.length > 0 || Object.keys(choice.tickets).length > 0) return choice
  return { ...choice, tickets: { [only.id]: only.min_per_order } }
}

/** What holders of a ticket type are asked. */
export const questionsOf = ({ questions }: EventPage, typeId: string) =>
  questions.filter(({ ticket_type_ids }) => ticket_type_ids.length === 0 || ticket_type_ids.includes(typeId))

export type EventFacts = ReturnType<typeof eventFacts>

/** @param locale in which it is shown. */
export function eventFacts(page: EventPage, choice: Choice, locale: Locale) {
  const { event, ticket_types } = page
  const facts = factsOf({ ...page, event: { ...event, locale } })
  const chosen = ticketsOf(choice).flatMap(({ id, prefix }, index) => {
    const type = ticket_types.find((type) => type.id === id)
    return type === undefined ? [] : { type, prefix, index, questions: questionsOf(page, id) }
  })
  return {
    ...facts,
    page,
    choice,
    logo: page.organisation.logo_url,
    description: linesOf(event.description ?? ''),
    state: stateOf(page),
    types: ticket_types.map((type) => ({
      ...type,
      name: oneLine(type.name),
      description: oneLine(type.description ?? ''),
    })),
    guests: chosen.filter(({ type }) => isOnSale(type)),
    // Of a form that is sent again what is sold out by now, too: it says the same.
    isPaid: chosen.some(({ type }) => type.price > 0),
    isBadCode: choice.code !== '' && page.code === null,
    /** Whether one of them uses the code. */
    usesCode: chosen.some(({ type }) => type.takes_code),
  }
}

function stateOf({ event }: EventPage) {
  if (event.status === 'cancelled' || event.cancelling_since !== null) return 'cancelled'
  if (event.phase === 'ended') return 'ended'
  return event.status === 'published' ? 'open' : 'closed'
}

/** The calendar file of the event. Undefined while it has no start, and when it is cancelled. */
export const eventCalendar = (page: EventPage, mailFrom: string): string | undefined =>
  stateOf(page) === 'cancelled' ? undefined : calendarOf(page, { ...factsOf(page), onlineUrl: undefined }, mailFrom)

/** For search engines: https://schema.org/Event. */
export function structuredData({ page, event, organisation, venue, onlineUrl, types, logo }: EventFacts, url: string) {
  const { starts_at, ends_at, description, venue: at, currency } = page.event
  const place = venue.length > 0 && {
    '@type': 'Place',
    name: at?.name ?? venue[0],
    address: {
      '@type': 'PostalAddress',
      streetAddress: at?.address ?? undefined,
      addressLocality: at?.city ?? undefined,
      postalCode: at?.postcode ?? undefined,
      addressCountry: at?.country ?? undefined,
    },
  }
  const online = onlineUrl !== undefined && { '@type': 'VirtualLocation', url }
  const mode = place && online ? 'Mixed' : online ? 'Online' : 'Offline'
  const stock: Record<string, string> = { on_sale: 'InStock', sold_out: 'SoldOut', upcoming: 'PreOrder' }
  return {
    '@context': 'https://schema.org',
    '@type': 'Event',
    name: event,
    description: description ?? undefined,
    startDate: starts_at,
    endDate: ends_at,
    eventStatus: `https://schema.org/Event${page.event.status === 'cancelled' ? 'Cancelled' : 'Scheduled'}`,
    eventAttendanceMode: `https://schema.org/${mode}EventAttendanceMode`,
    location: [place, online].filter(Boolean),
    image: logo ?? undefined,
    organizer: { '@type': 'Organization', name: organisation },
    url,
    offers: types
      .filter(({ visibility }) => visibility === 'public')
      .map(({ name, price, sales_status, sales_start_at }) => ({
        '@type': 'Offer',
        name,
        price: price / 10 ** decimalsOf(currency),
        priceCurrency: currency,
        availability: `https://schema.org/${stock[sales_status] ?? 'Discontinued'}`,
        validFrom: sales_start_at ?? undefined,
        url,
      })),
  }
}
