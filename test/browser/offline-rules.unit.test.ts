// What the door page decides by itself, from the list and from what it has scanned. The database decides the same: offline-rules.test.ts.

import { expect, test } from 'vitest'
import {
  asTicketCode,
  canBeCode,
  type Door,
  entriesAfter,
  judge,
  type Point,
  type Scan,
  type Ticket,
  whyUnknown,
} from '../../src/apps/door/browser/offline-rules.ts'
import { type Case, type CaseScan, cases, timeOf, typed } from './offline-rules-cases.ts'

const hourOrNull = (hour: number | undefined) => (hour === undefined ? null : timeOf(hour))

function arrange({ eventStatus, ticketStatus, unknown, gate = {} }: Case): { door: Door; ticket: Ticket | undefined } {
  const point: Point = {
    id: 'gate',
    name: 'Gate',
    status: gate.status ?? 'active',
    ticket_type_ids: gate.admits === undefined ? [] : [gate.admits],
    opens_at: hourOrNull(gate.opensAtHour),
    closes_at: hourOrNull(gate.closesAtHour),
    admission: gate.admission ?? 'once',
  }
  const ticket: Ticket = {
    attendee_id: 'guest',
    code_hash: '',
    name: 'Guest',
    company: null,
    ticket_type_id: 'this type',
    status: ticketStatus ?? 'active',
    entries: [],
  }
  const event = { id: 'event', name: 'Event', status: eventStatus ?? 'published', timezone: 'Europe/Berlin' }
  return { door: { event, points: [point] }, ticket: unknown ? undefined : ticket }
}

const asScan = ({ at, hour, direction = 'entry' }: CaseScan): Scan => ({
  check_in_point_id: at === 'gate' ? 'gate' : null,
  direction,
  scanned_at: timeOf(hour),
})

test.each(cases)('$title: $reason', (one) => {
  const { door, ticket } = arrange(one)
  const earlier: Scan[] = []
  const last = asScan(one.scans.at(-1) as CaseScan)
  for (const each of one.scans.slice(0, -1)) {
    const scan = asScan(each)
    if (judge(door, ticket, scan, earlier).reason === null && !each.undone) earlier.push(scan)
  }
  expect(judge(door, ticket, last, earlier).reason).toBe(one.reason)
  // As when the list has them.
  const listed = ticket && { ...ticket, entries: entriesAfter(door, ticket.entries, earlier) }
  expect(judge(door, listed, last).reason).toBe(one.reason)
})

test('a code may be typed as it is heard and seen; other texts are none', () => {
  expect(typed.map(([text]) => [text, asTicketCode(text)])).toEqual(typed)
  expect(['A', 'x'.repeat(200)].every(canBeCode)).toBe(true)
  expect(['', '  ', 'x'.repeat(201), 'a\nb', '\u0000', '\ud800'].some(canBeCode)).toBe(false)
})

test('an unknown code of a test ticket, and of a live one at the door of a test event, says so', () => {
  const at = (livemode?: boolean) => ({
    event: { id: '', name: '', status: 'published', timezone: 'UTC', livemode },
    points: [],
  })
  const [test, live, other] = ['test-9x45 69yj 52xd 7g01', '9X4569YJ52XD7G01', 'hello']
  const said = (livemode?: boolean) => [test, live, other].map((code) => whyUnknown(at(livemode), code))
  expect(said(true)).toEqual(['test_ticket', 'not_found', 'not_found'])
  expect(said(false)).toEqual(['not_found', 'live_ticket', 'not_found'])
  // A list that an older page kept.
  expect(said()).toEqual(said(true))
})
