// Cases of a scan at the door: decided by the page in offline-rules.unit.test.ts, and by the database in offline-rules.test.ts.

import type { Admission, Direction, Reason, Ticket } from '../../src/apps/door/browser/offline-rules.ts'

export type Place = 'event' | 'gate'
/** Hours from the first scan of the case. */
export type CaseScan = { at: Place; hour: number; direction?: Direction; undone?: true }
export type Case = {
  title: string
  eventStatus?: 'cancelled'
  ticketStatus?: Ticket['status']
  /** No ticket has the code. */
  unknown?: true
  gate?: {
    admission?: Admission
    admits?: 'this type' | 'another type'
    opensAtHour?: number
    closesAtHour?: number
    status?: 'archived'
  }
  /** In their order; the last one is judged, after all before it had their verdict. */
  scans: CaseScan[]
  reason: Reason | null
}

/** What is typed, and the code that it is. */
export const typed: [text: string, code: string][] = [
  [' 9x45-69yj 52xd\tg7qg', '9X4569YJ52XDG7QG'],
  ['test 9x45-69yj 52xd 7goi', 'TEST-9X4569YJ52XD7G01'],
  ['TEST-9X45', 'TEST9X45'],
  ['o1Il', '0111'],
  ['OIL0', '0110'],
  ['9X45\u20136\u20149\u2212Y\u2011J\u301c', '9X4569YJ'],
  ['\uff19\uff38\uff14\uff15\uff0d\uff4f\u3000\uff29', '9X4501'],
  ['9X\u00a045\u200b\u00ad.69', '9X4569'],
  ['\u00e4\u00df\u0131', ''],
]

const entry = (at: Place, hour = 0): CaseScan => ({ at, hour })
const exit = (at: Place, hour: number): CaseScan => ({ at, hour, direction: 'exit' })
const day = 24

export const cases: Case[] = [
  { title: 'a ticket is welcome', scans: [entry('event')], reason: null },
  { title: 'once', scans: [entry('event'), entry('event', 1)], reason: 'already_checked_in' },
  { title: 'again when it was undone', scans: [{ ...entry('event'), undone: true }, entry('event', 1)], reason: null },
  { title: 'at the gate and at the event, each once', scans: [entry('gate'), entry('event', 1)], reason: null },
  { title: 'once at the gate', scans: [entry('gate'), entry('gate', 1)], reason: 'already_checked_in' },
  { title: 'an unknown code', unknown: true, scans: [entry('event')], reason: 'not_found' },
  { title: 'unpaid', ticketStatus: 'awaiting_payment', scans: [entry('event')], reason: 'unpaid' },
  { title: 'cancelled', ticketStatus: 'cancelled', scans: [entry('event')], reason: 'cancelled' },
  { title: 'cancelled event', eventStatus: 'cancelled', scans: [entry('event')], reason: 'event_cancelled' },
  {
    title: 'a cancelled event comes before an unknown code',
    eventStatus: 'cancelled',
    unknown: true,
    scans: [entry('event')],
    reason: 'event_cancelled',
  },
  { title: 'the right type', gate: { admits: 'this type' }, scans: [entry('gate')], reason: null },
  { title: 'another type', gate: { admits: 'another type' }, scans: [entry('gate')], reason: 'not_admitted_here' },
  { title: 'before it opens', gate: { opensAtHour: 1 }, scans: [entry('gate')], reason: 'point_closed' },
  { title: 'when it opens', gate: { opensAtHour: 0 }, scans: [entry('gate')], reason: null },
  { title: 'when it closes', gate: { closesAtHour: 0 }, scans: [entry('gate')], reason: 'point_closed' },
  { title: 'archived', gate: { status: 'archived' }, scans: [entry('gate')], reason: 'point_closed' },
  {
    title: 'closed comes before another type',
    gate: { closesAtHour: 0, admits: 'another type' },
    scans: [entry('gate')],
    reason: 'point_closed',
  },
  {
    title: 'unpaid comes before closed',
    ticketStatus: 'awaiting_payment',
    gate: { closesAtHour: 0 },
    scans: [entry('gate')],
    reason: 'unpaid',
  },
  {
    title: 'twice on one day',
    gate: { admission: 'once_per_day' },
    scans: [entry('gate'), entry('gate', 1)],
    reason: 'already_checked_in',
  },
  {
    title: 'on two days',
    gate: { admission: 'once_per_day' },
    scans: [entry('gate'), entry('gate', day)],
    reason: null,
  },
  {
    title: 'days begin in the time zone of the event',
    // The first scan is at 21:30 UTC: 22:30 in Berlin, in winter.
    gate: { admission: 'once_per_day' },
    scans: [entry('gate'), entry('gate', 2)],
    reason: null,
  },
  { title: 'an exit before an entry', scans: [exit('event', 0)], reason: 'not_inside' },
  { title: 'an exit', scans: [entry('gate'), exit('gate', 1)], reason: null },
  { title: 'an exit elsewhere', scans: [entry('gate'), exit('event', 1)], reason: 'not_inside' },
  { title: 'two exits', scans: [entry('gate'), exit('gate', 1), exit('gate', 2)], reason: 'not_inside' },
  {
    title: 'an exit lets nobody in again',
    scans: [entry('gate'), exit('gate', 1), entry('gate', 2)],
    reason: 'already_checked_in',
  },
  {
    title: 'an exit lets in again where that is the rule',
    gate: { admission: 're_entry' },
    scans: [entry('gate'), exit('gate', 1), entry('gate', 2)],
    reason: null,
  },
  {
    title: 'an exit at the event lets in again',
    scans: [entry('event'), exit('event', 1), entry('event', 2)],
    reason: null,
  },
  {
    title: 'at the event, re-entry needs an exit each time',
    scans: [entry('event'), exit('event', 1), entry('event', 2), entry('event', 3)],
    reason: 'already_checked_in',
  },
  {
    title: 'an exit at a gate lets nobody in again at the event',
    gate: { admission: 're_entry' },
    scans: [entry('gate'), entry('event', 1), exit('gate', 2), entry('event', 3)],
    reason: 'already_checked_in',
  },
  {
    title: 're-entry needs an exit',
    gate: { admission: 're_entry' },
    scans: [entry('gate'), exit('gate', 1), entry('gate', 2), entry('gate', 3)],
    reason: 'already_checked_in',
  },
  {
    title: 'a closed gate lets people out',
    gate: { closesAtHour: 1 },
    scans: [entry('gate'), exit('gate', 2)],
    reason: null,
  },
  {
    title: 'a cancelled ticket without an entry has none to end',
    ticketStatus: 'cancelled',
    scans: [exit('event', 0)],
    reason: 'not_inside',
  },
]

/** 21:30 UTC in winter, so that an hour and a half later a day begins in Berlin. */
const firstScan = Date.UTC(2026, 0, 15, 21, 30)
export const timeOf = (hour: number): string => new Date(firstScan + hour * 3_600_000).toISOString()
