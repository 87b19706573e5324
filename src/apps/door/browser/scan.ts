// A scan, from the code or name to the answer: the server decides while it answers in time, otherwise the list. Every scan is on the disk
// before its answer is shown. Also takes scans back.

import { type CheckIn, upload } from './api.ts'
import type { DoorLink } from './link.ts'
import { acceptedOf, isOf } from './list.ts'
import { canBeCode, latestOf, type Ticket, type Verdict, whyUnknown } from './offline-rules.ts'
import type { Session } from './session.ts'
import type { WaitingScan } from './store.ts'
import { isOfSame, note, settle, sync, undoAll } from './sync.ts'
import type { Shown } from './tones.ts'
import type { Verdicts } from './words/en.ts'

/** A live scan waits so long for the server's verdict before the list decides. */
const liveMilliseconds = 2_000
const logLength = 30
/** A clock that differs by more is mentioned. */
export const clockTolerance = 60_000

/** @param what the text of a code, or whom staff have found. @returns whether it was judged. */
export async function scan(session: Session, what: string | Ticket): Promise<boolean> {
  if (!session.isReady || session.endWhenExpired()) return false
  session.deciding = true
  try {
    if (typeof what !== 'string') await scanTicket(session, null, what)
    else if (canBeCode(what)) await scanTicket(session, what, await session.list.find(what, session.known.salt))
    else show(session, { reason: 'not_found', since: null }, undefined)
  } finally {
    session.deciding = false
    session.changed()
  }
  return true
}

async function scanTicket(session: Session, code: string | null, ticket: Ticket | undefined): Promise<void> {
  const { link } = session
  if (session.door === null || link === null) return
  session.changed()
  const scan: WaitingScan = {
    ...{ scan_id: crypto.randomUUID(), event_id: link.event_id, ...session.here, scanned_at: scanTime(session) },
    attendee_id: ticket?.attendee_id ?? null,
    code: ticket === undefined ? code : null,
    name: ticket?.name ?? null,
    device: session.settings?.device ?? null,
    ...{ admitted: null, sent: false, undo: false, check_in_id: null, refused: null },
  }
  const byList = session.judge(ticket, scan)
  session.live.add(scan.scan_id)
  try {
    const checkIn = session.isOnline ? await ask(session, link, scan) : undefined
    if (checkIn !== undefined) return showAnswer(session, scan, checkIn)
    // Nobody is let in by a list that is forgotten.
    if (session.stopped === 'keyRefused') return void session.drop([scan.scan_id])
    await decideByList(session, scan, ticket, byList)
  } finally {
    session.live.delete(scan.scan_id)
  }
}

/** The clock is estimated with each list: by its noise, a later scan would be the earlier one. */
function scanTime(session: Session): string {
  const now = Math.floor(session.now)
  const isNoise = now <= session.scannedAt && now > session.scannedAt - clockTolerance
  session.scannedAt = isNoise ? session.scannedAt + 1 : now
  return new Date(session.scannedAt).toISOString()
}

/** @returns undefined when the server gave no verdict in time. */
async function ask(session: Session, link: DoorLink, scan: WaitingScan): Promise<CheckIn | undefined> {
  scan.sent = true
  await session.put([scan])
  const until = performance.now() + liveMilliseconds
  const isSame = isOfSame([scan])
  const takenBack = () => session.waiting.filter((other) => other.undo && isSame(other))
  try {
    // Until the server knows of these, it refuses whoever comes in again.
    await undoAll(session, link, takenBack(), until)
    if (takenBack().length > 0 || performance.now() >= until) return undefined
    const answers = await upload(link, [scan], until - performance.now())
    await settle(session, answers)
    return answers.get(scan.scan_id)
  } catch (error) {
    if (session.link === link) note(session, error)
    return undefined
  }
}

/** A scan that is not on the disk does not count. */
async function decideByList(session: Session, scan: WaitingScan, ticket: Ticket | undefined, byList: Verdict) {
  scan.admitted = byList.reason === null
  const isKept = await session.put([scan])
  if (!isKept) session.scans.delete(scan.scan_id)
  else if (scan.admitted && ticket !== undefined) {
    session.last = { scan, attendeeId: ticket.attendee_id, name: ticket.name }
  }
  session.count()
  show(session, isKept ? explained(session, scan, byList) : { reason: 'not_kept', since: null }, ticket)
}

