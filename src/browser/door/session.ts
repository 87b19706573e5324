// The door as this device has it: link, list, queue, clock. Every scan is on the disk before its verdict is shown; a scan leaves
// the disk when the server has answered for it. Draws nothing: `changed` is called when there is something to draw.

import {
  type CheckIn,
  type Conflict,
  type DoorList,
  getDoorList,
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
import { canBeCode, type Direction, type Door, type Reason, type Ticket, type Verdict } from './offline-rules.ts'
import {
  dropScans,
  forgetList,
  type Kept,
  keepList,
  keepScans,
  openStore,
  type Store,
  type WaitingScan,
  wipe,
} from './store.ts'

/** A live scan waits so long for the server's verdict before the list decides. */
const liveMilliseconds = 2_000
const batchSize = 500
const refreshMilliseconds = 10_000
const longestPauseMilliseconds = 60_000
/** A clock that differs by more is mentioned. */
export const clockTolerance = 60_000

export type Shown = {
  reason: Reason | 'welcome' | 'goodbye' | 'not_kept'
  name: string | null
  detail: string | null
  since: string | null
  /** Decided by the list, not by the server. */
  offline: boolean
}
/** What the list and the page know of a ticket that stands before the door. */
type Candidate = { code: string | null; ticket: Ticket | undefined }
type Last = { scan: WaitingScan; attendeeId: string; name: string | null }

export class Session {
  link: DoorLink | null = null
  keep = false
  door: Door | null = null
  ticketTypes = new Map<string, string>()
  list = new TicketList()
  listAt: string | null = null
  pointId: string | null = null
  direction: Direction = 'entry'
  online = true
  loading = false
  /** Why it works no longer. */
  stopped: string | null = null
  shown: Shown | null = null
  last: Last | null = null
  conflicts: Conflict[] = []
  /** Milliseconds that the server is ahead of this device. */
  clock = 0
  storageFull = false
  counts = { arrived: 0, expected: 0 }
  readonly changed: () => void

  #store: Store
  #salt = ''
  #cursor: string | null = null
  #scans = new Map<string, WaitingScan>()
  #live = new Set<string>()
  #syncing: Promise<void> | null = null
  #timer: ReturnType<typeof setTimeout> | undefined
  #failures = 0
  #device = `door page ${crypto.randomUUID().slice(0, 4)}`

  private constructor(store: Store, changed: () => void) {
    this.#store = store
    this.changed = changed
  }

  /** With what this device kept; `link` is the one that the page was opened with. */
  static async open(link: DoorLink | null, changed: () => void): Promise<Session> {
    const session = new Session(await openStore(), changed)
    for (const scan of await session.#store.getAll('scans')) session.#scans.set(scan.scan_id, scan)
    const kept = await session.#store.get('kept', 'door')
    if (kept !== undefined && (link === null || link.event_id === kept.link.event_id)) await session.#restore(kept)
    else await forgetList(session.#store)
    session.link = link ?? session.link
    return session
  }

  async #restore(kept: Kept): Promise<void> {
    this.keep = true
    this.link = kept.link
    this.door = kept.door
    this.#salt = kept.salt
    this.#cursor = kept.cursor
    this.listAt = kept.list_at
    this.clock = kept.clock
    this.ticketTypes = new Map(kept.ticket_types)
    this.list.put(await this.#store.getAll('tickets'))
    this.#count()
  }

  /** Opens a door: that of the event of the link; with a new key it may be the same. */
  use(link: DoorLink): void {
    if (this.door !== null && this.door.event.id !== link.event_id) {
      this.door = null
      this.list = new TicketList()
      this.#cursor = null
      this.pointId = null
      this.last = null
      this.conflicts = []
    }
    this.link = link
    this.stopped = null
    this.loading = this.door === null
    this.changed()
    void this.sync()
  }

  async setKeep(keep: boolean): Promise<void> {
    this.keep = keep
    // Nothing but the whole list is written, so it is read again.
    if (keep) {
      void navigator.storage?.persist?.()
      this.#cursor = null
      await this.sync()
    } else await forgetList(this.#store)
    this.changed()
  }

  choose(pointId: string | null, direction: Direction): void {
    this.pointId = pointId
    this.direction = direction
    this.#count()
    this.changed()
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

  async scanCode(text: string): Promise<void> {
    if (this.door === null || this.stopped !== null) return
    if (!canBeCode(text)) return this.#show({ reason: 'not_found', since: null }, undefined, true)
    await this.#scan({ code: text, ticket: await this.list.find(text, this.#salt) })
  }

  async scanTicket(ticket: Ticket): Promise<void> {
    if (this.door !== null && this.stopped === null) await this.#scan({ code: null, ticket })
  }

  async #scan({ code, ticket }: Candidate): Promise<void> {
    const { door, link } = this
    if (door === null || link === null) return
    const scan: WaitingScan = {
      scan_id: crypto.randomUUID(),
      event_id: link.event_id,
      check_in_point_id: this.pointId,
      direction: this.direction,
      scanned_at: new Date(Date.now() + this.clock).toISOString(),
      attendee_id: ticket?.attendee_id ?? null,
      code: ticket === undefined ? code : null,
      name: ticket?.name ?? null,
      admitted: null,
      sent: false,
      undo: false,
      check_in_id: null,
      refused: null,
    }
    const byList = this.list.judge(door, ticket, scan, this.#waitingOf(scan.attendee_id))
    const isKept =
      this.online && navigator.onLine ? await this.#decideLive(link, scan, byList) : await this.#decide(scan, byList)
    if (isKept === 'answered') return
    if (isKept && byList.reason === null && ticket !== undefined) {
      this.last = { scan, attendeeId: ticket.attendee_id, name: ticket.name }
    }
    this.#count()
    this.#show(isKept ? byList : { reason: 'not_kept', since: null }, ticket, true)
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
      return await this.#decide(scan, byList)
    } finally {
      this.#live.delete(scan.scan_id)
    }
  }

  /** @returns null when the server gave no verdict in time. */
  async #ask(link: DoorLink, scan: WaitingScan): Promise<CheckIn | null> {
    try {
      return (await upload(link, [scan], this.#device, liveMilliseconds)).get(scan.scan_id) ?? null
    } catch (error) {
      this.#note(error)
      return null
    }
  }

  #showAnswer(scan: WaitingScan, checkIn: CheckIn): void {
    const { reason, earlier, attendee } = checkIn
    if (reason === null && attendee !== null) {
      this.last = { scan: { ...scan, check_in_id: checkIn.id }, attendeeId: attendee.id, name: attendee.name }
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
      if (this.last?.scan.scan_id === scan.scan_id) {
        this.last = { ...this.last, scan: { ...this.last.scan, check_in_id: checkIn.id } }
      }
      // An answer may come after the list decided: the server's first verdict stands, and the person was told another one.
      if (isAccepted && scan.admitted === false) toPut.push({ ...scan, undo: true, check_in_id: checkIn.id })
      else done.push(scan.scan_id)
      if (!isAccepted && scan.admitted === true && checkIn.admitted !== true) {
        toPut.push({ ...scan, scan_id: `${scan.scan_id}-admitted`, sent: false })
      }
      if (isAccepted && scan.admitted !== false && attendeeId !== undefined && this.door !== null) {
        this.list.admit(this.door, attendeeId, scan)
      }
    }
    await this.#put(toPut)
    await this.#drop(done)
  }

  #show(
    verdict: Verdict | { reason: 'not_kept'; since: null },
    ticket: Ticket | undefined,
    offline: boolean,
    checkIn?: CheckIn,
  ) {
    const attendee = checkIn?.attendee ?? null
    const type = attendee?.ticket_type.name ?? this.ticketTypes.get(ticket?.ticket_type_id ?? '')
    const company = attendee?.company ?? ticket?.company
    this.shown = {
      reason: verdict.reason ?? (this.direction === 'entry' ? 'welcome' : 'goodbye'),
      name: attendee?.name ?? ticket?.name ?? null,
      detail: [company, type].filter(Boolean).join(' · ') || null,
      since: verdict.since,
      offline,
    }
    this.changed()
  }

  dismiss(): void {
    this.shown = null
    this.changed()
  }

  /** Takes the last acceptance of this device back. What the server may know of is undone there, at once or later. */
  async undoLast(): Promise<void> {
    if (this.last === null) return
    const { scan, attendeeId } = this.last
    this.last = null
    this.shown = null
    const known = this.#scans.get(scan.scan_id)
    if (known !== undefined && !known.sent) await this.#drop([scan.scan_id])
    else await this.#put([{ ...scan, ...known, undo: true, admitted: false }])
    this.list.release(attendeeId, scan)
    this.#count()
    this.changed()
    await this.sync()
  }

  /** Uploads what waits, then reads what changed. Then again, later, or sooner when called. */
  async sync(): Promise<void> {
    clearTimeout(this.#timer)
    while (this.#syncing !== null) await this.#syncing
    const { link } = this
    if (link === null || this.stopped !== null) return
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

  async #syncWith(link: DoorLink): Promise<void> {
    try {
      // A long queue does not keep the door shut.
      if (this.door === null) {
        await this.#refresh(link)
        this.changed()
      }
      await this.#uploadAll(link)
      await this.#undoAll(link)
      await this.#refresh(link)
      this.conflicts = await listConflicts(link)
      this.online = true
      this.#failures = 0
    } catch (error) {
      this.#failures++
      this.#note(error)
    }
    this.loading = false
    this.#count()
    this.changed()
  }

  async #uploadAll(link: DoorLink): Promise<void> {
    let size = batchSize
    for (;;) {
      const batch = this.waiting
        .filter(({ scan_id, check_in_id }) => check_in_id === null && !this.#live.has(scan_id))
        .toSorted((a, b) => a.scanned_at.localeCompare(b.scanned_at))
        .slice(0, size)
      if (batch.length === 0) return
      await this.#put(batch.filter(({ sent }) => !sent).map((scan) => ({ ...scan, sent: true })))
      try {
        const answers = await upload(link, batch, this.#device)
        // Each as it is now: it may have been undone meanwhile. What the server had no time for is in the next batch.
        await this.#settle(
          [...answers].map(([scanId, checkIn]) => [this.#scans.get(scanId) as WaitingScan, checkIn] as const),
        )
        this.online = true
      } catch (error) {
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

  async #undoAll(link: DoorLink): Promise<void> {
    for (const scan of this.waiting.filter((each) => each.undo && each.check_in_id !== null)) {
      try {
        await undo(link, scan.check_in_id as string)
      } catch (error) {
        // Undone before, or never accepted: nothing is left to do.
        if (!(error instanceof Refused)) throw error
      }
      await this.#drop([scan.scan_id])
    }
  }

  async #refresh(link: DoorLink): Promise<void> {
    let cursor = this.#cursor
    const tickets: Ticket[] = []
    for (;;) {
      const sent = Date.now()
      const page = await getDoorList(link, cursor)
      if (this.link !== link) return
      this.clock = Date.parse(page.server_time) - (sent + Date.now()) / 2
      tickets.push(...page.tickets)
      cursor = page.next_cursor
      if (page.has_more) continue
      await this.#apply(page, tickets)
      // Somebody was erased: only the whole list says who.
      if (page.complete || this.list.size <= page.tickets_total) return
      cursor = null
      tickets.length = 0
    }
  }

  /** At once when all pages are there: a list in parts would turn people away. */
  async #apply(page: DoorList, tickets: readonly Ticket[]): Promise<void> {
    if (page.complete) this.list = new TicketList()
    this.list.put(tickets)
    this.door = { event: page.event, points: page.points }
    this.ticketTypes = new Map(page.ticket_types.map(({ id, name }) => [id, name]))
    this.#salt = page.salt
    this.#cursor = page.next_cursor
    this.listAt = page.server_time
    if (!page.points.some(({ id }) => id === this.pointId)) this.pointId = null
    if (this.keep) await this.#keep(tickets, page.complete)
  }

  async #keep(changed: readonly Ticket[], whole: boolean): Promise<void> {
    const { link, door, listAt } = this
    if (link === null || door === null || listAt === null) return
    const kept = {
      link,
      door,
      salt: this.#salt,
      cursor: this.#cursor,
      list_at: listAt,
      clock: this.clock,
      ticket_types: [...this.ticketTypes],
    }
    await keepList(this.#store, kept, changed, whole).catch(() => {
      this.storageFull = true
    })
  }

  #note(error: unknown): void {
    // Another tab has the queue.
    if (this.stopped !== null) return
    if (error instanceof Unreachable) this.online = false
    else if (error instanceof KeyRefused) this.stopped = 'The key of this link is revoked or has expired.'
    else if (error instanceof Refused) {
      this.stopped = error.code === 'not_found' ? 'The event of this link is not there.' : error.message
    } else reportError(error)
  }

  /** @returns false when the device is full. In memory they are in any case. */
  async #put(scans: readonly WaitingScan[]): Promise<boolean> {
    if (scans.length === 0) return true
    for (const scan of scans) this.#scans.set(scan.scan_id, scan)
    try {
      await keepScans(this.#store, scans)
      this.storageFull = false
      return true
    } catch {
      this.storageFull = true
      return false
    }
  }

  async #drop(scanIds: readonly string[]): Promise<void> {
    await dropScans(this.#store, scanIds)
    for (const scanId of scanIds) this.#scans.delete(scanId)
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
    this.stopped = 'This door is open in another tab.'
    clearTimeout(this.#timer)
    this.#store.close()
    this.changed()
  }

  /** Wipes key, list and queue. */
  async forget(): Promise<void> {
    clearTimeout(this.#timer)
    this.link = null
    await this.#syncing
    await wipe(this.#store)
  }
}
