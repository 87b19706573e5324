// What the door page has on the disk.

import type { Page } from 'playwright-core'

/** Resolves when all that was to be written before is written: a transaction waits for earlier ones. */
export const isWritten = (page: Page): Promise<unknown> =>
  page.evaluate(`new Promise((resolve) => {
    const opened = indexedDB.open('usher-door')
    opened.onsuccess = () => {
      const read = opened.result.transaction(['kept', 'tickets', 'scans']).objectStore('kept').count()
      read.onsuccess = () => (opened.result.close(), resolve())
    }
  })`)
