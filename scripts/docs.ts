// Writes docs/reference from the declarations and the comments of the database: `npm run docs`. A test says when a page is stale.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'
import { withClient } from '../src/local/client.ts'
import { applyMigrations } from '../src/local/migrate.ts'
import { commandLinePage } from './reference/command-line.ts'
import { errorsPage } from './reference/errors.ts'
import { notificationsPage } from './reference/notifications.ts'
import { operationsPage } from './reference/operations.ts'
import { settingsPage } from './reference/settings.ts'
import { studioPage } from './reference/studio.ts'
import { startScratchDatabase } from './support/scratch-database.ts'

/** The text of each page of docs/reference, by file. */
export const referencePages = async (client: Pick<pg.ClientBase, 'query'>): Promise<Record<string, string>> => ({
  'operations.md': operationsPage(),
  'errors.md': errorsPage(),
  'notifications.md': await notificationsPage(client),
  'settings.md': settingsPage(),
  'command-line.md': commandLinePage(),
  'studio.md': await studioPage(client),
})

if (import.meta.main) {
  const database = await startScratchDatabase(new AbortController().signal)
  try {
    await applyMigrations(database.databaseUrl)
    const pages = await withClient(database.databaseUrl, referencePages)
    for (const [file, text] of Object.entries(pages)) {
      writeFileSync(join(import.meta.dirname, '../docs/reference', file), text)
    }
  } finally {
    await database.remove()
  }
}
