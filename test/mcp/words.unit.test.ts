import { expect, test } from 'vitest'
import { moneyText, periodText, timeText } from '../../src/http/mcp/words.ts'

test.each([
  [29_900, 'EUR', 'EUR 299.00'],
  [5, 'EUR', 'EUR 0.05'],
  [500, 'JPY', 'JPY 500'],
  [1234, 'KWD', 'KWD 1.234'],
  [1_000_000_000_000, 'USD', 'USD 10000000000.00'],
  [100, 'XXQ', 'XXQ 1.00'],
])('%d of %s is %s', (amount, currency, text) => {
  expect(moneyText(amount, currency)).toBe(text)
})

test.each([
  ['2027-05-01T07:00:00.123456Z', 'Europe/Berlin', '2027-05-01T09:00:00+02:00'],
  ['2027-12-01T07:00:00Z', 'America/St_Johns', '2027-12-01T03:30:00-03:30'],
  ['2027-12-31T23:30:00Z', 'Pacific/Auckland', '2028-01-01T12:30:00+13:00'],
  ['2027-05-01T07:00:00.5Z', 'UTC', '2027-05-01T07:00:00Z'],
  ['2027-05-01T07:00:00Z', undefined, '2027-05-01T07:00:00Z'],
  // A zone that only Postgres knows, and an offset that RFC 3339 cannot write.
  ['2027-05-01T07:00:00Z', 'posix/Europe/Berlin', '2027-05-01T07:00:00Z'],
  ['1920-05-01T07:00:00Z', 'Europe/Amsterdam', expect.stringMatching(/^1920-05-01T0[78]:\d\d:\d\d(Z|\+\d\d:\d\d)$/)],
])('%s in %s is %s', (instant, timezone, text) => {
  expect(timeText(instant, timezone)).toEqual(text)
})

test.each([
  ['2027-05-01T09:00:00+02:00', '2027-05-01T17:30:00+02:00', 'Sat 1 May 2027 09:00 to 17:30 Europe/Berlin'],
  [
    '2027-12-31T20:00:00+01:00',
    '2028-01-01T04:00:00+01:00',
    'Fri 31 Dec 2027 20:00 to Sat 1 Jan 2028 04:00 Europe/Berlin',
  ],
  ['2027-05-01T09:00:00Z', '2027-05-01T17:30:00Z', 'Sat 1 May 2027 09:00 to 17:30 UTC'],
])('from %s to %s is %s', (start, end, text) => {
  expect(periodText(start, end, 'Europe/Berlin')).toBe(text)
})
