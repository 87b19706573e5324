// What stays on the device, in IndexedDB: always the scans that wait to be uploaded, and what the device is; key and list only if the
// person wants it.

import { type DBSchema, deleteDB, type IDBPDatabase, openDB, unwrap } from 'idb'
import { nameOfStore } from './base.ts'
import type { DoorLink } from './link.ts'
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

/** The list is there when the door is: the link is kept before the list was read. */
export type Kept = {
  /** See `listForm`. */
  form?: number
  link: DoorLink
  door: Door | null
  salt: string
  cursor: string | null
  list_at: string | null
  clock: number
  colour?: string | null
  scopes?: string[] | null
  /** When the key ends. */
  expires_at?: string | null
  ticket_types: [string, string][]
}

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

export type Store = IDBPDatabase<Schema>

/** A database of its own: Chromium's newer storage has one writer at a time, and a scan must not wait until the list is written. */
export type ScanStore = IDBPDatabase<{ scans: { key: string; value: WaitingScan } }>

export const openStore = (): Promise<Store> =>
  openDB<Schema>(nameOfStore, 1, {
    upgrade(database) {
      database.createObjectStore('kept')
      database.createObjectStore('tickets', { keyPath: 'attendee_id' })
    },
  })

export const openScanStore = (): Promise<ScanStore> =>
  openDB(`${nameOfStore} scans`, 1, {
    upgrade: (database) => void database.createObjectStore('scans', { keyPath: 'scan_id' }),
  })

export const getKept = async (store: Store): Promise<Kept | undefined> =>
  (await store.get('kept', 'door')) as Kept | undefined

export const getSettings = async (store: Store): Promise<Settings | undefined> =>
  (await store.get('kept', 'settings')) as Settings | undefined

export const keepSettings = (store: Store, settings: Settings): Promise<unknown> =>
  store.put('kept', settings, 'settings')

export const getWalkIn = async (store: Store): Promise<KeptWalkIn | undefined> =>
  (await store.get('kept', 'walk-in')) as KeptWalkIn | undefined

export const keepWalkIn = (store: Store, walkIn: KeptWalkIn | null): Promise<unknown> =>
  walkIn === null ? store.delete('kept', 'walk-in') : store.put('kept', walkIn, 'walk-in')

/** One transaction: the cursor never gets ahead of the tickets. */
export async function keepList(store: Store, kept: Kept, changed: Iterable<Ticket>, whole: boolean): Promise<void> {
  const transaction = store.transaction(['kept', 'tickets'], 'readwrite')
  // A promise for each of 20,000 tickets would take longer than the writing.
  const tickets = unwrap(transaction).objectStore('tickets')
  if (whole) tickets.clear()
  for (const ticket of changed) tickets.put(ticket)
  await Promise.all([transaction.objectStore('kept').put(kept, 'door'), transaction.done])
}

export async function keepTicket(store: Store, ticket: Ticket): Promise<void> {
  await store.put('tickets', ticket)
}

export async function forgetList(store: Store): Promise<void> {
  const transaction = store.transaction(['kept', 'tickets'], 'readwrite')
  await Promise.all([
    transaction.objectStore('kept').delete('door'),
    transaction.objectStore('tickets').clear(),
    transaction.done,
  ])
}

/** Committed to the disk, as far as browsers promise that. @throws DOMException QuotaExceededError */
export async function keepScans(store: ScanStore, scans: readonly WaitingScan[]): Promise<void> {
  const transaction = store.transaction('scans', 'readwrite', { durability: 'strict' })
  await Promise.all([...scans.map((scan) => transaction.store.put(scan)), transaction.done])
}

export async function dropScans(store: ScanStore, scanIds: readonly string[]): Promise<void> {
  const transaction = store.transaction('scans', 'readwrite')
  await Promise.all([...scanIds.map((id) => transaction.store.delete(id)), transaction.done])
}

export async function wipe(...stores: readonly (Store | ScanStore)[]): Promise<void> {
  for (const store of stores) {
    store.close()
    await deleteDB(store.name)
  }
}
