// What stays on the device, in IndexedDB: always the scans that wait to be uploaded; key and list only if the person wants it.

import { type DBSchema, deleteDB, type IDBPDatabase, openDB } from 'idb'
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
  /** Whether this device let the person in by itself; null while the server is asked. */
  admitted: boolean | null
  /** It may have reached the server. */
  sent: boolean
  undo: boolean
  check_in_id: string | null
  /** The API refused it for what it is. Kept, to be shown. */
  refused: string | null
}

export type Kept = {
  link: DoorLink
  door: Door
  salt: string
  cursor: string | null
  list_at: string
  clock: number
  ticket_types: [string, string][]
}

interface Schema extends DBSchema {
  kept: { key: string; value: Kept }
  tickets: { key: string; value: Ticket }
  scans: { key: string; value: WaitingScan }
}

export type Store = IDBPDatabase<Schema>

export const openStore = (): Promise<Store> =>
  openDB<Schema>(nameOfStore, 1, {
    upgrade(database) {
      database.createObjectStore('kept')
      database.createObjectStore('tickets', { keyPath: 'attendee_id' })
      database.createObjectStore('scans', { keyPath: 'scan_id' })
    },
  })

/** One transaction: the cursor never gets ahead of the tickets. */
export async function keepList(store: Store, kept: Kept, changed: readonly Ticket[], whole: boolean): Promise<void> {
  const transaction = store.transaction(['kept', 'tickets'], 'readwrite')
  const tickets = transaction.objectStore('tickets')
  if (whole) void tickets.clear()
  await Promise.all([
    ...changed.map((ticket) => tickets.put(ticket)),
    transaction.objectStore('kept').put(kept, 'door'),
    transaction.done,
  ])
}

export async function forgetList(store: Store): Promise<void> {
  const transaction = store.transaction(['kept', 'tickets'], 'readwrite')
  await Promise.all([
    transaction.objectStore('kept').clear(),
    transaction.objectStore('tickets').clear(),
    transaction.done,
  ])
}

/** Committed to the disk, as far as browsers promise that. @throws DOMException QuotaExceededError */
export async function keepScans(store: Store, scans: readonly WaitingScan[]): Promise<void> {
  const transaction = store.transaction('scans', 'readwrite', { durability: 'strict' })
  await Promise.all([...scans.map((scan) => transaction.store.put(scan)), transaction.done])
}

export async function dropScans(store: Store, scanIds: readonly string[]): Promise<void> {
  const transaction = store.transaction('scans', 'readwrite')
  await Promise.all([...scanIds.map((id) => transaction.store.delete(id)), transaction.done])
}

export async function wipe(store: Store): Promise<void> {
  store.close()
  await deleteDB(nameOfStore)
}
