// Starts a migrated Postgres and PostgREST on a data directory, without Docker or an account. The order of the steps is here; each step
// is in a file beside it. A start that fails must leave nothing running.

import { existsSync, renameSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { assertNoProxyBetween } from '../process/loopback.ts'
import { identify, isRunning, type ProcessIdentity } from '../process/processes.ts'
import { findPostgres, findPostgrest, type PostgresBinaries } from './binaries.ts'
import { databaseUrlFor } from './client.ts'
import { type DataDirectory, findDataDirectory, openDataDirectory } from './data-directory.ts'
import { startDatabase } from './database-server.ts'
import { interruption } from './interruption.ts'
import { acquireLock } from './lock.ts'
import { applyMigrations } from './migrate.ts'
import { stopOrphans } from './orphans.ts'
import { type PostgrestPorts, startPostgrest } from './postgrest.ts'
import { portsOf, type RunRecord, readRunRecord, removeRunRecord, writeRunRecord } from './run-record.ts'
import { loadOrCreateSecrets, readSecrets, type Secrets } from './secrets.ts'
import { type Supervised, supervise } from './supervise.ts'

export type EmbeddedStack = {
  /** Connection string of `postgres`, the role of Supabase Studio (not a superuser). */
  databaseUrl: string
  /** Base URL of PostgREST on loopback, without the prefix /rest/v1. */
  dataApiUrl: string
  /** HS256 secret that PostgREST verifies tokens with. */
  jwtSecret: string
  /** All ports in use that are recorded: of Postgres, PostgREST, and those added by `note`. */
  ports(): number[]
  /** Adds to the run record, which other commands read. */
  note(change: Pick<RunRecord, 'api' | 'metrics'>): void
  /** Resolves with a sentence when Postgres or PostgREST has ended by itself and restarting it has failed. */
  failed: Promise<string>
  stop(): Promise<void>
}

type Progress = (message: string) => void

type StackOptions = {
  dataDir: string
  progress: Progress
  /** Called when a server has ended by itself and when it is restarted. */
  report?: Progress
}

/** @throws StartError, with a message for a person. Ctrl-C or SIGTERM during the start makes it undo itself and throw. */
export async function startEmbeddedStack(options: StackOptions): Promise<EmbeddedStack> {
  assertNoProxyBetween()
  const directory = openDataDirectory(options.dataDir)
  const lock = await acquireLock(directory)
  const { signal, release } = interruption()
  try {
    const stack = await startLocked(directory, options, signal, lock.release)
    // A signal may have come during the last step: check once more, after one turn of the event loop.
    await setImmediate()
    if (signal.aborted) {
      await stack.stop()
      throw signal.reason
    }
    return stack
  } catch (error) {
    lock.release()
    throw error
  } finally {
    release()
  }
}

/** What the steps of a start share. */
type Start = {
  directory: DataDirectory
  secrets: Secrets
  note: (change: Partial<RunRecord>) => void
  progress: Progress
  report: Progress
  signal: AbortSignal
}

async function startLocked(
  directory: DataDirectory,
  { progress, report = progress }: StackOptions,
  signal: AbortSignal,
  unlock: () => void,
): Promise<EmbeddedStack> {
  const postgresBinaries = await findPostgres()
  const postgrestBinary = findPostgrest()
  await stopOrphans(directory, { postgres: postgresBinaries.postgres, postgrest: postgrestBinary }, progress)
  const { record, note } = keepRunRecord(directory)
  const secrets = loadOrCreateSecrets(directory)
  const start: Start = { directory, secrets, note, progress, report, signal }

  const servers: Supervised[] = []
  const stopEverything = async () => {
    for (const server of servers.toReversed()) await server.stop()
    removeRunRecord(directory)
    unlock()
  }
  try {
    const postgres = await startSupervisedPostgres(start, postgresBinaries)
    servers.push(postgres.supervised)
    const databaseUrl = databaseUrlFor('postgres', secrets.postgresPassword, postgres.port)
    await applyMigrations(databaseUrl, { progress, signal })
    const postgrest = await startSupervisedPostgrest(start, postgrestBinary, postgres.port)
    servers.push(postgrest.supervised)
    const dataApiUrl = postgrest.url
    note({ dataApiUrl, ready: true })

    const seeLog = (sentence: string, log: string) => `${sentence} Its log is ${log}.`
    const failed = Promise.race([
      postgres.supervised.failed.then((sentence) => seeLog(sentence, directory.postgresLog)),
      postgrest.supervised.failed.then((sentence) => seeLog(sentence, directory.postgrestLog)),
    ])
    let stopped: Promise<void> | null = null
    const stop = () => {
      stopped ??= stopEverything()
      return stopped
    }
    return { databaseUrl, dataApiUrl, jwtSecret: secrets.jwtSecret, ports: () => portsOf(record), note, failed, stop }
  } catch (error) {
    await stopEverything()
    throw error
  }
}

function keepRunRecord(directory: DataDirectory): { record: RunRecord; note: (change: Partial<RunRecord>) => void } {
  const usher = identify(process.pid)
  if (usher === null) throw new Error('this process cannot find itself')
  const record: RunRecord = { usher, ready: false }
  writeRunRecord(directory, record)
  return { record, note: (change) => writeRunRecord(directory, Object.assign(record, change)) }
}

async function startSupervisedPostgres(start: Start, binaries: PostgresBinaries) {
  const { directory, secrets, note, progress, report, signal } = start
  const options = {
    directory,
    binaries,
    secrets,
    durable: true,
    onSpawn: (identity: ProcessIdentity, port: number) => note({ postgres: { ...identity, port } }),
  }
  const first = await startDatabase({ ...options, progress, signal })
  const { port } = first
  const supervised = supervise({
    name: 'Postgres',
    first,
    restart(signal) {
      keepLog(directory.postgresLog)
      return startDatabase({ ...options, requiredPort: port, progress: () => {}, signal })
    },
    report,
  })
  return { port, supervised }
}

async function startSupervisedPostgrest(start: Start, binary: string, postgresPort: number) {
  const { directory, secrets, note, progress, report, signal } = start
  progress('Starting PostgREST …')
  const options = {
    binary,
    databaseUrl: databaseUrlFor('authenticator', secrets.authenticatorPassword, postgresPort),
    jwtSecret: secrets.jwtSecret,
    configFile: directory.postgrestConfig,
    logFile: directory.postgrestLog,
    onSpawn: (identity: ProcessIdentity, ports: PostgrestPorts) => note({ postgrest: { ...identity, ...ports } }),
  }
  const first = await startPostgrest({ ...options, signal })
  const { url, ports } = first
  const supervised = supervise({
    name: 'PostgREST',
    first,
    restart(signal) {
      keepLog(directory.postgrestLog)
      return startPostgrest({ ...options, ports, signal })
    },
    report,
  })
  return { url, supervised }
}

/** A start replaces the log: keeps the one that says why the server ended. */
function keepLog(log: string): void {
  if (existsSync(log)) renameSync(log, `${log}.before`)
}

export type RunningStack = Pick<EmbeddedStack, 'databaseUrl' | 'dataApiUrl' | 'jwtSecret'>

/** For other commands while a server runs on the data directory: how to reach its parts. Null: nothing runs there. */
export async function findRunningStack(dataDir: string): Promise<RunningStack | null> {
  const directory = findDataDirectory(dataDir)
  const record = directory === null ? null : readRunRecord(directory)
  if (directory === null || !record?.ready || record.postgres === undefined || !isRunning(record.postgres)) return null
  const secrets = readSecrets(directory)
  if (secrets === null || record.dataApiUrl === undefined) return null
  return {
    databaseUrl: databaseUrlFor('postgres', secrets.postgresPassword, record.postgres.port),
    dataApiUrl: record.dataApiUrl,
    jwtSecret: secrets.jwtSecret,
  }
}

/** The current run record of the data directory. Null: there is none. */
export function recordOfRunningStack(dataDir: string): RunRecord | null {
  const directory = findDataDirectory(dataDir)
  return directory === null ? null : readRunRecord(directory)
}