function showAnswer(session: Session, scan: WaitingScan, checkIn: CheckIn): void {
  const { id: check_in_id, scanned_at, reason, earlier, attendee } = checkIn
  if (reason === null && attendee !== null) {
    session.last = { scan: { ...scan, check_in_id, scanned_at }, attendeeId: attendee.id, name: attendee.name }
  }
  session.count()
  const since = reason === 'already_checked_in' ? (earlier?.scanned_at ?? attendee?.checked_in_at ?? null) : null
  show(session, explained(session, scan, { reason, since }), session.list.of(attendee?.id ?? null), checkIn)
}

/** An unknown code may say why. */
const explained = ({ door }: Session, { code }: WaitingScan, { reason, since }: Verdict): Said => ({
  reason: reason === 'not_found' && door !== null && code !== null ? whyUnknown(door, code) : reason,
  since,
})

type Said = { reason: keyof Verdicts | null; since: string | null }

/** @param checkIn of the server; without it the list has decided. */
function show(session: Session, { reason, since }: Said, ticket: Ticket | undefined, checkIn?: CheckIn): void {
  const { attendee = null, earlier = null } = checkIn ?? {}
  const { check_in_point_id, direction } = session.here
  const entry = session
    .entriesOf(ticket)
    .filter((each) => since === null || Date.parse(each.scanned_at) === Date.parse(since))
    .findLast((each) => each.check_in_point_id === check_in_point_id)
  const own = session.waitingOf(ticket).find(({ scanned_at }) => scanned_at === since)
  const shown: Shown = {
    ticket,
    reason: reason ?? (direction === 'entry' ? 'welcome' : 'goodbye'),
    name: attendee?.name ?? ticket?.name ?? null,
    company: attendee?.company ?? ticket?.company ?? null,
    type: attendee?.ticket_type.name ?? session.typeOf(ticket) ?? null,
    answers: attendee?.answers ?? ticket?.answers ?? {},
    since,
    where: earlier?.device ?? own?.device ?? null,
    leftAt: reason === 'not_inside' || reason === 'already_checked_in' ? (entry?.exited_at ?? null) : null,
    offline: checkIn === undefined,
  }
  session.shown = shown
  session.shownAt = performance.now()
  session.isLastLatest = reason === null
  session.takenBack = null
  session.log = [{ at: new Date().toISOString(), reason: shown.reason, name: shown.name }, ...session.log]
  session.log.length = Math.min(session.log.length, logLength)
  session.changed()
}

/** The check-in of a ticket that can be taken back: the last one of this device, or the latest entry, whichever device made it. */
export function undoable(session: Session, ticket: Ticket): WaitingScan | null {
  const { attendee_id, name } = ticket
  const { last, link } = session
  const entries = session.entriesOf(ticket)
  // It may have been taken back elsewhere.
  if (last?.attendeeId === attendee_id && entries.some((each) => isOf(each, last.scan))) return last.scan
  const entry = latestOf(entries)
  if (entry === undefined || link === null) return null
  const { check_in_point_id, scanned_at, check_in_id = null } = entry
  const own = acceptedOf(session.waitingOf(ticket)).find((scan) => scan.scanned_at === scanned_at)
  // A list that an older page kept does not say.
  if (own !== undefined || check_in_id === null) return own ?? null
  return {
    ...{ scan_id: check_in_id, event_id: link.event_id, check_in_point_id, direction: 'entry', scanned_at },
    ...{ attendee_id, code: null, name, device: session.settings?.device ?? null },
    ...{ admitted: false, sent: true, undo: true, check_in_id, refused: null },
  }
}

export async function undoLast(session: Session): Promise<void> {
  const { last } = session
  if (last !== null) await takeBack(session, last.scan, last.attendeeId, last.name)
}

/** What the server may know of is undone there, at once or later. */
export async function takeBack(
  session: Session,
  scan: WaitingScan,
  attendeeId: string,
  name: string | null,
): Promise<void> {
  if (session.last?.scan.scan_id === scan.scan_id) session.last = null
  session.shown = null
  session.takenBack = name
  session.list.release(attendeeId, scan)
  session.sinceAsked.set(scan.scan_id, { attendeeId, scan, isUndone: true })
  const known = session.scans.get(scan.scan_id)
  if (known !== undefined && !known.sent) await session.drop([scan.scan_id])
  else await session.put([{ ...scan, ...known, attendee_id: attendeeId, undo: true, admitted: false }])
  session.keepTicket(attendeeId)
  session.count()
  session.changed()
  await sync(session)
}
