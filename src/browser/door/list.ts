// The tickets of the door list in memory, by hash of the code and by attendee, with what was scanned here on top of them.

import {
  admits,
  asTicketCode,
  type Door,
  entriesAfter,
  judge,
  type Scan,
  type Ticket,
  type Verdict,
} from './offline-rules.ts'
import type { WaitingScan } from './store.ts'

export class TicketList {
  #byAttendee = new Map<string, Ticket>()
  #byHash = new Map<string, Ticket>()

  get size(): number {
    return this.#byAttendee.size
  }

  put(tickets: readonly Ticket[]): void {
    for (const ticket of tickets) {
      const former = this.#byAttendee.get(ticket.attendee_id)
      if (former !== undefined) this.#byHash.delete(former.code_hash)
      this.#byAttendee.set(ticket.attendee_id, ticket)
      this.#byHash.set(ticket.code_hash, ticket)
    }
  }

  of(attendeeId: string | null): Ticket | undefined {
    return attendeeId === null ? undefined : this.#byAttendee.get(attendeeId)
  }

  async find(code: string, salt: string): Promise<Ticket | undefined> {
    return this.#byHash.get(await hashOf(code, salt))
  }

  /** By parts of name and company, in any order. */
  search(text: string, most: number): Ticket[] {
    const parts = plain(text).split(/\s+/).filter(Boolean)
    const found: Ticket[] = []
    if (parts.join('').length < 2) return found
    for (const ticket of this.#byAttendee.values()) {
      const words = plain(`${ticket.name} ${ticket.company ?? ''}`)
      if (parts.every((part) => words.includes(part))) found.push(ticket)
      if (found.length === most) break
    }
    return found
  }

  /** Tickets that the point admits, and those of them with an entry there; without a point, with any entry. */
  count(door: Door, pointId: string | null, waiting: ReadonlyMap<string, readonly WaitingScan[]>) {
    const point = door.points.find(({ id }) => id === pointId)
    let [arrived, expected] = [0, 0]
    for (const ticket of this.#byAttendee.values()) {
      if (ticket.status === 'cancelled' || (point !== undefined && !admits(point, ticket))) continue
      expected++
      const scans = waiting.get(ticket.attendee_id)
      const entries = scans === undefined ? ticket.entries : entriesAfter(door, ticket.entries, acceptedOf(scans))
      if (entries.some(({ check_in_point_id }) => point === undefined || check_in_point_id === pointId)) arrived++
    }
    return { arrived, expected }
  }

  judge(door: Door, ticket: Ticket | undefined, scan: Scan, waiting: readonly WaitingScan[] = []): Verdict {
    return judge(door, ticket, scan, acceptedOf(waiting))
  }

  /** The server accepted a scan: it counts before the next refresh says so. */
  admit(door: Door, attendeeId: string, scan: Scan): void {
    const ticket = this.#byAttendee.get(attendeeId)
    if (ticket !== undefined) this.put([{ ...ticket, entries: entriesAfter(door, ticket.entries, [scan]) }])
  }

  /** The entry was undone. */
  release(attendeeId: string, { check_in_point_id, scanned_at }: Scan): void {
    const ticket = this.#byAttendee.get(attendeeId)
    if (ticket === undefined) return
    const isIt = (entry: Ticket['entries'][number]) =>
      entry.check_in_point_id === check_in_point_id && Date.parse(entry.scanned_at) === Date.parse(scanned_at)
    this.put([{ ...ticket, entries: ticket.entries.filter((entry) => !isIt(entry)) }])
  }
}

const acceptedOf = (waiting: readonly WaitingScan[] = []): readonly Scan[] =>
  waiting.filter(({ admitted, undo }) => admitted === true && !undo)

const plain = (text: string): string => text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()

async function hashOf(code: string, salt: string): Promise<string> {
  const bytes = new TextEncoder().encode(salt + asTicketCode(code))
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  return btoa(String.fromCharCode(...hash))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
}
