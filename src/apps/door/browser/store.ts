// What stays on the device, in IndexedDB: always the scans that wait to be uploaded, and what the device is; key and list only if the
// person wants it.

import { type DBSchema, deleteDB, type IDBPDatabase, openDB, unwrap } from 'idb'
import { type DoorLink, nameOfStore } from './link.ts'
import type { Direction, Door, Ticket } from './offline-rules.ts'

/** A scan that the server has not confirmed, or whose undoing it has not. */
export type WaitingScan = {
  scan_id: string
  event_id: string
  check_in_point_id: string | null
  direction: Direction
  /** Corrected by the server's time. */
  scanned_at: string
  /** The list knows the ticket; otherwise the text that was scanned. */
  attendee_id: string | null
  code: string | null
  name: string | null
  /** The device as it was called then. */
  device?: string | null
  /** Whether this device let the person in by itself; null while the server is asked. */
  admitted: boolean | null
  /** It may have reached the server. */
  sent: boolean
  undo: boolean
  check_in_id: string | null
  /** The API refused it for what it is. Kept, to be shown. */
  refused: string | null
}

/** What tickets consist of. A list of an earlier form decides as before, and is read from the start when there is a network. */
export const listForm = 2

/** What the server said of the door and the key. The list is there when the door is: the link is kept before the list was read. */
export type Known = {
  /** See `listForm`. */
  form: number
  door: Door | null
  salt: string
  cursor: string | null
  list_at: string | null
  /** Milliseconds that the server is ahead of this device. */
  clock: number
  /** The organisation's. */
  colour: string | null
  /** What the key may do; null until the server said so. */
  scopes: string[] | null
  /** When the key ends; null until the server said so, or where it does not. */
  expires_at: string | null
  ticket_types: [id: string, name: string][]
}

/** What an older page kept has not all of it. */
export type Kept = Partial<Known> & { link: DoorLink }

/** Where the device is: point null is the event as a whole, and undefined as long as nobody has chosen. */
export type Place = { event_id: string; check_in_point_id?: string | null | undefined; direction: Direction }

/** What staff said of this device, whose key ever it has. */
export type Settings = {
  /** Its name, with every scan. */
  device: string
  /** Whether key and list stay on it. */
  keep: boolean
  place: Place | null
  /** Conflicts that need not be shown any more. */
  put_aside?: string[]
}

export type Order = {
  id: string
  amount_due: number
  currency: string
  attendees: { id: string; name: string; company: string | null; ticket_type_id: string; status: Ticket['status'] }[]
  /** Of a guest on the list: it was not made here, and is not cancelled here. */
  isListed?: boolean
}

export type Method = 'cash' | 'card'

/** What is in the form. `type`: the id of a ticket type; empty before one was chosen. */
export type Typed = { name: string; email: string; type: string }
export type Step = { idempotencyKey: string } & (
  | { does: 'register'; guest: object }
  /** The method is absent in what an older page kept. */
  | { does: 'pay'; order: Order; method?: Method }
  | { does: 'cancel'; order: Order }
)
/** Somebody without a ticket, who is not in yet. */
export type WalkInState = {
  typed: Typed
  /** What was sent, and is not answered. */
  step: Step | null
  /** That is to be paid. */
  order: Order | null
  /** Who is registered and has paid, and was not let in yet. */
  guest: Ticket | null
}
export type KeptWalkIn = WalkInState & {
  event_id: string
  /** Of the key, which may not be kept itself. Another key has idempotency keys of its own. */
  prefix: string
  at: number
}

/** The server forgets an idempotency key after a day: what is sent again later would be done again. */
export const isExpired = ({ at }: KeptWalkIn): boolean => Date.now() - at >= 23 * 3_600_000

interface Schema extends DBSchema {
  /** By `door`, `settings` and `walk-in`. */
  kept: { key: string; value: Kept | Settings | KeptWalkIn }
  tickets: { key: string; value: Ticket }
}
type Scans = { scans: { key: string; value: WaitingScan } }

export class Store {
  /** What was to be written last found no room. */
  isFull = false
  /** List and tickets are written by one at a time, in the order of their changes. */
  #written: Promise<unknown> = Promise.resolve()
  readonly #kept: IDBPDatabase<Schema>
  /** A database of its own: Chromium's newer storage has one writer at a time, and a scan must not wait until the list is written. */
  readonly #scans: IDBPDatabase<Scans>

