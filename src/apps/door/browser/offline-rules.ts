// What becomes of a scan, decided from the door list as the trigger of check_ins decides it. Pure: no browser, no clock, no network.
// test/browser/offline-rules.unit.test.ts holds the cases, and runs each of them in the database as well.

export type Admission = 'once' | 'once_per_day' | 're_entry'
export type Direction = 'entry' | 'exit'

export type Point = {
  id: string
  name: string
  status: 'active' | 'archived'
  /** Those that it admits; all when empty. */
  ticket_type_ids: string[]
  opens_at: string | null
  closes_at: string | null
  admission: Admission
}

export type Door = {
  /** `livemode` is absent in lists that an older page kept. */
  event: { id: string; name: string; status: string; timezone: string; starts_at?: string | null; livemode?: boolean }
  points: Point[]
}

/** An entry that stands. Point null: at the event itself. Day: at a point with once_per_day, the one that it counts for. */
export type Entry = {
  check_in_point_id: string | null
  scanned_at: string
  exited_at: string | null
  day: string | null
  /** Null until the server has the scan; absent in lists that an older page kept. */
  check_in_id?: string | null
}

export type Ticket = {
  attendee_id: string
  code_hash: string
  name: string
  company: string | null
  ticket_type_id: string
  status: 'active' | 'awaiting_payment' | 'cancelled'
  /** Of the order; absent in lists that an older page kept. */
  reference?: string
  /** What is due for the whole order, where it is not paid and the link may take money. */
  order?: { id: string; amount_due: number; currency: string } | null
  entries: Entry[]
  /** Absent in lists that an older page kept. */
  answers?: Answers
}

/** To a question that the door sees. */
/** By the key of the question. */
export type Answers = Record<string, { label: string; answer: string }>

export type Scan = {
  check_in_point_id: string | null
  direction: Direction
  scanned_at: string
  check_in_id?: string | null
}

export type Reason =
  | 'event_cancelled'
  | 'not_found'
  | 'wrong_event'
  | 'cancelled'
  | 'unpaid'
  | 'not_admitted_here'
  | 'point_closed'
  | 'not_inside'
  | 'already_checked_in'
  | 'turned_away'

export type Verdict = { reason: Reason | null; since: string | null }

/** `earlier`: scans of this ticket that were accepted here, and are not in the list yet, in their order. */
export function judge(door: Door, ticket: Ticket | undefined, scan: Scan, earlier: readonly Scan[] = []): Verdict {
  const rejected = (reason: Reason, since: string | null = null): Verdict => ({ reason, since })
  const isEntry = scan.direction === 'entry'
  if (isEntry && door.event.status === 'cancelled') return rejected('event_cancelled')
  if (ticket === undefined) return rejected('not_found')
  const entries = entriesAfter(door, ticket.entries, earlier)
  // Whoever leaves is asked for nothing but an entry.
  if (!isEntry) return latestInside(entries, scan) === undefined ? rejected('not_inside') : accepted
  if (ticket.status === 'cancelled') return rejected('cancelled')
  if (ticket.status === 'awaiting_payment') return rejected('unpaid')
  const point = pointOf(door, scan)
  if (point !== undefined && !isOpen(point, scan.scanned_at)) return rejected('point_closed')
  if (point !== undefined && !admits(point, ticket)) return rejected('not_admitted_here')
  const standing = entries.find((entry) => isUsedUp(door, entry, scan))
  return standing === undefined ? accepted : rejected('already_checked_in', standing.scanned_at)
}

const accepted: Verdict = { reason: null, since: null }

export const admits = (point: Point, ticket: Pick<Ticket, 'ticket_type_id'>): boolean =>
  point.ticket_type_ids.length === 0 || point.ticket_type_ids.includes(ticket.ticket_type_id)

const isOpen = ({ status, opens_at, closes_at }: Point, at: string): boolean =>
  status === 'active' &&
  (opens_at === null || Date.parse(at) >= Date.parse(opens_at)) &&
  (closes_at === null || Date.parse(at) < Date.parse(closes_at))

const pointOf = (door: Door, { check_in_point_id }: { check_in_point_id: string | null }): Point | undefined =>
  door.points.find(({ id }) => id === check_in_point_id)

/** The entries, with those of accepted scans, and with exits marked. */
export function entriesAfter(door: Door, entries: readonly Entry[], scans: readonly Scan[]): Entry[] {
  let after = [...entries]
  for (const scan of scans) {
    const { check_in_point_id, scanned_at, check_in_id = null } = scan
    const left = latestInside(after, scan)
    if (scan.direction === 'entry') {
      after.push({ check_in_point_id, scanned_at, exited_at: null, day: dayAt(door, scan), check_in_id })
    } else {
      after = after.map((entry) => (entry === left ? { ...entry, exited_at: scanned_at } : entry))
    }
  }
  return after
}

/** What an exit ends. */
const latestInside = (entries: readonly Entry[], { check_in_point_id }: Scan): Entry | undefined =>
  latestOf(entries.filter((entry) => entry.check_in_point_id === check_in_point_id))

/** The latest entry that no exit has ended. */
export const latestOf = (entries: readonly Entry[]): Entry | undefined =>
  entries
    .filter(({ exited_at }) => exited_at === null)
    .toSorted((a, b) => Date.parse(b.scanned_at) - Date.parse(a.scanned_at))[0]

/** Whether the entry stands in the way of another: an exit ends that at a point with re_entry, and at the event itself. */
function isUsedUp(door: Door, entry: Entry, scan: Scan): boolean {
  if (entry.check_in_point_id !== scan.check_in_point_id) return false
  if ((pointOf(door, scan)?.admission ?? 're_entry') === 're_entry' && entry.exited_at !== null) return false
  const day = dayAt(door, scan)
  return day === null || entry.day === day
}

const dayAt = (door: Door, scan: Scan): string | null =>
  pointOf(door, scan)?.admission === 'once_per_day' ? dateOf(scan.scanned_at, door.event.timezone) : null

/** The date in the time zone, YYYY-MM-DD. */
const dateOf = (at: string, timeZone: string): string =>
  new Intl.DateTimeFormat('en-CA', { timeZone, year: 'numeric', month: '2-digit', day: '2-digit' }).format(new Date(at))

/** As the database reads a code, private.code_form: of letters and digits, O is 0, and I and L are 1; TEST- stands before a test ticket's. */
export const asTicketCode = (text: string): string =>
  text
    .normalize('NFKC')
    .replace(/[^0-9A-Za-z]/g, '')
    .toUpperCase()
    .replaceAll('O', '0')
    .replace(/[IL]/g, '1')
    .replace(/^TEST(?=.{16}$)/, 'TEST-')

/** Why no ticket has the code, as far as the code tells: test tickets are for test organisations, and no others are. */
export function whyUnknown({ event }: Door, code: string): 'not_found' | 'test_ticket' | 'live_ticket' {
  const [whole, test] = /^(TEST-)?.{16}$/.exec(asTicketCode(code)) ?? []
  const isTest = test !== undefined
  if (whole === undefined || isTest !== (event.livemode ?? true)) return 'not_found'
  return isTest ? 'test_ticket' : 'live_ticket'
}

/** Whether the text can be a ticket's code at all; other texts the API would refuse, with all that comes with them. */
export const canBeCode = (text: string): boolean =>
  text.trim().length > 0 && text.length <= 200 && !/\p{Cc}/u.test(text) && text.isWellFormed()
