// Postgres and PostgREST on this machine, without Docker or an account: takes a data directory, gives back the addresses of
// a migrated database and its Data API. The order of everything is here; how each part is done is in the files beside it.
// Whatever happens, a start that fails leaves nothing running.

import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { chooseAccount, handOver } from './account.ts'
import { findPostgres, findPostgrest } from './binaries.ts'
import { bootstrap, createCluster } from './cluster.ts'
import { type DataDirectory, findDataDirectory, openDataDirectory, writeFileAtomically } from './data-directory.ts'
import { databaseUrlFor } from './database.ts'
import { interruption } from './interruption.ts'
import { acquireLock } from './lock.ts'
import { applyMigrations } from './migrate.ts'
import { stopOrphans } from './orphans.ts'
import { type PostgresServer, startPostgres } from './postgres.ts'
import { startPostgrest } from './postgrest.ts'
import { identify, isRunning } from './processes.ts'
import { type RunRecord, readRunRecord, removeRunRecord, writeRunRecord } from './run-record.ts'
import { loadOrCreateSecrets, readSecrets, type Secrets } from './secrets.ts'

export type EmbeddedStack = {
  /** Connection string of `postgres`, the role Supabase Studio uses (not a superuser). */
  databaseUrl: string
  /** Base URL of PostgREST on loopback, no /rest/v1 prefix. */
  dataApiUrl: string
  /** HS256 secret PostgREST verifies tokens with. */
  jwtSecret: string
  /** Resolves with a sentence when Postgres or PostgREST ends without being asked to. */
  failed: Promise<string>
  stop(): Promise<void>
}

type Progress = (message: string) => void

/** Throws StartError, with a message for a person. Ctrl-C or SIGTERM while it starts makes it undo itself and throw. */
export async function startEmbeddedStack(options: { dataDir: string; progress: Progress }): Promise<EmbeddedStack> {
  const directory = openDataDirectory(options.dataDir)
  const lock = await acquireLock(directory)
  const { signal, release } = interruption()
  try {
    return await startLocked(directory, options.progress, signal, lock.release)
  } catch (error) {
    lock.release()
    throw error
  } finally {
    release()
  }
}

/** For the command line while a server runs on the data directory: its connection string, or null when nothing runs there. */
export async function runningDatabaseUrl(dataDir: string): Promise<string | null> {
  const directory = findDataDirectory(dataDir)
  const record = directory === null ? null : readRunRecord(directory)
  if (directory === null || !record?.ready || record.postgres === undefined || !isRunning(record.postgres)) return null
  const secrets = readSecrets(directory)
  return secrets === null ? null : databaseUrlFor('postgres', secrets.postgresPassword, record.postgres.port)
}

async function startLocked(
  directory: DataDirectory,
  progress: Progress,
  signal: AbortSignal,
  unlock: () => void,
): Promise<EmbeddedStack> {
  const postgrestBinary = findPostgrest()
  await stopOrphans(directory, progress)
  const usher = identify(process.pid)
  if (usher === null) throw new Error('this process cannot find itself')
  const record: RunRecord = { usher, ready: false }
  const note = (change: Partial<RunRecord>) => writeRunRecord(directory, Object.assign(record, change))
  note({})

  const secrets = loadOrCreateSecrets(directory)
  const postgres = await startDatabase(directory, secrets, progress, signal, note)
  try {
    await bootstrap(postgres.port, secrets)
    const databaseUrl = databaseUrlFor('postgres', secrets.postgresPassword, postgres.port)
    await applyMigrations(databaseUrl, { progress, signal })
    progress('Starting PostgREST …')
    const postgrest = await startPostgrest({
      binary: postgrestBinary,
      databaseUrl: databaseUrlFor('authenticator', secrets.authenticatorPassword, postgres.port),
      jwtSecret: secrets.jwtSecret,
      logFile: directory.postgrestLog,
      cwd: directory.path,
      onSpawn: (identity) => note({ postgrest: identity }),
      signal,
    })
    note({ ready: true })

    let stopping: Promise<void> | null = null
    const stop = async () => {
      await postgrest.stop()
      await postgres.stop()
      removeRunRecord(directory)
      unlock()
    }
    const failed = new Promise<string>((resolve) => {
      const watch = (name: string, ended: Promise<string>, log: string) =>
        void ended.then((how) => stopping ?? resolve(`${name} ended unexpectedly (${how}). Its log is ${log}.`))
      watch('Postgres', postgres.ended, directory.postgresLog)
      watch('PostgREST', postgrest.ended, directory.postgrestLog)
    })
    return {
      databaseUrl,
      dataApiUrl: postgrest.url,
      jwtSecret: secrets.jwtSecret,
      failed,
      stop: () => (stopping ??= stop()),
    }
  } catch (error) {
    await postgres.stop()
    removeRunRecord(directory)
    throw error
  }
}

async function startDatabase(
  directory: DataDirectory,
  secrets: Secrets,
  progress: Progress,
  signal: AbortSignal,
  note: (change: Partial<RunRecord>) => void,
): Promise<PostgresServer> {
  const binaries = await findPostgres()
  const account = chooseAccount(directory.path, directory.database, binaries.directory)
  handOver(directory.path, directory.database, account)
  if (!existsSync(directory.database)) {
    progress('Creating the database (first start) …')
    await createCluster({
      databaseDir: directory.database,
      binaries,
      account,
      password: secrets.superuserPassword,
      durable: true,
      signal,
    })
  }
  // Postgres insists on it, and a folder restored from a backup may have lost it.
  chmodSync(directory.database, 0o700)
  progress('Starting Postgres …')
  const server = await startPostgres({
    databaseDir: directory.database,
    logFile: directory.postgresLog,
    binaries,
    account,
    preferredPort: rememberedPort(directory),
    onSpawn: (identity, port) => note({ postgres: { ...identity, port } }),
    signal,
  })
  writeFileAtomically(directory.port, `${server.port}\n`)
  return server
}

function rememberedPort(directory: DataDirectory): number | undefined {
  if (!existsSync(directory.port)) return undefined
  const port = Number(readFileSync(directory.port, 'utf8'))
  return Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined
}
