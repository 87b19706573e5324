// The tickets of the door list in memory, by hash of the code and by attendee, with what was scanned here on top of them.

import { admits, asTicketCode, type Door, type Entry, entriesAfter, type Scan, type Ticket } from './offline-rules.ts'
import { searchForm } from './search-form.ts'
import type { WaitingScan } from './store.ts'

export class TicketList {
  #byAttendee = new Map<string, Ticket>()
  #byHash = new Map<string, Ticket>()
  /** Of names, companies and references, for the search; a ticket that changes is another object. */
  #texts = new WeakMap<Ticket, Text>()

  get size(): number {
    return this.#byAttendee.size
  }

  get tickets(): Iterable<Ticket> {
    return this.#byAttendee.values()
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

  /** By parts of name, company and reference, in any order: those whose words begin with them first, then by name. */
  search(text: string, most: number): { found: Ticket[]; total: number } {
    const asked = textOf(text)
    const spelt = asked.spelt.split(' ').filter(Boolean)
    // "Muller" and "Mueller" are both "Müller".
    const parts = asked.plain
      .split(' ')
      .filter(Boolean)
      .map((part, i) => [part, spelt[i] ?? part] as const)
    if (asked.plain.trim().length < 2) return { found: [], total: 0 }
    const code = asTicketCode(text)
    const ranked: { ticket: Ticket; beginnings: number }[] = []
    for (const ticket of this.#byAttendee.values()) {
      const words = this.#textOf(ticket)
      let beginnings = 0
      const isIt = parts.every(([plain, spelt]) => {
        if (words.plain.includes(` ${plain}`) || words.spelt.includes(` ${spelt}`)) beginnings++
        return words.plain.includes(plain) || words.spelt.includes(spelt)
      })
      if (isIt || ticket.reference === code) ranked.push({ ticket, beginnings })
    }
    const { compare } = new Intl.Collator()
    const sorted = ranked.sort((a, b) => b.beginnings - a.beginnings || compare(a.ticket.name, b.ticket.name))
    return { found: sorted.slice(0, most).map(({ ticket }) => ticket), total: ranked.length }
  }

  /** Whose names differ least from what was typed: for a name that was heard wrong, of which the search finds nobody. */
  nearest(text: string, most: number): Ticket[] {
    const asked = textOf(text)
      .plain.split(' ')
      .filter(({ length }) => length > 2)
    const near: { ticket: Ticket; distance: number }[] = []
    for (const ticket of asked.length === 0 ? [] : this.#byAttendee.values()) {
      const words = this.#textOf(ticket).plain.split(' ')
      let distance = 0
      for (const word of asked) {
        const most = word.length * differing
        distance += Math.min(...words.map((each) => distanceOf(word, each, most))) / word.length
        if (distance === Number.POSITIVE_INFINITY) break
      }
      if (distance < Number.POSITIVE_INFINITY) near.push({ ticket, distance })
    }
    return near
      .sort((a, b) => a.distance - b.distance)
      .slice(0, most)
      .map(({ ticket }) => ticket)
  }

  #textOf(ticket: Ticket): Text {
    const known = this.#texts.get(ticket) ?? textOf([ticket.name, ticket.company, ticket.reference].join(' '))
    this.#texts.set(ticket, known)
    return known
  }

  /** Tickets that the point admits, and those of them with an entry there, at a point with re_entry one that has not ended; without a
   * point, with any entry. */
  count(door: Door, pointId: string | null, waiting: ReadonlyMap<string, readonly WaitingScan[]>) {
    const point = door.points.find(({ id }) => id === pointId)
    let [arrived, expected] = [0, 0]
    for (const ticket of this.#byAttendee.values()) {
      if (ticket.status === 'cancelled' || (point !== undefined && !admits(point, ticket))) continue
      expected++
      const scans = waiting.get(ticket.attendee_id)
      const entries = scans === undefined ? ticket.entries : entriesAfter(door, ticket.entries, acceptedOf(scans))
      const counts = ({ check_in_point_id, exited_at }: Entry) =>
        point === undefined || (check_in_point_id === pointId && (point.admission !== 're_entry' || exited_at === null))
      if (entries.some(counts)) arrived++
    }
    return { arrived, expected }
  }

  /** The server accepted a scan: it counts before the next refresh says so. */
  admit(door: Door, attendeeId: string, scan: Scan): void {
    const ticket = this.#byAttendee.get(attendeeId)
    if (ticket === undefined || ticket.entries.some((entry) => isOf(entry, scan))) return
    this.put([{ ...ticket, entries: entriesAfter(door, ticket.entries, [scan]) }])
  }

  /** The entry was undone, or the exit. */
  release(attendeeId: string, scan: Scan): void {
    const ticket = this.#byAttendee.get(attendeeId)
    if (ticket === undefined) return
    const entries =
      scan.direction === 'exit'
        ? ticket.entries.map((entry) => (isOf(entry, scan) ? { ...entry, exited_at: null } : entry))
        : ticket.entries.filter((entry) => !isOf(entry, scan))
    this.put([{ ...ticket, entries }])
  }
}

/** The part of the letters in which alike words may differ. */
const differing = 0.4

const row: number[] = []

/** How many letters are added, left out or replaced (Levenshtein); more than `most` is infinite, and found out soon: names are many. */
function distanceOf(from: string, to: string, most: number): number {
  if (Math.abs(from.length - to.length) > most) return Number.POSITIVE_INFINITY
  for (let j = 0; j <= to.length; j++) row[j] = j
  for (let i = 0; i < from.length; i++) {
    let diagonal = i
    let least = i + 1
    row[0] = least
    for (let j = 0; j < to.length; j++) {
      const above = row[j + 1] as number
      const here = Math.min(diagonal + (from[i] === to[j] ? 0 : 1), above + 1, (row[j] as number) + 1)
      diagonal = above
      row[j + 1] = here
      if (here < least) least = here
    }
    if (least > most) return Number.POSITIVE_INFINITY
  }
  const distance = row[to.length] as number
  return distance > most ? Number.POSITIVE_INFINITY : distance
}

/** Whether the scan made the entry, or ended it. */
export const isOf = (entry: Ticket['entries'][number], { check_in_point_id, scanned_at, direction }: Scan): boolean => {
  const at = direction === 'exit' ? entry.exited_at : entry.scanned_at
  return entry.check_in_point_id === check_in_point_id && at !== null && Date.parse(at) === Date.parse(scanned_at)
}

export const acceptedOf = (waiting: readonly WaitingScan[]): readonly WaitingScan[] =>
  waiting.filter(({ admitted, undo }) => admitted === true && !undo)

/** Without marks, and with umlauts as Germans spell them out; words after a space each. */
type Text = { plain: string; spelt: string }

const spelling: Record<string, string> = { ä: 'ae', ö: 'oe', ü: 'ue', ø: 'oe', å: 'aa' }

function textOf(text: string): Text {
  const wordsOf = (text: string) => ` ${searchForm(text).replace(/[ \-'.,/]+/g, ' ')}`
  const lower = text.normalize('NFC').toLowerCase()
  const spelt = lower.replace(/[äöüøå]/g, (letter) => spelling[letter] ?? letter)
  const plain = wordsOf(lower)
  return { plain, spelt: spelt === lower ? plain : wordsOf(spelt) }
}

async function hashOf(code: string, salt: string): Promise<string> {
  const bytes = new TextEncoder().encode(salt + asTicketCode(code))
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  const base64 = btoa(String.fromCharCode(...hash))
  return base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}
