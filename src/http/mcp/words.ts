// Money and times as a model reads them: `EUR 299.00`, and the clock of the event in place of UTC.

/** An amount in minor units with the decimals of its currency, as CLDR has them. */
export function moneyText(amount: number, currency: string): string {
  const digits = kept(digitsOf, currency, () => {
    return new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions().maximumFractionDigits ?? 2
  })
  return `${currency} ${(amount / 10 ** digits).toFixed(digits)}`
}

/** The same moment to the second in the zone, such as `2027-05-01T09:00:00+02:00`; without a zone that is known, in UTC. */
export function timeText(instant: string, timezone: string | undefined): string {
  const clock = timezone === undefined || timezone === 'UTC' ? null : kept(clocks, timezone, () => clockOf(timezone))
  const moment = new Date(instant)
  const utc = `${moment.toISOString().slice(0, 19)}Z`
  if (clock === null) return utc
  const { year, month, day, hour, minute, second, timeZoneName } = Object.fromEntries(
    clock.formatToParts(moment).map(({ type, value }) => [type, value]),
  )
  const offset = `${timeZoneName}`.replace('GMT', '')
  // Until 1972 some zones had offsets with seconds, which RFC 3339 has not.
  return /^[+-]\d\d:\d\d$/.test(offset) ? `${year}-${month}-${day}T${hour}:${minute}:${second}${offset}` : utc
}

const digitsOf = new Map<string, number>()
const clocks = new Map<string, Intl.DateTimeFormat | null>()
// There are some 160 currencies and 600 zones.
const maximumKept = 800

/** To make a format takes longer than all else. */
function kept<Value>(map: Map<string, Value>, name: string, make: () => Value): Value {
  const known = map.get(name)
  if (known !== undefined) return known
  if (map.size >= maximumKept) map.clear()
  const made = make()
  map.set(name, made)
  return made
}

// Postgres knows names of zones that Node does not, such as posix/Europe/Berlin.
function clockOf(timeZone: string): Intl.DateTimeFormat | null {
  try {
    return new Intl.DateTimeFormat('en-GB', {
      timeZone,
      calendar: 'iso8601',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      hourCycle: 'h23',
      timeZoneName: 'longOffset',
    })
  } catch {
    return null
  }
}
