// What e-mails, calendar files and ticket pages show of an event and its organiser, worked out once, so that all of them say the same.
// Every value is ready to be shown, but not escaped for HTML.

import { capitalised, type EventTime, eventTime } from './event-time.ts'
import { type Palette, paletteOf } from './look.ts'
import { currencyStyle, decimalsOf } from './minor-units.ts'
import { type Note, noteOf } from './notes.ts'
import type { Announced, PendingEmail } from './pending.ts'
import { linesOf, oneLine } from './plain-text.ts'
import { fill, type Words, wordsOf } from './words/index.ts'

/** What facts are made from: every e-mail and ticket page has it. */
export type Subject = {
  organisation: Pick<PendingEmail['organisation'], 'name' | 'reply_to' | 'accent_colour' | 'is_test'>
  event: PendingEmail['event']
  order?: { reference: string | null }
}

export type Facts = {
  words: Words
  organisation: string
  /** The organiser's address, valid as the database has it. */
  replyTo: string | undefined
  event: string
  time: EventTime | undefined
  /** Name and address of the venue, line by line; empty when there is none. */
  venue: string[]
  onlineUrl: string | undefined
  /** Of the order; empty where there is none. */
  reference: string
  /** What the organiser says of the event. */
  note: Note | undefined
  palette: Palette
  /** What all of a test organisation says, or undefined. */
  test: string | undefined
}

export function factsOf({ organisation, event, order }: Subject): Facts {
  const words = wordsOf(event.locale)
  return {
    words,
    organisation: oneLine(organisation.name),
    replyTo: organisation.reply_to ?? undefined,
    ...announcedFacts(event, words),
    reference: oneLine(order?.reference ?? ''),
    note: noteOf(event, event.locale),
    palette: paletteOf(organisation.accent_colour),
    test: organisation.is_test ? words.test : undefined,
  }
}

/** Of an event as it is, or as it was before it changed. */
export function announcedFacts(event: Announced, words: Words): Pick<Facts, 'event' | 'time' | 'venue' | 'onlineUrl'> {
  return {
    event: oneLine(event.name),
    time: eventTime(event, words),
    venue: venueLines(event.venue, words),
    onlineUrl: webAddress(event.online_url),
  }
}

/** The lines under "When". */
export const whenLines = (time: EventTime | undefined, words: Words): string[] =>
  time ? [...time.lines, time.zone] : [words.toBeAnnounced]

type Place = Pick<Facts, 'venue' | 'onlineUrl'>

/** The lines under "Where", which the address of an online event follows. */
export const whereLines = ({ venue, onlineUrl }: Place, words: Words): string[] =>
  venue.length > 0 ? venue : [onlineUrl ? words.online : words.toBeAnnounced]

/** There is no door at which a code is shown. */
export const isOnlineOnly = ({ venue, onlineUrl }: Place): boolean => venue.length === 0 && onlineUrl !== undefined

/** In groups of four after TEST-, as it is read aloud. A check-in accepts it with or without the spaces. */
export const spacedCode = (code: string): string => oneLine(code).replace(/(TEST-|.{4})(?=.)/gu, '$1 ')

/** An amount in minor units, such as €49.00; a discount with a minus sign, which is read aloud, in place of the hyphen of Intl. */
export function amountOf(amount: number, currency: string, { locale }: Words): string {
  const text = new Intl.NumberFormat(locale, currencyStyle(currency)).format(amount / 10 ** decimalsOf(currency))
  return text.replace('-', '\u2212')
}

/** Says what can be done with a ticket, such as "Change or pass on your ticket". */
export function actsLabel(acts: string[], { locale, guest }: Words): string {
  const list = new Intl.ListFormat(locale, { type: 'disjunction' }).format(acts)
  return capitalised(fill(guest.yourTicket, { acts: list }))
}

function venueLines(venue: Announced['venue'], { locale }: Words): string[] {
  if (venue === null) return []
  const city = [venue.postcode, venue.city].filter(Boolean).join(' ')
  const address = linesOf(venue.address ?? '')
  return [venue.name, ...address, city, countryName(venue.country, locale)]
    .map((text) => oneLine(text ?? ''))
    .filter(Boolean)
}

export function countryName(code: string | null, locale: string): string | null {
  try {
    return code && (new Intl.DisplayNames(locale, { type: 'region', fallback: 'code' }).of(code) ?? code)
  } catch {
    return code
  }
}

// Only http and https become a link: another scheme, such as javascript:, could start a program.
function webAddress(text: string | null): string | undefined {
  const url = text === null ? null : URL.parse(text)
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url.href : undefined
}
