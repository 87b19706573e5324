// What only the page knows, and what can be done with it.

import type { Ticket } from './offline-rules.ts'
import type { WaitingScan } from './store.ts'
import type { WalkIn } from './walk-in.ts'

export type Page = {
  panel: 'none' | 'search' | 'person' | 'code' | 'more' | 'device' | 'walkIn'
  isScanning: boolean
  /** The files of the page are kept, so that it opens without a network. */
  hasFiles: boolean
  query: string
  /** Whom the panel `person` is about, and whether the search found them. */
  person: string | null
  isFound: boolean
  walkIn: WalkIn | null
  cameraProblem: 'cameraNeedsHttps' | 'cameraForbidden' | 'cameraMissing' | 'cameraUnread' | null
  hasTorch: boolean
  torch: boolean
}
export type Actions = {
  start(): void
  stop(): void
  open(panel: Page['panel']): void
  back(): void
  search(text: string): void
  look(ticket: Ticket): void
  undo(): void
  takeBack(ticket: Ticket, scan: WaitingScan): void
  /** @returns false when nobody can be judged now; `from` is open then. */
  pick(ticket: Ticket, from: Page['panel']): Promise<boolean>
  code(text: string): void
  setUp(device: string, keep: boolean): void
  torch(): void
  turnCamera(): void
  paste(text: string): boolean
  forget(): void
}
