// What only the page knows, and what can be done with it.

import type { DoorLink } from './link.ts'
import type { Ticket } from './offline-rules.ts'
import type { WaitingScan } from './store.ts'
import type { WalkIn } from './walk-in.ts'

export type Panel = 'search' | 'person' | 'code' | 'more' | 'device' | 'walkIn'
export type Page = {
  /** Those that are open, each above the one that it was opened from. */
  panels: readonly Panel[]
  readonly panel: Panel | 'none'
  isScanning: boolean
  /** The files of the page are kept, so that it opens without a network. */
  hasFiles: boolean
  query: string
  /** Whom the panel `person` is about. */
  person: string | null
  walkIn: WalkIn | null
  cameraProblem: 'cameraNeedsHttps' | 'cameraForbidden' | 'cameraMissing' | 'cameraUnread' | null
  hasTorch: boolean
  torch: boolean
}
export type Actions = {
  start(): void
  stop(): void
  open(panel: Panel, payer?: Ticket): void
  back(): void
  search(text: string): void
  look(ticket: Ticket): void
  /** Takes what a guest has to pay. */
  pay(ticket: Ticket): void
  undo(): void
  takeBack(ticket: Ticket, scan: WaitingScan): void
  /** @returns false when nobody can be judged now; `from` is open then. */
  pick(ticket: Ticket, from: Panel): Promise<boolean>
  code(text: string): void
  setUp(device: string, keep: boolean): void
  torch(): void
  turnCamera(): void
  paste(text: string): boolean
  forget(): void
  /** Works in this tab from now on, and in the other one no longer. */
  goOnHere(link?: DoorLink | null): void
}
