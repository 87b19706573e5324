// Exchanges with the server: uploads what waits, then reads what changed. A scan leaves the disk when the server has answered for it.

import {
  type CheckIn,
  type DoorList,
  getDoorList,
  getRights,
  KeyRefused,
  listConflicts,
  OutOfTime,
  Refused,
  Unreachable,
  undo,
  upload,
} from './api.ts'
import type { DoorLink } from './link.ts'
import { TicketList } from './list.ts'
import { asTicketCode, type Ticket } from './offline-rules.ts'
import type { Session } from './session.ts'
import type { WaitingScan } from './store.ts'

const batchSize = 500
const refreshMilliseconds = 10_000
const longestPauseMilliseconds = 60_000

/** By what a ticket is known: a code stands alone while the list has no such ticket. */
const namesOf = ({ attendee_id, code }: WaitingScan): string[] =>
  [attendee_id, code && asTicketCode(code)].filter((name) => typeof name === 'string')

/** Whether a scan is of the ticket of one of these. */
export const isOfSame = (scans: readonly WaitingScan[]): ((scan: WaitingScan) => boolean) => {
  const names = new Set(scans.flatMap(namesOf))
  return (scan) => namesOf(scan).some((name) => names.has(name))
}

const isToUndo = (scan: WaitingScan): boolean => scan.undo && scan.check_in_id !== null

/** Now, and again later, or sooner when called. */
export async function sync(session: Session): Promise<void> {
  clearTimeout(session.timer)
  while (session.syncing !== null) await session.syncing
  const { link } = session
  if (link === null || session.stopped !== null || session.endWhenExpired()) return
  session.syncing = syncWith(session, link).finally(() => {
    session.syncing = null
  })
  await session.syncing
  clearTimeout(session.timer)
  const { failures } = session
  const pause = failures === 0 ? refreshMilliseconds : Math.min(500 * 2 ** failures, longestPauseMilliseconds)
  session.timer = setTimeout(() => void sync(session), pause)
}

/** The network is back: at once, and soon again should it not be there yet. */
export function retry(session: Session): Promise<void> {
  session.failures = 0
  return sync(session)
}

/** @throws when another link was opened meanwhile, of which the answer says nothing. */
async function answerFor<T>(session: Session, link: DoorLink, answer: Promise<T>): Promise<T> {
  const data = await answer
  if (session.link !== link) throw new Error('another link was opened')
  return data
}

async function syncWith(session: Session, link: DoorLink): Promise<void> {
  try {
    // A long queue does not keep the door shut.
    if (session.door === null) {
      await readRights(session, link)
      await refresh(session, link)
      session.changed()
    }
    await emptyQueue(session, link)
    // Before the list, which is not to be kept for longer than the key is good.
    await readRights(session, link)
    await refresh(session, link)
    session.conflicts = await answerFor(session, link, listConflicts(link))
    session.online = true
    session.failures = 0
  } catch (error) {
    if (session.link !== link) return
    session.failures++
    note(session, error)
  }
  session.count()
  session.changed()
}

/** What the server's refusal, or silence, means for the page. */
export function note(session: Session, error: unknown): void {
  // Another tab has the queue.
  if (session.stopped !== null) return
  if (error instanceof Unreachable) session.online = false
  else if (error instanceof KeyRefused) session.endKey()
  else if (error instanceof Refused) {
    session.stopped = error.code === 'not_found' ? 'eventGone' : { message: error.message }
  } else reportError(error)
}

async function readRights(session: Session, link: DoorLink): Promise<void> {
  if (session.hasReadRights) return
  const { scopes, expires_at } = await answerFor(session, link, getRights(link))
  session.known = { ...session.known, scopes, expires_at }
  session.hasReadRights = true
  void session.keepList([], false)
}

/** An upload may leave something to undo. What cannot be undone holds up the scans of its ticket alone. */
async function emptyQueue(session: Session, link: DoorLink): Promise<void> {
  let failure: unknown
  do {
    await undoAll(session, link, session.waiting).catch((error) => {
      failure = error
    })
    await uploadAll(session, link)
  } while (failure === undefined && session.link === link && session.waiting.some(isToUndo))
  if (failure !== undefined) throw failure
}

export async function undoAll(
  session: Session,
  link: DoorLink,
  scans: readonly WaitingScan[],
  until?: number,
): Promise<void> {
  for (const scan of scans.filter(isToUndo)) {
    if (session.link !== link) return
    try {
      await undo(link, scan.check_in_id as string, until && Math.max(1, until - performance.now()))
    } catch (error) {
      // Undone before, or never accepted: nothing is left to do.
      if (!(error instanceof Refused)) throw error
    }
    // Not waited for: a list may be being written.
    void session.drop([scan.scan_id])
  }
}

