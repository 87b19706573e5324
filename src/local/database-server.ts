// Starts a bootstrapped Postgres on a data directory and creates it first if it does not exist, for the embedded stack and for scratch
// databases. It must never apply a migration.

import { chmodSync, existsSync } from 'node:fs'
import { StartError } from '../process/start-error.ts'
import { chooseAccount, grantAccess } from './account.ts'
import { bootstrap, createCluster, removeUnfinished } from './cluster.ts'
import { type PostgresOptions, type PostgresServer, startPostgres } from './postgres.ts'
import type { Secrets } from './secrets.ts'

export async function startDatabase({
  secrets,
  progress,
  ...options
}: Omit<PostgresOptions, 'account'> & {
  secrets: Secrets
  progress: (message: string) => void
}): Promise<PostgresServer> {
  const { directory, binaries, durable, signal } = options
  const databaseDir = directory.database
  const account = chooseAccount(directory.path, databaseDir, binaries.directory)
  grantAccess(directory.path, databaseDir, account)
  await removeUnfinished(databaseDir, binaries)
  if (!existsSync(databaseDir)) {
    // A restart must not replace a lost database by an empty one: that would hide the loss.
    if (options.requiredPort !== undefined) throw new StartError(`${databaseDir} is missing.`)
    progress('Creating the database (first start) …')
    await createCluster({ databaseDir, binaries, account, password: secrets.superuserPassword, durable, signal })
  }
  // Postgres requires this mode, and a folder restored from a backup may have another.
  chmodSync(databaseDir, 0o700)
  progress('Starting Postgres …')
  const server = await startPostgres({ ...options, account })
  try {
    await bootstrap(server.port, secrets)
    return server
  } catch (error) {
    await server.stop()
    throw error
  }
}
