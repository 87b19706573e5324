// Money and times as a model reads them: `EUR 299.00`, and the clock of the event in place of UTC.

import { createCache } from '../../gateway/cache.ts'
import { decimalsOf } from '../../guests/minor-units.ts'

/** An amount in minor units with the decimals of its currency. */
export function moneyText(amount: number, currency: string): string {
  const digits = decimalsOf(currency)
  return `${currency} ${(amount / 10 ** digits).toFixed(digits)}`
}

/** The same moment to the second in the zone, such as `2027-05-01T09:00:00+02:00`; without a zone that is known, in UTC. */
export function timeText(instant: string, timezone = 'UTC'): string {
  const moment = new Date(instant)
  // From `2027-05-01 09:00:00 GMT+02:00`, where a minus is U+2212.
  const local = formatIn(timezone).format(moment).replace(' ', 'T').replace(' GMT', '').replace('\u2212', '-')
  // Until 1972 some zones had offsets with seconds, which RFC 3339 has not.
  const isSaid = /[+-]\d\d:\d\d$/.test(local) && !local.endsWith('+00:00')
  return isSaid ? local : `${moment.toISOString().slice(0, 19)}Z`
}

/**
 * With the weekdays, such as `Sat 1 May 2027 09:00 to 17:30 Europe/Berlin`; over several days the second has its date too.
 *
 * @param start of `timeText`, as is `end`.
 */
export function periodText(start: string, end: string, timezone: string): string {
  const until = end.slice(0, 10) === start.slice(0, 10) ? clockOf(end) : `${dayOf(end)} ${clockOf(end)}`
  // Of a zone that is not known the times are in UTC.
  return `${dayOf(start)} ${clockOf(start)} to ${until} ${start.endsWith('Z') ? 'UTC' : timezone}`
}

const clockOf = (time: string) => time.slice(11, 16)

/** From `Sat, 01 May 2027 00:00:00 GMT`. */
const dayOf = (time: string) => new Date(time.slice(0, 10)).toUTCString().slice(0, 16).replace(/, 0?/, ' ')

// To make one takes thirty times as long as to ask it.
const formats = createCache<Intl.DateTimeFormat>(1_000)

function formatIn(timezone: string): Intl.DateTimeFormat {
  const format = formats.get(timezone) ?? newFormat(timezone)
  formats.set(timezone, format)
  return format
}

function newFormat(timeZone: string): Intl.DateTimeFormat {
  const date = { year: 'numeric', month: '2-digit', day: '2-digit' } as const
  const time = { hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'longOffset' } as const
  try {
    return new Intl.DateTimeFormat('sv', { timeZone, ...date, ...time })
  } catch {
    // Postgres knows names of zones that Node does not, such as posix/Europe/Berlin.
    return formatIn('UTC')
  }
}
