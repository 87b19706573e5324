// The door as this device has it: link, list, queue and place. Scans are judged in scan.ts, and exchanged with the server in sync.ts.
// Draws nothing: `changed` is called when there is something to draw.

import type { Conflict } from './api.ts'
import type { DoorLink } from './link.ts'
import { acceptedOf, TicketList } from './list.ts'
import { type Direction, entriesAfter, judge, type Point, type Scan, type Ticket } from './offline-rules.ts'
import {
  type Kept,
  type KeptWalkIn,
  type Known,
  listForm,
  type Place,
  type Settings,
  Store,
  type WaitingScan,
} from './store.ts'
import type { Shown } from './tones.ts'

/** An event that starts later is probably not the one at whose door people stand; whoever sets up in the evening before is told as well. */
const earlyMilliseconds = 12 * 3_600_000
/** An acceptance stays so long before another code may take its place; a refusal stays until it is put away. */
const acceptanceMilliseconds = 1_000

/** Words of the page, or those of the API. */
export type Stopped = 'keyRefused' | 'eventGone' | 'otherTab' | { message: string }

const nothingKnown: Known = {
  ...{ form: listForm, door: null, salt: '', cursor: null, list_at: null, clock: 0 },
  ...{ colour: null, scopes: null, expires_at: null, ticket_types: [] },
}

/** Until staff give it a name. */
const someDevice = () => `door page ${crypto.randomUUID().slice(0, 4)}`

