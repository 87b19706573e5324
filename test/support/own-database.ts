// A Postgres of a test's own, with every migration and no row: for what changes a whole cluster, or needs one in which nothing else happens.

import { rm } from 'node:fs/promises'
import { findPostgres } from '../../src/local/binaries.ts'
import { databaseUrlFor } from '../../src/local/client.ts'
import { superuser } from '../../src/local/cluster.ts'
import { openDataDirectory } from '../../src/local/data-directory.ts'
import { startDatabase } from '../../src/local/database-server.ts'
import { loadOrCreateSecrets } from '../../src/local/secrets.ts'
import { makeDataDirectory } from './data-directory.ts'

export type OwnDatabase = {
  /** As the role that Studio uses. */
  databaseUrl: string
  superuserUrl: string
  remove: () => Promise<void>
}

export async function startOwnDatabase(): Promise<OwnDatabase> {
  const path = await makeDataDirectory()
  const deleteFiles = () => rm(path, { recursive: true, force: true })
  try {
    const directory = openDataDirectory(path)
    const secrets = loadOrCreateSecrets(directory)
    const server = await startDatabase({
      directory,
      binaries: await findPostgres(),
      secrets,
      durable: false,
      progress: () => {},
      signal: new AbortController().signal,
    })
    return {
      databaseUrl: databaseUrlFor('postgres', secrets.postgresPassword, server.port),
      superuserUrl: databaseUrlFor(superuser, secrets.superuserPassword, server.port),
      remove: async () => {
        await server.stop()
        await deleteFiles()
      },
    }
  } catch (error) {
    await deleteFiles()
    throw error
  }
}
