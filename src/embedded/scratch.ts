// A throw-away database in a temporary folder, bootstrapped like the real one but without PostgREST and without care for the
// disk: for checks that need a whole cluster of their own, since roles belong to a cluster and not to a database.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chooseAccount, handOver } from './account.ts'
import { findPostgres } from './binaries.ts'
import { bootstrap, createCluster } from './cluster.ts'
import { openDataDirectory } from './data-directory.ts'
import { databaseUrlFor } from './database.ts'
import { startPostgres } from './postgres.ts'
import { createSecrets } from './secrets.ts'

export type ScratchDatabase = {
  /** As `postgres`. */
  databaseUrl: string
  /** Stops it and deletes its files. */
  remove: () => Promise<void>
}

export async function startScratchDatabase(signal: AbortSignal): Promise<ScratchDatabase> {
  const directory = openDataDirectory(mkdtempSync(join(tmpdir(), 'usher-scratch-')))
  const deleteFiles = () => rmSync(directory.path, { recursive: true, force: true })
  try {
    const binaries = await findPostgres()
    const account = chooseAccount(directory.path, directory.database, binaries.directory)
    handOver(directory.path, directory.database, account)
    const secrets = createSecrets()
    const shared = { databaseDir: directory.database, binaries, account, signal }
    await createCluster({ ...shared, password: secrets.superuserPassword, durable: false })
    const server = await startPostgres({
      ...shared,
      logFile: directory.postgresLog,
      settings: ['fsync=off', 'full_page_writes=off', 'synchronous_commit=off'],
    })
    const remove = async () => {
      await server.stop()
      deleteFiles()
    }
    try {
      await bootstrap(server.port, secrets)
    } catch (error) {
      await remove()
      throw error
    }
    return { databaseUrl: databaseUrlFor('postgres', secrets.postgresPassword, server.port), remove }
  } catch (error) {
    deleteFiles()
    throw error
  }
}
