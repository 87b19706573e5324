// When an event is, in the words of the place where it is held. Expected texts are worked out by hand from the zones' rules.

import { describe, expect, test } from 'vitest'
import { eventTime } from '../../src/guests/event-time.ts'

const at = (timezone: string, starts_at: string | null, ends_at: string | null) =>
  eventTime({ timezone, starts_at, ends_at })

describe('an event within a day', () => {
  test.each([
    ['Europe/Berlin', '2027-05-01T17:00:00Z', '2027-05-01T20:30:00Z', 'Saturday 1 May 2027', '19:00 – 22:30', 'UTC+2'],
    [
      'Europe/Berlin',
      '2027-01-15T17:00:00Z',
      '2027-01-15T20:30:00Z',
      'Friday 15 January 2027',
      '18:00 – 21:30',
      'UTC+1',
    ],
    [
      'America/New_York',
      '2027-07-05T01:00:00Z',
      '2027-07-05T03:00:00Z',
      'Sunday 4 July 2027',
      '21:00 – 23:00',
      'UTC-4',
    ],
    [
      'Asia/Kolkata',
      '2027-03-01T20:00:00Z',
      '2027-03-01T21:15:00Z',
      'Tuesday 2 March 2027',
      '01:30 – 02:45',
      'UTC+5:30',
    ],
  ])('%s from %s', (zone, start, end, date, time, offset) => {
    expect(at(zone, start, end)).toEqual({ lines: [date, time], zone: `${zone} (${offset})` })
  })

  test('in UTC the zone is named once', () => {
    expect(at('UTC', '2027-05-01T00:00:00Z', '2027-05-01T23:59:00Z')).toEqual({
      lines: ['Saturday 1 May 2027', '00:00 – 23:59'],
      zone: 'UTC',
    })
  })
})

test('an event over several days has a date for both ends', () => {
  expect(at('Europe/London', '2027-09-29T18:00:00Z', '2027-10-01T03:00:00Z')).toEqual({
    lines: ['Wed 29 Sept 2027, 19:00', 'to Fri 1 Oct 2027, 04:00'],
    zone: 'Europe/London (UTC+1)',
  })
})

test('an event during which the clocks change names both offsets', () => {
  // 02:00 to 03:30 by the clocks, though they show it in two and a half hours.
  expect(at('Europe/Berlin', '2027-10-31T00:00:00Z', '2027-10-31T02:30:00Z')).toEqual({
    lines: ['Sunday 31 October 2027', '02:00 – 03:30'],
    zone: 'Europe/Berlin (UTC+2 at the start, UTC+1 at the end)',
  })
})

test('an event whose end nobody has said has a start only', () => {
  expect(at('Europe/Berlin', '2027-05-01T17:00:00Z', null)).toEqual({
    lines: ['Saturday 1 May 2027', '19:00'],
    zone: 'Europe/Berlin (UTC+2)',
  })
})

test('an event whose start nobody has said has no time', () => {
  expect(at('Europe/Berlin', null, '2027-05-01T17:00:00Z')).toBeUndefined()
})

test('a zone that only Postgres knows is shown as UTC, which it then says', () => {
  expect(at('posix/Europe/Berlin', '2027-05-01T17:00:00Z', '2027-05-01T18:00:00Z')).toEqual({
    lines: ['Saturday 1 May 2027', '17:00 – 18:00'],
    zone: 'UTC',
  })
})

describe('in another language', () => {
  const words = { until: 'bis {moment}', offsets: '{start} zu Beginn, {end} am Ende' }
  const evening = { timezone: 'Europe/Berlin', starts_at: '2027-05-01T17:00:00Z', ends_at: '2027-05-01T20:30:00Z' }
  const autumn = { timezone: 'Europe/Berlin', starts_at: '2027-10-30T18:00:00Z', ends_at: '2027-10-31T02:30:00Z' }

  test.each([
    ['de', 'Samstag, 1. Mai 2027', 'Sa., 30. Okt. 2027, 20:00'],
    ['fr', 'samedi 1 mai 2027', 'sam. 30 oct. 2027, 20:00'],
    ['es', 'sábado, 1 de mayo de 2027', 'sáb, 30 oct 2027, 20:00'],
    ['nl', 'zaterdag 1 mei 2027', 'za 30 okt 2027, 20:00'],
  ])('%s: dates are as they are written there, hours as everywhere', (locale, date, start) => {
    expect(eventTime(evening, { locale, ...words })).toEqual({
      lines: [date, '19:00 – 22:30'],
      zone: 'Europe/Berlin (UTC+2)',
    })
    expect(eventTime(autumn, { locale, ...words })?.lines[0]).toBe(start)
  })

  test('what is no date is in words of the language', () => {
    expect(eventTime(autumn, { locale: 'de', ...words })).toEqual({
      lines: ['Sa., 30. Okt. 2027, 20:00', 'bis So., 31. Okt. 2027, 03:30'],
      zone: 'Europe/Berlin (UTC+2 zu Beginn, UTC+1 am Ende)',
    })
  })
})
