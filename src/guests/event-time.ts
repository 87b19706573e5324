// Writes the time of an event in the language of its guests, in its own time zone. The zone is always named: a bare "19:00" means
// something else to a reader abroad.

import { LRUCache } from 'lru-cache'
import type * as z from 'zod'
import type { EventSchema } from '../operations/events.ts'
import { fill, type Words } from './words/index.ts'

export type EventTime = {
  /** `Saturday 1 May 2027` and `09:00 – 17:30`; over several days `Sat 1 May 2027, 20:00` and `to Sun 2 May 2027, 04:00`. */
  lines: string[]
  /** `Europe/Berlin (UTC+2)`. */
  zone: string
}

type Times = Pick<z.infer<typeof EventSchema>, 'starts_at' | 'ends_at' | 'timezone'>

/** Undefined while the event has no start time. */
export function eventTime({ starts_at, ends_at, timezone }: Times, words: Words): EventTime | undefined {
  if (starts_at === null) return undefined
  const zone = knownZone(timezone)
  const start = localTime(starts_at, zone, words)
  const said = ({ clock }: typeof start) => fill(words.time, { time: clock })
  if (ends_at === null)
    return { lines: [capitalised(start.date), said(start)], zone: zoneName(zone, start.offset, start.offset, words) }
  const end = localTime(ends_at, zone, words)
  return {
    lines:
      start.date === end.date
        ? [capitalised(start.date), fill(words.times, { start: start.clock, end: end.clock })]
        : [
            capitalised(`${start.shortDate}, ${said(start)}`),
            fill(words.until, { moment: `${end.shortDate}, ${said(end)}` }),
          ],
    zone: zoneName(zone, start.offset, end.offset, words),
  }
}

/** A weekday has a small letter in many languages, but not where a line begins with it. */
export const capitalised = (line: string): string => line.charAt(0).toUpperCase() + line.slice(1)

/** A day, such as 7 May 2027, in a zone. */
export const dayOf = (instant: string, timezone: string, { locale }: Words): string =>
  dateOf(new Date(instant), locale, { dateStyle: 'long', timeZone: knownZone(timezone) })

/** A day and time, such as 7 May 2027 at 23:59, in a zone. */
export const momentOf = (instant: string, timezone: string, words: Words): string => {
  const text = fill(words.moment, {
    date: dayOf(instant, timezone, words),
    time: fill(words.time, { time: localTime(instant, knownZone(timezone), words).clock }),
  })
  // In Spanish one o'clock is the only hour in the singular.
  return words.locale.startsWith('es') ? text.replace('las\u00a01:', 'la\u00a01:') : text
}

// An event of one zone and language needs eight.
const formats = new LRUCache<string, Intl.DateTimeFormat>({ max: 200 })

/** Kept: making one takes longer than all the rest of composing an e-mail. */
function formatOf(locale: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = JSON.stringify([locale, options])
  const format = formats.get(key) ?? new Intl.DateTimeFormat(locale, options)
  formats.set(key, format)
  return format
}

// Postgres knows zone names that Node does not, such as posix/Europe/Berlin. UTC is less convenient, but correct and named.
function knownZone(timeZone: string): string {
  try {
    formatOf('en-GB', { timeZone })
    return timeZone
  } catch {
    return 'UTC'
  }
}

function localTime(instant: string, timeZone: string, { locale, clock }: Words) {
  const moment = new Date(instant)
  const date = (names: 'long' | 'short') =>
    dateOf(moment, locale, { timeZone, weekday: names, day: 'numeric', month: names, year: 'numeric' })
  // The digits of hours, and offsets, are written alike in all languages.
  const digits = formatOf('en-GB', {
    timeZone,
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'shortOffset',
  })
  const parts = Object.fromEntries(digits.formatToParts(moment).map(({ type, value }) => [type, value]))
  return {
    date: date('long'),
    shortDate: date('short'),
    clock: fill(clock, { hour: `${parts.hour}`, h: `${Number(parts.hour)}`, minute: `${parts.minute}` }),
    // ICU versions write either GMT or GMT+0.
    offset: `${parts.timeZoneName}`.replace(/^GMT$/, 'GMT+0').replace('GMT', 'UTC'),
  }
}

/**
 * British English is written without a comma after the weekday, where ICU sets one or not; the first of a French month is the 1er. No line
 * breaks between a day and its month.
 */
function dateOf(moment: Date, locale: string, options: Intl.DateTimeFormatOptions): string {
  const text = formatOf(locale, options)
    .format(moment)
    .replace(/(?<=\d\.?) (?=\p{L})/u, '\u00a0')
  if (locale.startsWith('fr')) return text.replace(/(?<!\d)1(?=\u00a0)/u, '1er')
  return locale.startsWith('en') ? text.replace(',', '') : text
}

function zoneName(zone: string, start: string, end: string, { offsets }: Words): string {
  if (start !== end) return `${zone} (${fill(offsets, { start, end })})`
  return zone === 'UTC' ? zone : `${zone} (${start})`
}
