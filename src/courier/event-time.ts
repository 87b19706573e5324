// Writes the time of an event in English, in its own time zone. The zone is always named: a bare "19:00" means something else to a
// reader abroad.

import type * as z from 'zod'
import type { EventSchema } from '../operations/events.ts'

export type EventTime = {
  /** `Saturday 1 May 2027` and `09:00 – 17:30`; over several days `Sat 1 May 2027, 20:00` and `to Sun 2 May 2027, 04:00`. */
  lines: string[]
  /** `Europe/Berlin (UTC+2)`. */
  zone: string
}

type Times = Pick<z.infer<typeof EventSchema>, 'starts_at' | 'ends_at' | 'timezone'>

/** Undefined while the event has no start time. */
export function eventTime({ starts_at, ends_at, timezone }: Times): EventTime | undefined {
  if (starts_at === null) return undefined
  const zone = knownZone(timezone)
  const start = localTime(starts_at, zone)
  if (ends_at === null) return { lines: [start.date, start.time], zone: zoneName(zone, start.offset) }
  const end = localTime(ends_at, zone)
  return {
    lines:
      start.date === end.date
        ? [start.date, `${start.time} – ${end.time}`]
        : [`${start.shortDate}, ${start.time}`, `to ${end.shortDate}, ${end.time}`],
    zone: zoneName(zone, start.offset, end.offset),
  }
}

/** A day, such as 7 May 2027, in a zone. */
export const dayOf = (instant: string, timezone: string, locale: string): string =>
  new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeZone: knownZone(timezone) }).format(new Date(instant))

/** A day and time, such as 7 May 2027 at 23:59, in a zone. */
export const momentOf = (instant: string, timezone: string, locale: string): string =>
  new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeStyle: 'short', timeZone: knownZone(timezone) }).format(
    new Date(instant),
  )

// Postgres knows zone names that Node does not, such as posix/Europe/Berlin. UTC is less convenient, but correct and named.
function knownZone(timeZone: string): string {
  try {
    new Intl.DateTimeFormat('en-GB', { timeZone })
    return timeZone
  } catch {
    return 'UTC'
  }
}

function localTime(instant: string, timeZone: string) {
  const parts = (names: 'long' | 'short') => {
    const format = new Intl.DateTimeFormat('en-GB', {
      timeZone,
      weekday: names,
      day: 'numeric',
      month: names,
      year: 'numeric',
      hour: '2-digit',
      minute: '2-digit',
      hourCycle: 'h23',
      timeZoneName: 'shortOffset',
    })
    return Object.fromEntries(format.formatToParts(new Date(instant)).map(({ type, value }) => [type, value]))
  }
  const [long, short] = [parts('long'), parts('short')]
  return {
    date: `${long.weekday} ${long.day} ${long.month} ${long.year}`,
    shortDate: `${short.weekday} ${short.day} ${short.month} ${short.year}`,
    time: `${long.hour}:${long.minute}`,
    // ICU versions write either GMT or GMT+0.
    offset: `${long.timeZoneName}`.replace(/^GMT$/, 'GMT+0').replace('GMT', 'UTC'),
  }
}

function zoneName(zone: string, start: string, end = start): string {
  if (start !== end) return `${zone} (${start} at the start, ${end} at the end)`
  return zone === 'UTC' ? zone : `${zone} (${start})`
}
