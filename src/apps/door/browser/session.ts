// The door as this device has it: link, list, queue, clock. Every scan is on the disk before its verdict is shown; a scan leaves
// the disk when the server has answered for it. Draws nothing: `changed` is called when there is something to draw.

import {
  type CheckIn,
  type Conflict,
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
import { acceptedOf, isOf, TicketList } from './list.ts'
import {
  asTicketCode,
  canBeCode,
  type Direction,
  type Door,
  type Entry,
  latestOf,
  type Point,
  type Reason,
  type Ticket,
  type Verdict,
} from './offline-rules.ts'
import {
  dropScans,
  forgetList,
  getKept,
  getSettings,
  getWalkIn,
  isExpired,
  type Kept,
  type KeptWalkIn,
  keepList,
  keepScans,
  keepSettings,
  keepTicket,
  keepWalkIn,
  listForm,
  openScanStore,
  openStore,
  type ScanStore,
  type Settings,
  type Store,
  type WaitingScan,
  wipe,
} from './store.ts'

/** A live scan waits so long for the server's verdict before the list decides. */
const liveMilliseconds = 2_000
const batchSize = 500
const refreshMilliseconds = 10_000
const longestPauseMilliseconds = 60_000
const logLength = 30
/** An event that starts later is probably not the one at whose door people stand; whoever sets up in the evening before is told as well. */
const earlyMilliseconds = 12 * 3_600_000
/** An acceptance stays so long before another code may take its place; a refusal stays until it is put away. */
const acceptanceMilliseconds = 1_000
/** A clock that differs by more is mentioned. */
export const clockTolerance = 60_000

export type Shown = {
  ticket: Ticket | undefined
  reason: Reason | 'welcome' | 'goodbye' | 'not_kept'
  name: string | null
  company: string | null
  type: string | null
  since: string | null
  /** The device at which the ticket was used. */
  where: string | null
  /** When the person went out, who is not inside, or may not come in again. */
  leftAt: string | null
  /** Decided by the list, not by the server. */
  offline: boolean
}
/** What the list and the page know of a ticket that stands before the door. */
type Candidate = { code: string | null; ticket: Ticket | undefined }
/** Words of the page, or those of the API. */
export type Stopped = 'keyRefused' | 'eventGone' | 'otherTab' | { message: string }
export type Logged = Pick<Shown, 'reason' | 'name'> & { at: string }
type Last = { scan: WaitingScan; attendeeId: string; name: string | null }

/** Until staff give it a name. */
const someDevice = () => `door page ${crypto.randomUUID().slice(0, 4)}`

/** By what a ticket is known: a code stands alone while the list has no such ticket. */
const namesOf = ({ attendee_id, code }: WaitingScan): string[] =>
  [attendee_id, code && asTicketCode(code)].filter((name) => typeof name === 'string')

/** Whether a scan is of the ticket of one of these. */
const isOfSame = (scans: readonly WaitingScan[]): ((scan: WaitingScan) => boolean) => {
  const names = new Set(scans.flatMap(namesOf))
  return (scan) => namesOf(scan).some((name) => names.has(name))
}

/** What was sent must not happen twice. */
const isSent = (walkIn: KeptWalkIn | null): boolean =>
  walkIn !== null && (walkIn.step !== null || walkIn.order !== null || walkIn.guest !== null)

const isToUndo = (scan: WaitingScan): boolean => scan.undo && scan.check_in_id !== null

/** One line, as the API takes it. */
const asDevice = (text: string): string =>
  text
    .replace(/[\s\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
    .slice(0, 60)
    .toWellFormed()

export class Session {
  link: DoorLink | null = null
  /** Null until staff were asked, once. */
  settings: Settings | null = null
  /** Whether key and list are on the disk. */
  saved: 'no' | 'saving' | 'saved' | 'failed' = 'no'
  door: Door | null = null
  ticketTypes = new Map<string, string>()
  /** What the key may do; null until the server said so. */
  scopes: string[] | null = null
  /** When the key ends; null until the server said so, or where it does not. */
  expiresAt: string | null = null
  /** The organisation's. */
  colour: string | null = null
  list = new TicketList()
  listAt: string | null = null
  pointId: string | null = null
  direction: Direction = 'entry'
  /** The chosen point is no more, or archived: nobody may be let in elsewhere instead without a word. */
  pointLost = false
  /** Whether staff, or the link, said where this device is. */
  hasChosen = false
  /** A scan has no verdict yet. */
  deciding = false
  online = true
  loading = false
  /** Why it works no longer. */
  stopped: Stopped | null = null
  shown: Shown | null = null
  last: Last | null = null
  /** Whether the last answer is that of `last`. Otherwise somebody else stands here now, who must not be thought to be taken back. */
  isLastLatest = false
  /** Whom staff took back since the last answer. */
  takenBack: string | null = null
  /** The last verdicts, the newest first. */
  log: Logged[] = []
  conflicts: Conflict[] = []
  /** Milliseconds that the server is ahead of this device. */
  clock = 0
  storageFull = false
  /** Somebody without a ticket, who is not in yet. */
  walkIn: KeptWalkIn | null = null
  counts = { arrived: 0, expected: 0 }
  readonly changed: () => void

  #store: Store
  #scanStore: ScanStore
  #salt = ''
  #cursor: string | null = null
  #scans = new Map<string, WaitingScan>()
  #live = new Set<string>()
  #syncing: Promise<void> | null = null
  #timer: ReturnType<typeof setTimeout> | undefined
  #failures = 0
  #scannedAt = 0
  /** What the server accepted, or staff took back, since the list was last asked for. */
  readonly #sinceAsked = new Map<string, { attendeeId: string; scan: WaitingScan; isUndone: boolean }>()
  #shownAt = 0
  /** The list is written by one at a time, in the order of its changes. */
  #keeping: Promise<void> = Promise.resolve()
  #isListKept = false
  /** Of this key, since the page was opened: an organiser may have given it others. */
  #hasReadRights = false

  private constructor(store: Store, scanStore: ScanStore, changed: () => void) {
    this.#store = store
    this.#scanStore = scanStore
    this.changed = changed
  }

  /** With what this device kept; `link` is the one that the page was opened with. */
  static async open(link: DoorLink | null, changed: () => void): Promise<Session> {
    const session = new Session(await openStore(), await openScanStore(), changed)
    for (const scan of await session.#scanStore.getAll('scans')) session.#scans.set(scan.scan_id, scan)
    const kept = await getKept(session.#store)
    session.settings = (await getSettings(session.#store)) ?? null
    const walkIn = await getWalkIn(session.#store)
    if (walkIn !== undefined) await session.keepWalkIn(isExpired(walkIn) ? null : walkIn)
    if (kept !== undefined && (link === null || link.event_id === kept.link.event_id)) await session.#restore(kept)
    else await forgetList(session.#store)
    if (link !== null && link.key !== session.link?.key) session.scopes = session.expiresAt = null
    session.link = link ?? session.link
    session.#returnToPlace()
    return session
  }

  async #restore(kept: Kept): Promise<void> {
    this.settings ??= { device: someDevice(), keep: true, place: null }
    this.link = kept.link
    this.door = kept.door
    this.#salt = kept.salt
    this.#cursor = kept.form === listForm ? kept.cursor : null
    this.listAt = kept.list_at
    this.clock = kept.clock
    this.colour = kept.colour ?? null
    this.scopes = kept.scopes ?? null
    this.expiresAt = kept.expires_at ?? null
    this.ticketTypes = new Map(kept.ticket_types)
    this.list.put(await this.#store.getAll('tickets'))
    this.#isListKept = kept.door !== null
    this.saved = this.#isListKept ? 'saved' : 'no'
  }

  /** Where this device was at this event, before the page was closed. */
  #returnToPlace(): void {
    const place = this.settings?.place
    const isHere = place?.event_id === this.link?.event_id
    const pointId = isHere ? place?.check_in_point_id : undefined
    this.hasChosen = pointId !== undefined
    this.pointId = pointId ?? null
    this.direction = (isHere && place?.direction) || 'entry'
    this.pointLost = false
    this.#losePoint()
    this.#count()
  }

  /** Opens a door: that of the event of the link; with a new key it may be the same. */
  use(link: DoorLink): void {
    if (this.door !== null && this.door.event.id !== link.event_id) {
      this.door = null
      this.list = new TicketList()
      this.#cursor = null
      this.#isListKept = false
      this.saved = 'no'
      this.last = null
      this.conflicts = []
    }
    const isOther = this.link?.event_id !== link.event_id
    if (this.link?.key !== link.key) this.scopes = this.expiresAt = null
    this.#hasReadRights = false
    const { point_id, ...itself } = link
    this.link = itself
    if (isOther) this.#returnToPlace()
    // Only when it is opened: what staff choose afterwards stands.
    if (point_id !== undefined) this.choose(point_id, this.direction)
    this.#losePoint()
    this.stopped = null
    this.loading = this.door === null
    if (this.#endWhenExpired()) return
    void this.#keep([], false)
    this.changed()
    void this.sync()
  }

  get isOnline(): boolean {
    return this.online && navigator.onLine
  }

  get keep(): boolean {
    return this.settings?.keep === true
  }

  /** What staff say of this device: asked for once. What is in memory is written at once. */
  async setUp(device: string, keep: boolean): Promise<void> {
    const name = asDevice(device) || (this.settings?.device ?? someDevice())
    this.settings = { place: null, ...this.settings, device: name, keep }
    if (this.hasChosen && !this.pointLost)
      this.#keepPlace({ check_in_point_id: this.pointId, direction: this.direction })
    this.changed()
    await this.#keepSettings()
    if (keep) {
      void navigator.storage?.persist?.()
      await this.#keep([], false)
    } else {
      this.#keeping = this.#keeping.then(() => forgetList(this.#store)).catch(reportError)
      this.#isListKept = false
      this.saved = 'no'
      await this.keepWalkIn(this.walkIn)
    }
    this.changed()
  }

  async #keepSettings(): Promise<void> {
    if (this.settings === null) return
    await keepSettings(this.#store, this.settings).catch(() => {
      this.storageFull = true
    })
  }

  choose(pointId: string | null, direction: Direction): void {
    this.pointId = pointId
    this.direction = direction
    this.pointLost = false
    this.hasChosen = true
    this.#keepPlace({ check_in_point_id: pointId, direction })
    this.#count()
    this.changed()
  }

  /** A point that is lost is still to be chosen anew, also after a reload. */
  turn(direction: Direction): void {
    this.direction = direction
    this.#keepPlace({ direction })
    this.changed()
  }

  #keepPlace(place: { check_in_point_id?: string | null; direction: Direction }): void {
    if (this.settings === null || this.link === null) return
    const former = this.settings.place
    const { event_id } = this.link
    const check_in_point_id = former?.event_id === event_id ? former.check_in_point_id : undefined
    this.settings.place = { event_id, check_in_point_id, ...place }
    void this.#keepSettings()
  }

  /** Two gates let a ticket in twice if one of them was left at the whole event by default: where there are points, one is chosen first. */
  get mustChoose(): boolean {
    return this.pointLost || (!this.hasChosen && this.door?.points.some(({ status }) => status === 'active') === true)
  }

  #losePoint(): void {
    if (this.door === null || this.pointId === null) return
    if (this.door.points.some(({ id, status }) => id === this.pointId && status === 'active')) return
    this.pointId = null
    this.pointLost = true
  }

  /** Conflicts that staff have not put aside on this device. */
  get openConflicts(): Conflict[] {
    const aside = new Set(this.settings?.put_aside)
    return this.conflicts.filter(({ id }) => !aside.has(id))
  }

  putAside(conflictId: string): void {
    if (this.settings === null) return
    const known = new Set(this.conflicts.map(({ id }) => id))
    this.settings.put_aside = [...(this.settings.put_aside ?? []).filter((id) => known.has(id)), conflictId]
    void this.#keepSettings()
    this.changed()
  }

  /** Where the list is not kept, a form of which nothing was sent is not either; what was sent must not happen twice. */
  async keepWalkIn(walkIn: KeptWalkIn | null): Promise<void> {
    this.walkIn = walkIn
    await keepWalkIn(this.#store, this.keep || isSent(walkIn) ? walkIn : null).catch(() => {
      this.storageFull = true
    })
  }

  get waiting(): WaitingScan[] {
    return [...this.#scans.values()].filter(
      ({ event_id, refused }) => event_id === this.link?.event_id && refused === null,
    )
  }
  get refusedScans(): WaitingScan[] {
    return [...this.#scans.values()].filter(({ refused }) => refused !== null)
  }
  get waitingElsewhere(): number {
    return [...this.#scans.values()].filter(({ event_id }) => event_id !== this.link?.event_id).length
  }

  /** When the event starts, if that is not soon. Nobody is refused for it: see check_in_early. */
  get startsOnly(): string | null {
    const startsAt = this.door?.event.starts_at ?? null
    return startsAt !== null && Date.parse(startsAt) - (Date.now() + this.clock) > earlyMilliseconds ? startsAt : null
  }

  get point(): Point | undefined {
    return this.door?.points.find(({ id }) => id === this.pointId)
  }

  /** Whether another code may be judged now. */
  get isReady(): boolean {
    if (this.door === null || this.stopped !== null || this.pointLost || this.deciding) return false
    const { shown } = this
    const isAcceptance = shown?.reason === 'welcome' || shown?.reason === 'goodbye'
    return shown === null || (isAcceptance && performance.now() - this.#shownAt >= acceptanceMilliseconds)
  }

  /** @returns whether the code was judged. */
  async scanCode(text: string): Promise<boolean> {
    if (!this.isReady || this.#endWhenExpired()) return false
    this.deciding = true
    try {
      if (!canBeCode(text)) this.#show({ reason: 'not_found', since: null }, undefined, true)
      else await this.#scan({ code: text, ticket: await this.list.find(text, this.#salt) })
    } finally {
      this.deciding = false
      this.changed()
    }
    return true
  }

  async scanTicket(ticket: Ticket): Promise<boolean> {
    if (!this.isReady || this.#endWhenExpired()) return false
    this.deciding = true
    try {
      await this.#scan({ code: null, ticket })
    } finally {
      this.deciding = false
      this.changed()
    }
    return true
  }

  async #scan({ code, ticket }: Candidate): Promise<void> {
    const { door, link, settings } = this
    if (door === null || link === null) return
    this.changed()
    const scan: WaitingScan = {
      scan_id: crypto.randomUUID(),
      event_id: link.event_id,
      check_in_point_id: this.pointId,
      direction: this.direction,
      scanned_at: this.#scanTime(),
      attendee_id: ticket?.attendee_id ?? null,
      code: ticket === undefined ? code : null,
      name: ticket?.name ?? null,
      device: settings?.device ?? null,
      admitted: null,
      sent: false,
      undo: false,
      check_in_id: null,
      refused: null,
    }
    const byList = this.list.judge(door, ticket, scan, this.#waitingOf(scan.attendee_id))
    const isKept = this.isOnline ? await this.#decideLive(link, scan, byList) : await this.#decide(scan, byList)
    if (isKept === 'answered') return
    if (isKept && byList.reason === null && ticket !== undefined) {
      this.last = { scan, attendeeId: ticket.attendee_id, name: ticket.name }
    }
    this.#count()
    this.#show(isKept ? byList : { reason: 'not_kept', since: null }, ticket, true)
  }

  /** The clock is estimated with each list: by its noise, a later scan would be the earlier one. */
  #scanTime(): string {
    const now = Math.floor(Date.now() + this.clock)
    const isNoise = now <= this.#scannedAt && now > this.#scannedAt - clockTolerance
    this.#scannedAt = isNoise ? this.#scannedAt + 1 : now
    return new Date(this.#scannedAt).toISOString()
  }

  /** The list decides. @returns whether the scan is on the disk; it does not count otherwise. */
  async #decide(scan: WaitingScan, byList: Verdict): Promise<boolean> {
    scan.admitted = byList.reason === null
    const isKept = await this.#put([scan])
    if (!isKept) this.#scans.delete(scan.scan_id)
    return isKept
  }

  /** The server decides, or the list when it does not answer. */
  async #decideLive(link: DoorLink, scan: WaitingScan, byList: Verdict): Promise<boolean | 'answered'> {
    this.#live.add(scan.scan_id)
    try {
      scan.sent = true
      await this.#put([scan])
      const checkIn = await this.#ask(link, scan)
      if (checkIn !== null) {
        await this.#settle([[scan, checkIn]])
        this.#showAnswer(scan, checkIn)
        return 'answered'
      }
      // Nobody is let in by a list that is forgotten.
      if (this.stopped === 'keyRefused') {
        void this.#drop([scan.scan_id])
        return 'answered'
      }
      return await this.#decide(scan, byList)
    } finally {
      this.#live.delete(scan.scan_id)
    }
  }

  /** @returns null when the server gave no verdict in time. */
  async #ask(link: DoorLink, scan: WaitingScan): Promise<CheckIn | null> {
    const until = performance.now() + liveMilliseconds
    try {
      const isSame = isOfSame([scan])
      const takenBack = () => this.waiting.filter((other) => other.undo && isSame(other))
      // Until the server knows of these, it refuses whoever comes in again.
      await this.#undoAll(link, takenBack(), until)
      if (takenBack().length > 0 || performance.now() >= until) return null
      return (await upload(link, [scan], until - performance.now())).get(scan.scan_id) ?? null
    } catch (error) {
      if (this.link === link) this.#note(error)
      return null
    }
  }

  #showAnswer(scan: WaitingScan, checkIn: CheckIn): void {
    const { reason, earlier, attendee } = checkIn
    if (reason === null && attendee !== null) {
      const known = { ...scan, check_in_id: checkIn.id, scanned_at: checkIn.scanned_at }
      this.last = { scan: known, attendeeId: attendee.id, name: attendee.name }
    }
    this.#count()
    const since = reason === 'already_checked_in' ? (earlier?.scanned_at ?? attendee?.checked_in_at ?? null) : null
    this.#show({ reason, since }, this.list.of(attendee?.id ?? null), false, checkIn)
  }

  /** The server has answered for these scans. */
  async #settle(answered: readonly (readonly [WaitingScan, CheckIn])[]): Promise<void> {
    const toPut: WaitingScan[] = []
    const done: string[] = []
    for (const [scan, checkIn] of answered) {
      const attendeeId = checkIn.attendee?.id
      const isAccepted = checkIn.result === 'accepted'
      // The server's time, which is not after its own now: by it the entry is found in what is answered later.
      const known = { ...scan, check_in_id: checkIn.id, scanned_at: checkIn.scanned_at }
      if (this.last?.scan.scan_id === scan.scan_id) this.last = { ...this.last, scan: known }
      // An answer may come after the list decided: the server's first verdict stands, and the person was told another one.
      if (isAccepted && scan.admitted === false) toPut.push({ ...scan, undo: true, check_in_id: checkIn.id })
      else done.push(scan.scan_id)
      if (!isAccepted && scan.admitted === true && checkIn.admitted !== true) {
        toPut.push({ ...scan, scan_id: `${scan.scan_id}-admitted`, sent: false })
      }
      if (isAccepted && scan.admitted !== false && attendeeId !== undefined && this.door !== null) {
        this.list.admit(this.door, attendeeId, known)
        this.#sinceAsked.set(scan.scan_id, { attendeeId, scan: known, isUndone: false })
        this.#keepTicket(attendeeId)
      }
    }
    await this.#put(toPut)
    // The verdict need not wait for a list that is being written.
    void this.#drop(done)
  }

  #show(
    verdict: Verdict | { reason: 'not_kept'; since: null },
    ticket: Ticket | undefined,
    offline: boolean,
    checkIn?: CheckIn,
  ) {
    const attendee = checkIn?.attendee ?? null
    const { since } = verdict
    const isOwn = (scan: WaitingScan) => scan.scanned_at === since
    const isSince = (entry: Entry) => since === null || Date.parse(entry.scanned_at) === Date.parse(since)
    const entry = (ticket === undefined ? [] : this.entriesOf(ticket)).findLast(
      (each) => each.check_in_point_id === this.pointId && isSince(each),
    )
    this.shown = {
      ticket,
      reason: verdict.reason ?? (this.direction === 'entry' ? 'welcome' : 'goodbye'),
      name: attendee?.name ?? ticket?.name ?? null,
      company: attendee?.company ?? ticket?.company ?? null,
      type: attendee?.ticket_type.name ?? this.ticketTypes.get(ticket?.ticket_type_id ?? '') ?? null,
      since,
      where: checkIn?.earlier?.device ?? this.#waitingOf(ticket?.attendee_id ?? null).find(isOwn)?.device ?? null,
      leftAt:
        verdict.reason === 'not_inside' || verdict.reason === 'already_checked_in' ? (entry?.exited_at ?? null) : null,
      offline,
    }
    this.isLastLatest = verdict.reason === null
    this.takenBack = null
    this.#shownAt = performance.now()
    this.log.unshift({ at: new Date().toISOString(), reason: this.shown.reason, name: this.shown.name })
    this.log.length = Math.min(this.log.length, logLength)
    this.changed()
  }

  dismiss(): void {
    this.shown = null
    this.changed()
  }

  /** The check-in of a ticket that can be taken back: the last one of this device, or the latest entry, whichever device made it. */
  undoable(ticket: Ticket): WaitingScan | null {
    const { attendee_id, name } = ticket
    const entries = this.entriesOf(ticket)
    // It may have been taken back elsewhere.
    const { last } = this
    if (last?.attendeeId === attendee_id && entries.some((each) => isOf(each, last.scan))) return last.scan
    const entry = latestOf(entries)
    if (entry === undefined || this.link === null) return null
    const { check_in_point_id, scanned_at, check_in_id = null } = entry
    const own = acceptedOf(this.#waitingOf(attendee_id)).find((scan) => scan.scanned_at === scanned_at)
    // A list that an older page kept does not say.
    if (own !== undefined || check_in_id === null) return own ?? null
    return {
      scan_id: check_in_id,
      event_id: this.link.event_id,
      ...{ check_in_point_id, direction: 'entry', scanned_at, attendee_id, code: null, name },
      ...{ device: this.settings?.device ?? null, admitted: false, sent: true, undo: true, check_in_id, refused: null },
    }
  }

  async undoLast(): Promise<void> {
    if (this.last !== null) await this.takeBack(this.last.scan, this.last.attendeeId, this.last.name)
  }

  /** What the server may know of is undone there, at once or later. */
  async takeBack(scan: WaitingScan, attendeeId: string, name: string | null): Promise<void> {
    if (this.last?.scan.scan_id === scan.scan_id) this.last = null
    this.shown = null
    this.takenBack = name
    this.list.release(attendeeId, scan)
    this.#sinceAsked.set(scan.scan_id, { attendeeId, scan, isUndone: true })
    const known = this.#scans.get(scan.scan_id)
    if (known !== undefined && !known.sent) await this.#drop([scan.scan_id])
    else await this.#put([{ ...scan, ...known, attendee_id: attendeeId, undo: true, admitted: false }])
    this.#keepTicket(attendeeId)
    this.#count()
    this.changed()
    await this.sync()
  }

  /** Uploads what waits, then reads what changed. Then again, later, or sooner when called. */
  async sync(): Promise<void> {
    clearTimeout(this.#timer)
    while (this.#syncing !== null) await this.#syncing
    const { link } = this
    if (link === null || this.stopped !== null || this.#endWhenExpired()) return
    this.#syncing = this.#syncWith(link).finally(() => {
      this.#syncing = null
    })
    await this.#syncing
    clearTimeout(this.#timer)
    const pause =
      this.#failures === 0 ? refreshMilliseconds : Math.min(500 * 2 ** this.#failures, longestPauseMilliseconds)
    this.#timer = setTimeout(() => void this.sync(), pause)
  }

  /** The network is back: at once, and soon again should it not be there yet. */
  retry(): Promise<void> {
    this.#failures = 0
    return this.sync()
  }

  /** Another link may be opened while this one is asked: whatever is answered then says nothing of the new one. */
  async #syncWith(link: DoorLink): Promise<void> {
    try {
      // A long queue does not keep the door shut.
      if (this.door === null) {
        await this.#readRights(link)
        await this.#refresh(link)
        this.changed()
      }
      let failure: unknown
      do {
        // It holds up the scans of its ticket alone.
        await this.#undoAll(link, this.waiting).catch((error) => {
          failure = error
        })
        await this.#uploadAll(link)
      } while (failure === undefined && this.link === link && this.waiting.some(isToUndo))
      if (failure !== undefined) throw failure
      // Before the list, which is not to be kept for longer than the key is good.
      await this.#readRights(link)
      if (this.link !== link) return
      await this.#refresh(link)
      if (this.link !== link) return
      const conflicts = await listConflicts(link)
      if (this.link !== link) return
      this.conflicts = conflicts
      this.online = true
      this.#failures = 0
    } catch (error) {
      if (this.link !== link) return
      this.#failures++
      this.#note(error)
    }
    this.loading = false
    this.#count()
    this.changed()
  }

  async #readRights(link: DoorLink): Promise<void> {
    if (this.#hasReadRights || this.link !== link) return
    const { scopes, expires_at } = await getRights(link)
    if (this.link !== link) return
    this.scopes = scopes
    this.expiresAt = expires_at
    this.#hasReadRights = true
    void this.#keep([], false)
  }

  async #uploadAll(link: DoorLink): Promise<void> {
    let size = batchSize
    // What waits is that of the link of now.
    while (this.link === link) {
      const { waiting } = this
      // The server learns of what was taken back first, and of the next scan of that ticket then.
      const isHeld = isOfSame(waiting.filter(({ undo }) => undo))
      const batch = waiting
        .filter((scan) => scan.check_in_id === null && !this.#live.has(scan.scan_id))
        .filter((scan) => scan.undo || !isHeld(scan))
        .toSorted((a, b) => a.scanned_at.localeCompare(b.scanned_at))
        .slice(0, size)
      if (batch.length === 0) return
      await this.#put(batch.filter(({ sent }) => !sent).map((scan) => ({ ...scan, sent: true })))
      if (this.link !== link) return
      try {
        const answers = await upload(link, batch)
        // Each as it is now: it may have been undone meanwhile. What the server had no time for is in the next batch.
        await this.#settle(
          [...answers].map(([scanId, checkIn]) => [this.#scans.get(scanId) as WaitingScan, checkIn] as const),
        )
        this.online = true
      } catch (error) {
        if (this.link !== link) return
        if (error instanceof OutOfTime && batch.length > 1) {
          size = Math.floor(batch.length / 2)
          continue
        }
        // One scan that the API refuses must not hold up the others: it is found by halves, and set aside.
        if (!(error instanceof Refused) || error.status === 404) throw error
        if (batch.length === 1 && batch[0] !== undefined) await this.#put([{ ...batch[0], refused: error.message }])
        size = Math.max(1, Math.floor(batch.length / 2))
        continue
      } finally {
        this.changed()
      }
      size = Math.min(batchSize, size * 2)
    }
  }

  async #undoAll(link: DoorLink, scans: readonly WaitingScan[], until?: number): Promise<void> {
    for (const scan of scans.filter(isToUndo)) {
      if (this.link !== link) return
      try {
        await undo(link, scan.check_in_id as string, until && Math.max(1, until - performance.now()))
      } catch (error) {
        // Undone before, or never accepted: nothing is left to do.
        if (!(error instanceof Refused)) throw error
      }
      // Not waited for: a list may be being written.
      void this.#drop([scan.scan_id])
    }
  }

  async #refresh(link: DoorLink): Promise<void> {
    this.#sinceAsked.clear()
    let cursor = this.#cursor
    let tickets: Ticket[] = []
    while (this.link === link) {
      const sent = Date.now()
      const page = await getDoorList(link, cursor)
      if (this.link !== link) return
      this.clock = Date.parse(page.server_time) - (sent + Date.now()) / 2
      tickets.push(...page.tickets)
      cursor = page.next_cursor
      if (page.has_more) continue
      this.#apply(page, tickets)
      // Somebody was erased: only the whole list says who.
      if (page.complete || this.list.size <= page.tickets_total) return
      cursor = null
      tickets = []
    }
  }

  /** At once when all pages are there: a list in parts would turn people away. */
  #apply(page: DoorList, tickets: readonly Ticket[]): void {
    if (page.complete) this.list = new TicketList()
    this.list.put(tickets)
    this.door = { event: page.event, points: page.points }
    // The list may be of before.
    for (const { attendeeId, scan, isUndone } of this.#sinceAsked.values()) {
      if (isUndone) this.list.release(attendeeId, scan)
      else this.list.admit(this.door, attendeeId, scan)
    }
    for (const scan of this.waiting)
      if (scan.undo && scan.attendee_id !== null) this.list.release(scan.attendee_id, scan)
    this.colour = page.event.accent_colour
    this.ticketTypes = new Map(page.ticket_types.map(({ id, name }) => [id, name]))
    this.#salt = page.salt
    this.#cursor = page.next_cursor
    this.listAt = page.server_time
    // The list that was kept may be older than the point.
    if (this.pointLost) this.#returnToPlace()
    this.#losePoint()
    void this.#keep(tickets, page.complete)
  }

  /** Puts what changed on the disk, or all that is in memory where it is not there yet. */
  #keep(changed: readonly Ticket[], complete: boolean): Promise<void> {
    const { link } = this
    if (!this.keep || link === null) return Promise.resolve()
    if (complete) this.#isListKept = false
    if (!this.#isListKept) this.saved = 'saving'
    const kept = {
      form: listForm,
      link,
      door: this.door,
      salt: this.#salt,
      cursor: this.#cursor,
      list_at: this.listAt,
      clock: this.clock,
      colour: this.colour,
      scopes: this.scopes,
      expires_at: this.expiresAt,
      ticket_types: [...this.ticketTypes],
    }
    this.#keeping = this.#keeping.then(async () => {
      if (!this.keep || this.link !== link) return
      const whole = !this.#isListKept
      try {
        await keepList(this.#store, kept, whole ? this.list.tickets : changed, whole)
        this.#isListKept = kept.door !== null
        this.saved = this.#isListKept ? 'saved' : 'saving'
      } catch {
        this.#isListKept = false
        this.saved = 'failed'
        this.storageFull = true
      }
      this.changed()
    })
    return this.#keeping
  }

  /** What the server accepted, or took back, counts here after a reload as well. */
  #keepTicket(attendeeId: string): void {
    const ticket = this.list.of(attendeeId)
    this.#keeping = this.#keeping
      .then(async () => {
        if (ticket !== undefined && this.#isListKept) await keepTicket(this.#store, ticket)
      })
      .catch(() => {
        this.storageFull = true
      })
  }

  #note(error: unknown): void {
    // Another tab has the queue.
    if (this.stopped !== null) return
    if (error instanceof Unreachable) this.online = false
    else if (error instanceof KeyRefused) this.#endKey()
    else if (error instanceof Refused) {
      this.stopped = error.code === 'not_found' ? 'eventGone' : { message: error.message }
    } else reportError(error)
  }

  /** Also without a network, which cannot say so. */
  #endWhenExpired(): boolean {
    // Where the server can be asked, it says so; the clock of before may have been put right.
    if (this.isOnline || this.expiresAt === null || Date.now() + this.clock < Date.parse(this.expiresAt)) return false
    this.#endKey()
    this.changed()
    return true
  }

  /** Whoever has no key has no list: a reload without a network must not open the door again. What waits stays. */
  #endKey(): void {
    this.stopped = 'keyRefused'
    clearTimeout(this.#timer)
    // What was asked before is answered to nobody.
    this.link = this.link && { ...this.link }
    this.shown = this.last = this.takenBack = this.door = this.listAt = this.expiresAt = this.#cursor = null
    this.log = []
    this.conflicts = []
    this.list = new TicketList()
    this.saved = 'no'
    this.#keeping = this.#keeping
      .then(() => {
        this.#isListKept = false
        return forgetList(this.#store)
      })
      .catch(reportError)
    if (!isSent(this.walkIn)) void this.keepWalkIn(null)
  }

  /** @returns false when the device is full. In memory they are in any case. */
  async #put(scans: readonly WaitingScan[]): Promise<boolean> {
    if (scans.length === 0) return true
    for (const scan of scans) this.#scans.set(scan.scan_id, scan)
    try {
      await keepScans(this.#scanStore, scans)
      this.storageFull = false
      return true
    } catch {
      this.storageFull = true
      return false
    }
  }

  async #drop(scanIds: readonly string[]): Promise<void> {
    for (const scanId of scanIds) this.#scans.delete(scanId)
    // On the disk as long as their tickets are not: a scan that is uploaded twice counts once.
    // One that is back by then was undone meanwhile: that has yet to be uploaded.
    const drop = () =>
      dropScans(
        this.#scanStore,
        scanIds.filter((scanId) => !this.#scans.has(scanId)),
      )
    this.#keeping = this.#keeping.then(drop).catch(() => {})
    await this.#keeping
  }

  may(scope: string): boolean {
    return this.scopes?.includes(scope) === true
  }

  /** Somebody was registered here, or paid: known before the next refresh says so. */
  welcomeNew(attendee: Pick<Ticket, 'name' | 'company' | 'ticket_type_id' | 'status'> & { id: string }): Ticket {
    const { id, name, company, ticket_type_id, status } = attendee
    // By its code a new one is known from the next refresh on.
    const known = { attendee_id: id, code_hash: id, entries: [], ...this.list.of(id) }
    const ticket = { ...known, name, company, ticket_type_id, status, order: null }
    this.list.put([ticket])
    this.#keepTicket(id)
    return ticket
  }

  /** The entries of a ticket, with those that the server does not know of yet. */
  entriesOf(ticket: Ticket): Entry[] {
    return this.door === null ? [] : this.list.entries(this.door, ticket, this.#waitingOf(ticket.attendee_id))
  }

  /** What the list says of a ticket here and now; nothing is scanned. */
  look(ticket: Ticket): Verdict {
    if (this.door === null) return { reason: 'not_found', since: null }
    const scan = {
      check_in_point_id: this.pointId,
      direction: this.direction,
      scanned_at: new Date(Date.now() + this.clock).toISOString(),
    }
    return this.list.judge(this.door, ticket, scan, this.#waitingOf(ticket.attendee_id))
  }

  #waitingOf(attendeeId: string | null): WaitingScan[] {
    return attendeeId === null ? [] : this.waiting.filter((scan) => scan.attendee_id === attendeeId)
  }

  #count(): void {
    if (this.door === null) return
    this.counts = this.list.count(
      this.door,
      this.pointId,
      Map.groupBy(this.waiting, (scan) => scan.attendee_id ?? ''),
    )
  }

  /** Another tab works with the queue from now on. */
  close(): void {
    this.stopped = 'otherTab'
    clearTimeout(this.#timer)
    // What is being uploaded is the other tab's from now on.
    this.link = this.link && { ...this.link }
    this.#store.close()
    this.#scanStore.close()
    this.changed()
  }

  /** Wipes key, list and queue. */
  async forget(): Promise<void> {
    clearTimeout(this.#timer)
    this.link = null
    await this.#syncing
    await this.#keeping
    await wipe(this.#store, this.#scanStore)
  }
}
