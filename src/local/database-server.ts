// Starts a bootstrapped Postgres on a data directory and creates it first if it does not exist, for the embedded stack and for scratch
// databases. It must never apply a migration.

import { chmodSync, existsSync, readFileSync } from 'node:fs'
import type { ProcessIdentity } from '../process/processes.ts'
import { StartError } from '../process/start-error.ts'
import { chooseAccount, grantAccess } from './account.ts'
import type { PostgresBinaries } from './binaries.ts'
import { bootstrap, createCluster, removeUnfinished } from './cluster.ts'
import { type DataDirectory, writeFileAtomically } from './data-directory.ts'
import { type PostgresServer, startPostgres } from './postgres.ts'
import type { Secrets } from './secrets.ts'

export async function startDatabase(options: {
  directory: DataDirectory
  binaries: PostgresBinaries
  secrets: Secrets
  /** False: does not wait for the disk, for a temporary database. */
  durable: boolean
  progress: (message: string) => void
  /** The port of the server that this one replaces. */
  requiredPort?: number
  onSpawn?: (identity: ProcessIdentity, port: number) => void
  signal: AbortSignal
}): Promise<PostgresServer> {
  const { directory, binaries, secrets, durable, progress, signal } = options
  const account = chooseAccount(directory.path, directory.database, binaries.directory)
  grantAccess(directory.path, directory.database, account)
  const shared = { databaseDir: directory.database, binaries, account, signal }
  await removeUnfinished(directory.database, binaries)
  if (!existsSync(directory.database)) {
    // A restart must not replace a lost database by an empty one: that would hide the loss.
    if (options.requiredPort !== undefined) throw new StartError(`${directory.database} is missing.`)
    progress('Creating the database (first start) …')
    await createCluster({ ...shared, password: secrets.superuserPassword, durable })
  }
  // Postgres requires this mode, and a folder restored from a backup may have another.
  chmodSync(directory.database, 0o700)
  progress('Starting Postgres …')
  const server = await startPostgres({
    ...shared,
    logFile: directory.postgresLog,
    preferredPort: rememberedPort(directory),
    requiredPort: options.requiredPort,
    settings: durable ? [] : ['fsync=off', 'full_page_writes=off', 'synchronous_commit=off'],
    ...(options.onSpawn === undefined ? {} : { onSpawn: options.onSpawn }),
  })
  try {
    writeFileAtomically(directory.port, `${server.port}\n`)
    await bootstrap(server.port, secrets)
    return server
  } catch (error) {
    await server.stop()
    throw error
  }
}

function rememberedPort(directory: DataDirectory): number | undefined {
  if (!existsSync(directory.port)) return undefined
  const port = Number(readFileSync(directory.port, 'utf8'))
  return Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined
}
