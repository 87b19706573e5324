// A bootstrapped Postgres on a data directory, made if it is not there yet: what the embedded stack and a scratch database
// have in common. Takes the folder and its secrets, gives back a server in which `postgres` can sign in. It applies no
// migrations.

import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { StartError } from '../start-error.ts'
import { chooseAccount, handOver } from './account.ts'
import type { PostgresBinaries } from './binaries.ts'
import { bootstrap, createCluster } from './cluster.ts'
import { type DataDirectory, writeFileAtomically } from './data-directory.ts'
import { type PostgresServer, startPostgres } from './postgres.ts'
import type { ProcessIdentity } from './processes.ts'
import type { Secrets } from './secrets.ts'

export async function startDatabase(options: {
  directory: DataDirectory
  binaries: PostgresBinaries
  secrets: Secrets
  /** False for a database that is thrown away: it does not wait for the disk. */
  durable: boolean
  progress: (message: string) => void
  /** The port of one that ended, whose place it takes. */
  samePort?: number
  onSpawn?: (identity: ProcessIdentity, port: number) => void
  signal: AbortSignal
}): Promise<PostgresServer> {
  const { directory, binaries, secrets, durable, progress, signal } = options
  const account = chooseAccount(directory.path, directory.database, binaries.directory)
  handOver(directory.path, directory.database, account)
  const shared = { databaseDir: directory.database, binaries, account, signal }
  if (!existsSync(directory.database)) {
    // An empty database in the place of one that was lost would hide the loss.
    if (options.samePort !== undefined) throw new StartError(`${directory.database} is gone.`)
    progress('Creating the database (first start) …')
    await createCluster({ ...shared, password: secrets.superuserPassword, durable })
  }
  // Postgres insists on it, and a folder restored from a backup may have lost it.
  chmodSync(directory.database, 0o700)
  progress('Starting Postgres …')
  const server = await startPostgres({
    ...shared,
    logFile: directory.postgresLog,
    preferredPort: rememberedPort(directory),
    samePort: options.samePort,
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