async function uploadAll(session: Session, link: DoorLink): Promise<void> {
  let size = batchSize
  // What waits is that of the link of now.
  while (session.link === link) {
    const batch = nextBatch(session, size)
    const [first] = batch
    if (first === undefined) return
    await session.put(batch.filter(({ sent }) => !sent).map((scan) => ({ ...scan, sent: true })))
    if (session.link !== link) return
    try {
      // What the server had no time for is in the next batch.
      await settle(session, await upload(link, batch))
      session.online = true
      size = Math.min(batchSize, size * 2)
    } catch (error) {
      if (session.link !== link) return
      const isOfOne = batch.length === 1
      const isRefused = error instanceof Refused && error.status !== 404
      if (!isRefused && (isOfOne || !(error instanceof OutOfTime))) throw error
      // One scan that the API refuses must not hold up the others: it is found by halves, and set aside.
      if (isRefused && isOfOne) await session.put([{ ...first, refused: error.message }])
      size = Math.max(1, Math.floor(batch.length / 2))
    } finally {
      session.changed()
    }
  }
}

/** The earliest scans. The server learns of what was taken back first, and of the next scan of that ticket then. */
function nextBatch({ waiting, live }: Session, size: number): WaitingScan[] {
  const isHeld = isOfSame(waiting.filter(({ undo }) => undo))
  return waiting
    .filter((scan) => scan.check_in_id === null && !live.has(scan.scan_id))
    .filter((scan) => scan.undo || !isHeld(scan))
    .toSorted((a, b) => a.scanned_at.localeCompare(b.scanned_at))
    .slice(0, size)
}

/** The server has answered for these scans, by id. Each is as it is now: it may have been undone meanwhile. */
export async function settle(session: Session, answers: ReadonlyMap<string, CheckIn>): Promise<void> {
  const toPut: WaitingScan[] = []
  const done: string[] = []
  for (const [scanId, checkIn] of answers) {
    const scan = session.scans.get(scanId) as WaitingScan
    const { id: check_in_id, scanned_at } = checkIn
    const attendeeId = checkIn.attendee?.id
    const isAccepted = checkIn.result === 'accepted'
    // The server's time, which is not after its own now: by it the entry is found in what is answered later.
    const known = { ...scan, check_in_id, scanned_at }
    if (session.last?.scan.scan_id === scanId) session.last = { ...session.last, scan: known }
    // An answer may come after the list decided: the server's first verdict stands, and the person was told another one.
    if (isAccepted && scan.admitted === false) toPut.push({ ...scan, undo: true, check_in_id })
    else done.push(scanId)
    if (!isAccepted && scan.admitted === true && checkIn.admitted !== true) {
      toPut.push({ ...scan, scan_id: `${scanId}-admitted`, sent: false })
    }
    if (isAccepted && scan.admitted !== false && attendeeId !== undefined && session.door !== null) {
      session.list.admit(session.door, attendeeId, known)
      session.sinceAsked.set(scanId, { attendeeId, scan: known, isUndone: false })
      session.keepTicket(attendeeId)
    }
  }
  await session.put(toPut)
  // The verdict need not wait for a list that is being written.
  void session.drop(done)
}

async function refresh(session: Session, link: DoorLink): Promise<void> {
  session.sinceAsked.clear()
  let { cursor } = session.known
  let tickets: Ticket[] = []
  while (true) {
    const sent = Date.now()
    const page = await answerFor(session, link, getDoorList(link, cursor))
    session.known = { ...session.known, clock: Date.parse(page.server_time) - (sent + Date.now()) / 2 }
    tickets.push(...page.tickets)
    cursor = page.next_cursor
    if (page.has_more) continue
    apply(session, page, tickets)
    // Somebody was erased: only the whole list says who.
    if (page.complete || session.list.size <= page.tickets_total) return
    cursor = null
    tickets = []
  }
}

/** At once when all pages are there: a list in parts would turn people away. */
function apply(session: Session, page: DoorList, tickets: readonly Ticket[]): void {
  if (page.complete) session.list = new TicketList()
  const { list } = session
  list.put(tickets)
  const door = { event: page.event, points: page.points }
  // The list may be of before.
  for (const { attendeeId, scan, isUndone } of session.sinceAsked.values()) {
    if (isUndone) list.release(attendeeId, scan)
    else list.admit(door, attendeeId, scan)
  }
  for (const scan of session.waiting) if (scan.undo && scan.attendee_id !== null) list.release(scan.attendee_id, scan)
  session.known = {
    ...session.known,
    door,
    salt: page.salt,
    cursor: page.next_cursor,
    list_at: page.server_time,
    colour: page.event.accent_colour,
    ticket_types: page.ticket_types.map(({ id, name }) => [id, name]),
  }
  void session.keepList(tickets, page.complete)
}