/** One line, as the API takes it. */
const asDevice = (text: string): string =>
  text
    .replace(/[\s\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
    .slice(0, 60)
    .toWellFormed()

/** What was sent must not happen twice. */
const isSent = (walkIn: KeptWalkIn | null): boolean =>
  walkIn !== null && (walkIn.step !== null || walkIn.order !== null || walkIn.guest !== null)

export class Session {
  link: DoorLink | null = null
  /** Null until staff were asked, once. */
  settings: Settings | null = null
  known = nothingKnown
  list = new TicketList()
  /** Whether key and list are on the disk. */
  saved: 'no' | 'saving' | 'saved' | 'failed' = 'no'
  /** Without a point as long as neither staff nor the link said where this device is. */
  place: Place = { event_id: '', direction: 'entry' }
  /** Those that the server has not answered for, of all events. */
  scans = new Map<string, WaitingScan>()
  counts = { arrived: 0, expected: 0 }
  /** Why it works no longer. */
  stopped: Stopped | null = null

  /** A scan has no verdict yet. */
  deciding = false
  shown: Shown | null = null
  shownAt = 0
  /** The last scan of this device that let somebody through. */
  last: { scan: WaitingScan; attendeeId: string; name: string | null } | null = null
  /** Whether the last answer is that of `last`. Otherwise somebody else stands here now, who must not be thought to be taken back. */
  isLastLatest = false
  /** Whom staff took back since the last answer. */
  takenBack: string | null = null
  /** The last verdicts, the newest first. */
  log: (Pick<Shown, 'reason' | 'name'> & { at: string })[] = []
  scannedAt = 0
  /** Scans that the server is being asked for, one by one. */
  live = new Set<string>()
  /** Somebody without a ticket, who is not in yet. */
  walkIn: KeptWalkIn | null = null

  /** Whether the server answered when it was asked last. */
  online = true
  conflicts: Conflict[] = []
  /** Of this key, since the page was opened: an organiser may have given it others. */
  hasReadRights = false
  /** What the server accepted, or staff took back, since the list was last asked for. */
  sinceAsked = new Map<string, { attendeeId: string; scan: WaitingScan; isUndone: boolean }>()
  syncing: Promise<void> | null = null
  failures = 0
  timer: ReturnType<typeof setTimeout> | undefined

  readonly store: Store
  readonly changed: () => void

  private constructor(store: Store, changed: () => void) {
    this.store = store
    this.changed = changed
  }

  /** With what this device kept; `link` is the one that the page was opened with. */
  static async open(link: DoorLink | null, changed: () => void): Promise<Session> {
    const store = await Store.open()
    const session = new Session(store, changed)
    for (const scan of await store.getScans()) session.scans.set(scan.scan_id, scan)
    session.settings = (await store.getSettings()) ?? null
    await session.keepWalkIn(await store.getWalkIn())
    const kept = await store.getDoor()
    if (kept !== undefined && (link === null || link.event_id === kept.link.event_id)) await session.#restore(kept)
    else session.#forgetList()
    return session
  }

  async #restore({ link, ...known }: Kept): Promise<void> {
    this.link = link
    this.known = { ...nothingKnown, ...known }
    // A list of an earlier form decides as before, and is read from the start when there is a network.
    if (known.form !== listForm) this.known = { ...this.known, form: listForm, cursor: null }
    this.list.put(await this.store.getTickets())
    if (this.door !== null) this.saved = 'saved'
  }

  /** Opens a door: that of the event of the link; with a new key it may be the same. The server is asked by `sync`. */
  use({ point_id, ...link }: DoorLink): void {
    if (this.door !== null && this.door.event.id !== link.event_id) {
      this.known = nothingKnown
      this.list = new TicketList()
      this.saved = 'no'
      this.last = null
      this.conflicts = []
    }
    if (this.link?.key !== link.key) this.known = { ...this.known, scopes: null, expires_at: null }
    this.hasReadRights = false
    this.link = link
    this.stopped = null
    const { event_id } = link
    if (this.place.event_id !== event_id) {
      const kept = this.settings?.place
      this.place = kept?.event_id === event_id ? kept : { event_id, direction: 'entry' }
    }
    // Only when it is opened: what staff choose afterwards stands.
    if (point_id !== undefined) this.#move({ check_in_point_id: point_id })
    this.count()
    if (this.endWhenExpired()) return
    void this.keepList([], false)
    this.changed()
  }

  get door() {
    return this.known.door
  }

  get isOnline(): boolean {
    return this.online && navigator.onLine
  }

  /** Milliseconds, by the server's time. */
  get now(): number {
    return Date.now() + this.known.clock
  }

  may(scope: string): boolean {
    return this.known.scopes?.includes(scope) === true
  }

  typeOf(ticket: Ticket | undefined): string | undefined {
    return this.known.ticket_types.find(([id]) => id === ticket?.ticket_type_id)?.[1]
  }

  /** When the event starts, if that is not soon. Nobody is refused for it: see check_in_early. */
  get startsOnly(): string | null {
    const startsAt = this.door?.event.starts_at ?? null
    return startsAt !== null && Date.parse(startsAt) - this.now > earlyMilliseconds ? startsAt : null
  }

  /** What staff say of this device: asked for once. What is in memory is written at once. */
  async setUp(device: string, keep: boolean): Promise<void> {
    const name = asDevice(device) || (this.settings?.device ?? someDevice())
    this.settings = { ...this.settings, device: name, keep, place: this.place }
    this.changed()
    await this.store.keepSettings(this.settings)
    if (keep) {
      void navigator.storage?.persist?.()
      await this.keepList([], false)
    } else {
      this.#forgetList()
      await this.keepWalkIn(this.walkIn)
    }
    this.changed()
  }

  #set(settings: Partial<Settings>): void {
    if (this.settings === null) return
    this.settings = { ...this.settings, ...settings }
    void this.store.keepSettings(this.settings)
  }

  choose(pointId: string | null): void {
    this.#move({ check_in_point_id: pointId })
    this.count()
    this.changed()
  }

  turn(direction: Direction): void {
    this.#move({ direction })
    this.changed()
  }

  #move(place: Partial<Place>): void {
    this.place = { ...this.place, ...place }
    this.#set({ place: this.place })
  }

  /** Where this device is. None: at the whole event, or at a point that is no more. */
  get point(): Point | undefined {
    return this.door?.points.find(({ id, status }) => id === this.place.check_in_point_id && status === 'active')
  }

  get pointId(): string | null {
    return this.point?.id ?? null
  }

  /** The chosen point is no more, or archived: nobody may be let in elsewhere instead without a word. */
  get pointLost(): boolean {
    return this.door !== null && typeof this.place.check_in_point_id === 'string' && this.point === undefined
  }

  /** Two gates let a ticket in twice if one of them was left at the whole event by default: where there are points, one is chosen first. */
  get mustChoose(): boolean {
    const hasPoints = this.door?.points.some(({ status }) => status === 'active') === true
    return this.pointLost || (this.place.check_in_point_id === undefined && hasPoints)
  }

  /** Conflicts that staff have not put aside on this device. */
  get openConflicts(): Conflict[] {
    const aside = new Set(this.settings?.put_aside)
    return this.conflicts.filter(({ id }) => !aside.has(id))
  }

  putAside(conflictId: string): void {
    const known = new Set(this.conflicts.map(({ id }) => id))
    this.#set({ put_aside: [...(this.settings?.put_aside ?? []).filter((id) => known.has(id)), conflictId] })
    this.changed()
  }

  /** Whether another code may be judged now. */
  get isReady(): boolean {
    if (this.door === null || this.stopped !== null || this.pointLost || this.deciding) return false
    const { shown } = this
    const isAcceptance = shown?.reason === 'welcome' || shown?.reason === 'goodbye'
    return shown === null || (isAcceptance && performance.now() - this.shownAt >= acceptanceMilliseconds)
  }

  dismiss(): void {
    this.shown = null
    this.changed()
  }

  /** What the list says of a ticket here and now; nothing is scanned. */
  look(ticket: Ticket) {
    return this.judge(ticket, { ...this.here, scanned_at: new Date(this.now).toISOString() })
  }

  get here(): Pick<Scan, 'check_in_point_id' | 'direction'> {
    return { check_in_point_id: this.pointId, direction: this.place.direction }
  }

  /** By the list, and by what was scanned here on top of it. */
  judge(ticket: Ticket | undefined, scan: Scan) {
    if (this.door === null) return { reason: 'not_found' as const, since: null }
    return judge(this.door, ticket, scan, acceptedOf(this.waitingOf(ticket)))
  }

  /** The entries of a ticket, with those that the server does not know of yet. */
  entriesOf(ticket: Ticket | undefined) {
    if (this.door === null || ticket === undefined) return []
    return entriesAfter(this.door, ticket.entries, acceptedOf(this.waitingOf(ticket)))
  }

  waitingOf(ticket: Ticket | undefined): WaitingScan[] {
    return ticket === undefined ? [] : this.waiting.filter((scan) => scan.attendee_id === ticket.attendee_id)
  }

  /** Scans of this event that are to be uploaded, or undone. */
  get waiting(): WaitingScan[] {
    return [...this.scans.values()].filter(
      ({ event_id, refused }) => event_id === this.link?.event_id && refused === null,
    )
  }
  get refusedScans(): WaitingScan[] {
    return [...this.scans.values()].filter(({ refused }) => refused !== null)
  }
  get waitingElsewhere(): number {
    return [...this.scans.values()].filter(({ event_id }) => event_id !== this.link?.event_id).length
  }

  /** @returns false when the device is full. In memory they are in any case. */
  async put(scans: readonly WaitingScan[]): Promise<boolean> {
    if (scans.length === 0) return true
    for (const scan of scans) this.scans.set(scan.scan_id, scan)
    return this.store.keepScans(scans)
  }

  async drop(scanIds: readonly string[]): Promise<void> {
    for (const scanId of scanIds) this.scans.delete(scanId)
    // On the disk as long as their tickets are not: a scan that is uploaded twice counts once.
    // One that is back by then was undone meanwhile: that has yet to be uploaded.
    await this.store.inTurn(() => this.store.dropScans(scanIds.filter((scanId) => !this.scans.has(scanId))))
  }

  count(): void {
    if (this.door === null) return
    const waiting = Map.groupBy(this.waiting, (scan) => scan.attendee_id ?? '')
    this.counts = this.list.count(this.door, this.pointId, waiting)
  }

  /** Puts what changed on the disk, or all that is in memory where it is not there yet. */
  async keepList(changed: readonly Ticket[], isComplete: boolean): Promise<void> {
    const { link } = this
    if (this.settings?.keep !== true || link === null) return
    if (isComplete || this.saved !== 'saved') this.saved = 'saving'
    const kept = { ...this.known, link }
    await this.store.inTurn(async () => {
      if (this.settings?.keep !== true || this.link !== link) return
      const isWhole = isComplete || this.saved !== 'saved'
      const isKept = await this.store.keepList(kept, isWhole ? this.list.tickets : changed, isWhole)
      this.saved = !isKept ? 'failed' : kept.door === null ? 'saving' : 'saved'
      this.changed()
    })
  }

  /** What the server accepted, or took back, counts here after a reload as well. */
  keepTicket(attendeeId: string): void {
    const ticket = this.list.of(attendeeId)
    void this.store.inTurn(async () => {
      if (ticket !== undefined && this.saved === 'saved') await this.store.keepTicket(ticket)
    })
  }

  #forgetList(): void {
    this.saved = 'no'
    void this.store.inTurn(() => {
      this.saved = 'no'
      return this.store.forgetList()
    })
  }

  /** Where the list is not kept, a form of which nothing was sent is not either; what was sent must not happen twice. */
  async keepWalkIn(walkIn: KeptWalkIn | null): Promise<void> {
    this.walkIn = walkIn
    await this.store.keepWalkIn(this.settings?.keep === true || isSent(walkIn) ? walkIn : null)
  }

  /** Also without a network, which cannot say so. */
  endWhenExpired(): boolean {
    const { expires_at } = this.known
    // Where the server can be asked, it says so; the clock of before may have been put right.
    if (this.isOnline || expires_at === null || this.now < Date.parse(expires_at)) return false
    this.endKey()
    this.changed()
    return true
  }

  /** Whoever has no key has no list: a reload without a network must not open the door again. What waits stays. */
  endKey(): void {
    this.#stop('keyRefused')
    this.shown = this.last = this.takenBack = null
    this.log = []
    this.conflicts = []
    this.known = { ...nothingKnown, clock: this.known.clock }
    this.list = new TicketList()
    this.#forgetList()
    if (!isSent(this.walkIn)) void this.keepWalkIn(null)
  }

  /** Another tab works with the queue from now on. */
  close(): void {
    this.#stop('otherTab')
    this.store.close()
    this.changed()
  }

  #stop(why: Stopped): void {
    this.stopped = why
    clearTimeout(this.timer)
    // What was asked before is answered to nobody.
    this.link = this.link && { ...this.link }
  }

  /** Wipes key, list and queue. */
  async forget(): Promise<void> {
    clearTimeout(this.timer)
    this.link = null
    await this.syncing
    await this.store.wipe()
  }
}
