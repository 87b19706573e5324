// Money and times as a model reads them: `EUR 299.00`, and the clock of the event in place of UTC.

import { decimalsOf } from '../../guests/minor-units.ts'

/** An amount in minor units with the decimals of its currency. */
export function moneyText(amount: number, currency: string): string {
  const digits = decimalsOf(currency)
  return `${currency} ${(amount / 10 ** digits).toFixed(digits)}`
}

/** The same moment to the second in the zone, such as `2027-05-01T09:00:00+02:00`; without a zone that is known, in UTC. */
export function timeText(instant: string, timezone: string | undefined): string {
  const isUtc = timezone === undefined || timezone === 'UTC'
  if (isUtc && instant.endsWith('Z')) return `${instant.slice(0, 19)}Z`
  const moment = Date.parse(instant)
  const offset = isUtc ? 'Z' : offsetAt(moment, timezone)
  if (offset === 'Z') return `${new Date(moment).toISOString().slice(0, 19)}Z`
  const minutes = Number(offset.slice(1, 3)) * 60 + Number(offset.slice(4))
  const local = new Date(moment + (offset.startsWith('-') ? -minutes : minutes) * 60_000)
  return `${local.toISOString().slice(0, 19)}${offset}`
}

/** Such as `+02:00`. Clocks change at quarters of an hour, for which it is kept. */
function offsetAt(moment: number, timezone: string): string {
  const quarter = Math.floor(moment / 900_000)
  return kept(offsets, `${timezone} ${quarter}`, () => {
    const zone = kept(zones, timezone, () => zoneOf(timezone))
    const parts = zone?.formatToParts(quarter * 900_000) ?? []
    const offset = parts.find(({ type }) => type === 'timeZoneName')?.value.replace('GMT', '') ?? ''
    // Until 1972 some zones had offsets with seconds, which RFC 3339 has not.
    return /^[+-]\d\d:\d\d$/.test(offset) ? offset : 'Z'
  })
}

/**
 * With the weekdays, such as `Sat 1 May 2027 09:00 to 17:30 Europe/Berlin`; over several days the second has its date too. Put together
 * here: `Intl` takes a hundred times as long.
 *
 * @param start of `timeText`, as is `end`.
 */
export function periodText(start: string, end: string, timezone: string): string {
  const until = end.slice(0, 10) === start.slice(0, 10) ? clockIn(end) : `${dayIn(end)} ${clockIn(end)}`
  // Of a zone that is not known the times are in UTC.
  return `${dayIn(start)} ${clockIn(start)} to ${until} ${start.endsWith('Z') ? 'UTC' : timezone}`
}

const clockIn = (time: string) => time.slice(11, 16)

function dayIn(time: string): string {
  const day = new Date(time.slice(0, 10))
  return `${weekdays[day.getUTCDay()]} ${day.getUTCDate()} ${months[day.getUTCMonth()]} ${day.getUTCFullYear()}`
}

const weekdays = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

const offsets = new Map<string, string>()
const zones = new Map<string, Intl.DateTimeFormat | null>()
const maximumKept = 10_000

/** To make a format takes longer than all else, and to ask one longer than the rest. */
function kept<Value>(map: Map<string, Value>, name: string, make: () => Value): Value {
  const known = map.get(name)
  if (known !== undefined) return known
  if (map.size >= maximumKept) map.clear()
  const made = make()
  map.set(name, made)
  return made
}

// Postgres knows names of zones that Node does not, such as posix/Europe/Berlin.
function zoneOf(timeZone: string): Intl.DateTimeFormat | null {
  try {
    return new Intl.DateTimeFormat('en', { timeZone, timeZoneName: 'longOffset' })
  } catch {
    return null
  }
}
