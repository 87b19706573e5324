// What the door page has on the disk.

import type { Page } from 'playwright-core'

/** Resolves when all that was to be written before is written: a transaction waits for earlier ones. */
export const isWritten = (page: Page): Promise<unknown> =>
  page.evaluate(`Promise.all([['usher-door', 'kept', 'tickets'], ['usher-door scans', 'scans']].map(([name, ...stores]) =>
    new Promise((resolve) => {
      const opened = indexedDB.open(name)
      opened.onsuccess = () => {
        const read = opened.result.transaction(stores).objectStore(stores[0]).count()
        read.onsuccess = () => (opened.result.close(), resolve())
      }
    })))`)
