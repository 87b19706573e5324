// The calendar file of a ticket, read by a library that did not write it.

import ICAL from 'ical.js'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { composeEmail } from '../../src/courier/emails/compose.ts'
import type { PendingTicket } from '../../src/guests/pending.ts'
import { hostileNames } from '../courier/hostile.ts'
import { pendingTicket, sender } from '../courier/pending-ticket.ts'

async function calendarFile(pending: PendingTicket): Promise<string | undefined> {
  const { attachments } = await composeEmail(pending, sender)
  return attachments.find(({ filename }) => filename.endsWith('.ics'))?.content.toString()
}

async function calendarOf(pending: PendingTicket) {
  const text = (await calendarFile(pending)) as string
  const calendar = new ICAL.Component(ICAL.parse(text))
  const [entry, ...others] = calendar.getAllSubcomponents('vevent')
  if (entry === undefined || others.length > 0) throw new Error('not one entry')
  return { text, calendar, entry, event: new ICAL.Event(entry) }
}

const instant = (time: ICAL.Time | null) => time?.toJSDate().toISOString()

describe('start and end are the instants they are, whatever the zone', () => {
  test.each([
    ['Europe/Berlin', '2027-03-28T00:30:00.000Z', '2027-03-28T01:30:00.000Z'],
    ['Europe/Berlin', '2027-10-30T20:00:00.000Z', '2027-10-31T05:00:00.000Z'],
    ['America/New_York', '2027-11-07T05:30:00.000Z', '2027-11-07T06:30:00.000Z'],
    ['UTC', '2027-12-31T23:00:00.000Z', '2028-01-01T01:00:00.000Z'],
    ['Asia/Kolkata', '2027-03-01T20:00:00.000Z', '2027-03-01T21:15:00.000Z'],
  ])('%s from %s', async (timezone, starts_at, ends_at) => {
    const { entry, event } = await calendarOf(pendingTicket({ event: { timezone, starts_at, ends_at } }))
    expect([instant(event.startDate), instant(event.endDate)]).toEqual([starts_at, ends_at])
    // Without a zone of its own, so that no calendar needs to know one.
    expect(entry.getFirstProperty('dtstart')?.getParameter('tzid')).toBeUndefined()
    expect(event.startDate.zone).toBe(ICAL.Timezone.utcTimezone)
  })

  test('and whatever the zone of the server', async () => {
    onTestFinished(() => void vi.unstubAllEnvs())
    vi.stubEnv('TZ', 'Pacific/Auckland')
    expect(new Date('2027-05-01T17:00:00Z').getHours(), 'the zone of this process').toBe(5)
    const { event } = await calendarOf(pendingTicket())
    expect(instant(event.startDate)).toBe('2027-05-01T17:00:00.000Z')
  })
})

test('an entry says what, where, by whom and under which reference, but not the ticket code', async () => {
  const pending = pendingTicket({ event: { online_url: 'https://stream.example/live' } })
  const { text, calendar, entry, event } = await calendarOf(pending)
  expect(calendar.getFirstPropertyValue('method')).toBe('PUBLISH')
  expect(calendar.getFirstPropertyValue('version')).toBe('2.0')
  expect(event.summary).toBe('Lange Nacht der Übersetzung')
  expect(event.location).toBe('Altes Pfandhaus, Kartäuserwall 20, 50678 Köln, Germany')
  expect(event.organizer).toBe('mailto:hello@literaturhaus.example')
  expect(entry.getFirstProperty('organizer')?.getParameter('cn')).toBe('Literaturhaus Köln')
  expect(entry.getFirstPropertyValue('url')).toBe('https://stream.example/live')
  expect(event.description.split('\n')).toEqual([
    'Organiser: Literaturhaus Köln',
    'Saturday 1\u00a0May 2027, 19:00 – 22:30, Europe/Berlin (UTC+2)',
    'Online: https://stream.example/live',
    'Ticket: Regular',
    'Order: K7Q2M9XD',
    'Your QR code is in the e-mail with your ticket.',
  ])
  // RFC 5546, 3.2.1: what is published invites nobody.
  expect(event.attendees).toEqual([])
  expect(text.replace(/\s/g, '')).not.toContain(pending.attendee.ticket_code)
  expect(text).toMatch(/END:VCALENDAR\r\n$/)
  for (const line of text.split('\r\n')) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(75)
})