  private constructor(kept: IDBPDatabase<Schema>, scans: IDBPDatabase<Scans>) {
    this.#kept = kept
    this.#scans = scans
  }

  static async open(): Promise<Store> {
    const kept = await openDB<Schema>(nameOfStore, 1, {
      upgrade(database) {
        database.createObjectStore('kept')
        database.createObjectStore('tickets', { keyPath: 'attendee_id' })
      },
    })
    const scans = await openDB<Scans>(`${nameOfStore} scans`, 1, {
      upgrade: (database) => void database.createObjectStore('scans', { keyPath: 'scan_id' }),
    })
    return new Store(kept, scans)
  }

  getDoor = async () => (await this.#kept.get('kept', 'door')) as Kept | undefined
  getSettings = async () => (await this.#kept.get('kept', 'settings')) as Settings | undefined
  async getWalkIn(): Promise<KeptWalkIn | null> {
    const kept = (await this.#kept.get('kept', 'walk-in')) as KeptWalkIn | undefined
    return kept === undefined || isExpired(kept) ? null : kept
  }
  getTickets = (): Promise<Ticket[]> => this.#kept.getAll('tickets')
  getScans = (): Promise<WaitingScan[]> => this.#scans.getAll('scans')

  /** After what was to be written before. */
  inTurn(write: () => Promise<unknown>): Promise<unknown> {
    this.#written = this.#written.then(() => this.#try(write))
    return this.#written
  }

  /** @returns false when there is no room. */
  async #try(write: () => Promise<unknown>): Promise<boolean> {
    try {
      await write()
      return true
    } catch {
      this.isFull = true
      return false
    }
  }

  keepSettings(settings: Settings): Promise<boolean> {
    return this.#try(() => this.#kept.put('kept', settings, 'settings'))
  }

  keepWalkIn(walkIn: KeptWalkIn | null): Promise<boolean> {
    return this.#try(async () => {
      if (walkIn === null) await this.#kept.delete('kept', 'walk-in')
      else await this.#kept.put('kept', walkIn, 'walk-in')
    })
  }

  /** One transaction: the cursor never gets ahead of the tickets. @returns false when there is no room. */
  keepList(kept: Kept, changed: Iterable<Ticket>, isWhole: boolean): Promise<boolean> {
    return this.#try(async () => {
      const transaction = this.#kept.transaction(['kept', 'tickets'], 'readwrite')
      // A promise for each of 20,000 tickets would take longer than the writing.
      const tickets = unwrap(transaction).objectStore('tickets')
      if (isWhole) tickets.clear()
      for (const ticket of changed) tickets.put(ticket)
      await Promise.all([transaction.objectStore('kept').put(kept, 'door'), transaction.done])
    })
  }

  keepTicket(ticket: Ticket): Promise<unknown> {
    return this.#kept.put('tickets', ticket)
  }

  async forgetList(): Promise<void> {
    const transaction = this.#kept.transaction(['kept', 'tickets'], 'readwrite')
    const { done } = transaction
    await Promise.all([
      transaction.objectStore('kept').delete('door'),
      transaction.objectStore('tickets').clear(),
      done,
    ])
  }

  /** Committed to the disk, as far as browsers promise that. @returns false when there is no room. */
  keepScans(scans: readonly WaitingScan[]): Promise<boolean> {
    return this.#try(async () => {
      const transaction = this.#scans.transaction('scans', 'readwrite', { durability: 'strict' })
      await Promise.all([...scans.map((scan) => transaction.store.put(scan)), transaction.done])
      this.isFull = false
    })
  }

  async dropScans(scanIds: readonly string[]): Promise<void> {
    const transaction = this.#scans.transaction('scans', 'readwrite')
    await Promise.all([...scanIds.map((id) => transaction.store.delete(id)), transaction.done])
  }

  close(): void {
    this.#kept.close()
    this.#scans.close()
  }

  async wipe(): Promise<void> {
    await this.#written
    this.close()
    await deleteDB(this.#kept.name)
    await deleteDB(this.#scans.name)
  }
}
