// When an event is, in the words of the place where it is held. Expected texts are worked out by hand from the zones' rules.

import { describe, expect, test } from 'vitest'
import { type EventTime, eventTime, momentOf } from '../../src/guests/event-time.ts'
import { wordsOf } from '../../src/guests/words/index.ts'

const spaced = (text: string) => text.replaceAll('\u00a0', ' ')
const spacedTime = (time: EventTime | undefined) => time && { lines: time.lines.map(spaced), zone: time.zone }

const at = (timezone: string, starts_at: string | null, ends_at: string | null) =>
  spacedTime(eventTime({ timezone, starts_at, ends_at }, wordsOf('en')))

describe('an event within a day', () => {
  test.each([
    ['Europe/Berlin', '2027-05-01T17:00Z', '2027-05-01T20:30Z', 'Saturday 1 May 2027', '19:00 – 22:30', 'UTC+2'],
    ['Europe/Berlin', '2027-01-15T17:00Z', '2027-01-15T20:30Z', 'Friday 15 January 2027', '18:00 – 21:30', 'UTC+1'],
    ['America/New_York', '2027-07-05T01:00Z', '2027-07-05T03:00Z', 'Sunday 4 July 2027', '21:00 – 23:00', 'UTC-4'],
    ['Asia/Kolkata', '2027-03-01T20:00Z', '2027-03-01T21:15Z', 'Tuesday 2 March 2027', '01:30 – 02:45', 'UTC+5:30'],
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
  const evening = { timezone: 'Europe/Berlin', starts_at: '2027-05-01T07:00:00Z', ends_at: '2027-05-01T20:30:00Z' }
  const autumn = { timezone: 'Europe/Berlin', starts_at: '2027-10-30T18:00:00Z', ends_at: '2027-10-31T02:30:00Z' }

  test.each([
    [
      'de',
      ['Samstag, 1. Mai 2027', '09:00 bis 22:30 Uhr'],
      ['Sa., 30. Okt. 2027, 20:00 Uhr', 'bis So., 31. Okt. 2027, 03:30 Uhr'],
      'UTC+2 zu Beginn, UTC+1 am Ende',
      '1. Mai 2027 um 09:00 Uhr',
    ],
    [
      'fr',
      ['Samedi 1er mai 2027', 'de 9 h 00 à 22 h 30'],
      ['Sam. 30 oct. 2027, 20 h 00', 'jusqu’au dim. 31 oct. 2027, 3 h 30'],
      'UTC+2 au début, UTC+1 à la fin',
      '1er mai 2027 à 9 h 00',
    ],
    [
      'es',
      ['Sábado, 1 de mayo de 2027', 'de 9:00 a 22:30 h'],
      ['Sáb, 30 oct 2027, 20:00 h', 'hasta el dom, 31 oct 2027, 3:30 h'],
      'UTC+2 al principio, UTC+1 al final',
      '1 de mayo de 2027 a las 9:00 h',
    ],
    [
      'nl',
      ['Zaterdag 1 mei 2027', '09:00 tot 22:30 uur'],
      ['Za 30 okt 2027, 20:00 uur', 'tot zo 31 okt 2027, 03:30 uur'],
      'UTC+2 aan het begin, UTC+1 aan het eind',
      '1 mei 2027 om 09:00 uur',
    ],
  ])('%s: dates and hours are as they are written there', (locale, day, days, offsets, moment) => {
    const words = wordsOf(locale)
    expect(spacedTime(eventTime(evening, words))?.lines).toEqual(day)
    expect(spacedTime(eventTime(autumn, words))).toEqual({ lines: days, zone: `Europe/Berlin (${offsets})` })
    expect(spaced(momentOf(evening.starts_at, evening.timezone, words))).toBe(moment)
  })

  test('no line breaks between a day and its month, nor within an hour', () => {
    const written = ['de', 'en', 'es', 'fr', 'nl'].map((locale) =>
      momentOf(evening.starts_at, evening.timezone, wordsOf(locale)).replaceAll('\u00a0', '_'),
    )
    expect(written).toEqual([
      '1._Mai 2027 um_09:00_Uhr',
      '1_May 2027 at_09:00',
      '1_de mayo de 2027 a_las_9:00_h',
      '1er_mai 2027 à_9_h_00',
      '1_mei 2027 om_09:00_uur',
    ])
  })

  test("in Spanish one o'clock is in the singular, and no other hour", () => {
    const hours = ['2027-05-01T23:05:00Z', '2027-05-01T11:05:00Z', '2027-05-01T08:05:00Z'].map((instant) =>
      spaced(momentOf(instant, 'Europe/Berlin', wordsOf('es'))),
    )
    expect(hours).toEqual([
      '2 de mayo de 2027 a la 1:05 h',
      '1 de mayo de 2027 a las 13:05 h',
      '1 de mayo de 2027 a las 10:05 h',
    ])
  })

  test('in French neither hours nor double punctuation begin a line', () => {
    const { link, subject, clock } = wordsOf('fr')
    expect([subject, clock]).toEqual(['{headline}\u00a0: {event}', '{h}\u00a0h\u00a0{minute}'])
    expect(JSON.stringify(wordsOf('fr'))).not.toMatch(/ [:;?!]/)
    expect(link.unknown).toContain('récent\u202f; sinon')
  })
})