test('whatever happens later supersedes the entry: to the event or to the ticket', async () => {
  const pending = pendingTicket()
  const changed = async (event: object, updated_at = pending.attendee.updated_at) =>
    calendarOf({ ...pending, event: { ...pending.event, ...event }, attendee: { ...pending.attendee, updated_at } })
  const entries = [
    await calendarOf(pending),
    await changed({ version: 4, updated_at: '2027-03-01T00:00:00Z' }),
    // Within the same second.
    await changed({ version: 5, updated_at: '2027-03-01T00:00:00.400Z' }),
    // Another ticket of the address, after the change.
    await changed({ version: 5, updated_at: '2027-03-01T00:00:00.400Z' }, '2027-03-01T00:00:02Z'),
  ]
  expect(new Set(entries.map(({ event }) => event.uid))).toEqual(new Set([pending.event.id]))
  expect(entries.map(({ event }) => event.sequence)).toEqual([223_646_403, 226_022_404, 226_022_405, 226_022_407])
  expect(entries.map(({ entry }) => String(entry.getFirstPropertyValue('dtstamp')))).toEqual([
    '2027-02-01T12:00:00Z',
    '2027-03-01T00:00:00Z',
    '2027-03-01T00:00:00Z',
    '2027-03-01T00:00:02Z',
  ])
  const another = await calendarOf(pendingTicket())
  expect(another.event.uid).not.toBe(pending.event.id)
})

test('an event online has its link for a place, also one with characters that text would escape', async () => {
  const online_url = 'https://stream.example/a;b,c?d=e;f'
  const { entry, event } = await calendarOf(pendingTicket({ event: { venue: null, online_url } }))
  expect(event.location).toBe(online_url)
  expect(decodeURIComponent(String(entry.getFirstPropertyValue('url')))).toBe(online_url)
})

test('an entry without an end or a place does without', async () => {
  const { entry, event } = await calendarOf(pendingTicket({ event: { venue: null, ends_at: null } }))
  expect(instant(event.startDate)).toBe('2027-05-01T17:00:00.000Z')
  expect(['dtend', 'duration', 'location', 'url'].filter((name) => entry.hasProperty(name))).toEqual([])
})

test('without a start there is no calendar file', async () => {
  expect(await calendarFile(pendingTicket({ event: { starts_at: null } }))).toBeUndefined()
})

test('an organiser without an address for replies is reached at the address of the e-mail', async () => {
  const { event } = await calendarOf(pendingTicket({ organisation: { reply_to: null } }))
  expect(event.organizer).toBe(`mailto:${sender}`)
})

test.each(Object.entries(hostileNames))('%s in every name adds nothing to the entry', async (_, text) => {
  const harmless = await calendarOf(pendingTicket())
  const { calendar, entry, event } = await calendarOf(
    pendingTicket({
      organisation: { name: text },
      event: { name: text, venue: { name: text, address: text, city: text, postcode: text, country: null } },
      ticket_type: { name: text },
    }),
  )
  const names = (component: ICAL.Component) => component.getAllProperties().map(({ name }) => name)
  expect(names(entry)).toEqual(names(harmless.entry))
  expect(names(calendar)).toEqual(names(harmless.calendar))
  const organiser = entry.getFirstProperty('organizer')
  expect(Object.keys(organiser?.jCal[1] ?? {})).toEqual(['cn'])
  expect(event.organizer).toBe('mailto:hello@literaturhaus.example')
  expect(event.startDate.toString()).toBe('2027-05-01T17:00:00Z')
  expect(event.summary.length, 'the name is still there').toBeGreaterThan(0)
})
