// A temporary database, bootstrapped like the real one but without PostgREST and without flushing to disk: for checks that need a cluster
// of their own, since roles belong to a cluster and not to a database.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findPostgres } from './binaries.ts'
import { openDataDirectory } from './data-directory.ts'
import { databaseUrlFor } from './database.ts'
import { startDatabase } from './database-server.ts'
import { createSecrets } from './secrets.ts'

export type ScratchDatabase = {
  /** Connects as the role `postgres`. */
  databaseUrl: string
  /** Stops it and deletes its files. */
  remove: () => Promise<void>
}

export async function startScratchDatabase(signal: AbortSignal): Promise<ScratchDatabase> {
  const directory = openDataDirectory(mkdtempSync(join(tmpdir(), 'usher-scratch-')))
  const deleteFiles = () => rmSync(directory.path, { recursive: true, force: true })
  const secrets = createSecrets()
  try {
    const binaries = await findPostgres()
    const server = await startDatabase({ directory, binaries, secrets, durable: false, progress: () => {}, signal })
    return {
      databaseUrl: databaseUrlFor('postgres', secrets.postgresPassword, server.port),
      remove: async () => {
        await server.stop()
        deleteFiles()
      },
    }
  } catch (error) {
    deleteFiles()
    throw error
  }
}
