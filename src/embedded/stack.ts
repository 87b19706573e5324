// Postgres and PostgREST on this machine, without Docker or an account: takes a data directory, gives back the addresses of
// a migrated database and its Data API. The order of everything is here; how each part is done is in the files beside it.
// Whatever happens, a start that fails leaves nothing running.

import { existsSync, renameSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { findPostgres, findPostgrest } from './binaries.ts'
import { type DataDirectory, findDataDirectory, openDataDirectory } from './data-directory.ts'
import { databaseUrlFor } from './database.ts'
import { startDatabase } from './database-server.ts'
import { interruption } from './interruption.ts'
import { acquireLock } from './lock.ts'
import { applyMigrations } from './migrate.ts'
import { stopOrphans } from './orphans.ts'
import { type PostgrestPorts, startPostgrest } from './postgrest.ts'
import { identify, isRunning, type ProcessIdentity } from './processes.ts'
import { portsOf, type RunRecord, readRunRecord, removeRunRecord, writeRunRecord } from './run-record.ts'
import { loadOrCreateSecrets, readSecrets } from './secrets.ts'
import { supervise } from './supervise.ts'

export type EmbeddedStack = {
  /** Connection string of `postgres`, the role Supabase Studio uses (not a superuser). */
  databaseUrl: string
  /** Base URL of PostgREST on loopback, no /rest/v1 prefix. */
  dataApiUrl: string
  /** HS256 secret PostgREST verifies tokens with. */
  jwtSecret: string
  /** Every port that is known to be used: of Postgres, PostgREST and whatever was noted. */
  ports(): number[]
  /** Adds to what others find in the run record. */
  note(change: Pick<RunRecord, 'api' | 'metrics'>): void
  /** Resolves with a sentence when Postgres or PostgREST ended by itself and cannot be started again. */
  failed: Promise<string>
  stop(): Promise<void>
}

type Progress = (message: string) => void

type StackOptions = {
  dataDir: string
  progress: Progress
  /** Told when a part ends by itself and is started again. */
  report?: Progress
}

/** Throws StartError, with a message for a person. Ctrl-C or SIGTERM while it starts makes it undo itself and throw. */
export async function startEmbeddedStack(options: StackOptions): Promise<EmbeddedStack> {
  const directory = openDataDirectory(options.dataDir)
  const lock = await acquireLock(directory)
  const { signal, release } = interruption()
  try {
    const stack = await startLocked(directory, options, signal, lock.release)
    // A signal may have come while the last step was ending: look once more, after one turn of the event loop.
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

export type RunningStack = Pick<EmbeddedStack, 'databaseUrl' | 'dataApiUrl' | 'jwtSecret'>

/** What is recorded of the stack that runs on the data directory, at this moment; null when nothing is. */
export function recordOfRunningStack(dataDir: string): RunRecord | null {
  const directory = findDataDirectory(dataDir)
  return directory === null ? null : readRunRecord(directory)
}

/** For other commands while a server runs on the data directory: how to reach its parts, or null when nothing runs there. */
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

async function startLocked(
  directory: DataDirectory,
  { progress, report = progress }: StackOptions,
  signal: AbortSignal,
  unlock: () => void,
): Promise<EmbeddedStack> {
  const binaries = await findPostgres()
  const postgrestBinary = findPostgrest()
  await stopOrphans(directory, { postgres: binaries.postgres, postgrest: postgrestBinary }, progress)
  const { record, note } = keepRunRecord(directory)
  const secrets = loadOrCreateSecrets(directory)

  const servers: { stop: () => Promise<void> }[] = []
  const stopEverything = async () => {
    for (const server of servers.toReversed()) await server.stop()
    removeRunRecord(directory)
    unlock()
  }
  try {
    const databaseOptions = {
      directory,
      binaries,
      secrets,
      durable: true,
      onSpawn: (identity: ProcessIdentity, port: number) => note({ postgres: { ...identity, port } }),
    }
    const postgres = await startDatabase({ ...databaseOptions, progress, signal })
    const { port } = postgres
    const supervisedPostgres = supervise({
      name: 'Postgres',
      first: postgres,
      restart(signal) {
        keepLog(directory.postgresLog)
        return startDatabase({ ...databaseOptions, samePort: port, progress: () => {}, signal })
      },
      report,
    })
    servers.push(supervisedPostgres)
    const databaseUrl = databaseUrlFor('postgres', secrets.postgresPassword, port)
    await applyMigrations(databaseUrl, { progress, signal })
    progress('Starting PostgREST …')
    const postgrestOptions = {
      binary: postgrestBinary,
      databaseUrl: databaseUrlFor('authenticator', secrets.authenticatorPassword, port),
      jwtSecret: secrets.jwtSecret,
      configFile: directory.postgrestConfig,
      logFile: directory.postgrestLog,
      onSpawn: (identity: ProcessIdentity, ports: PostgrestPorts) => note({ postgrest: { ...identity, ...ports } }),
    }
    const postgrest = await startPostgrest({ ...postgrestOptions, signal })
    const { url: dataApiUrl, ports } = postgrest
    const supervisedPostgrest = supervise({
      name: 'PostgREST',
      first: postgrest,
      restart(signal) {
        keepLog(directory.postgrestLog)
        return startPostgrest({ ...postgrestOptions, ports, signal })
      },
      report,
    })
    servers.push(supervisedPostgrest)
    note({ dataApiUrl, ready: true })

    const seeLog = (sentence: string, log: string) => `${sentence} Its log is ${log}.`
    const failed = Promise.race([
      supervisedPostgres.failed.then((sentence) => seeLog(sentence, directory.postgresLog)),
      supervisedPostgrest.failed.then((sentence) => seeLog(sentence, directory.postgrestLog)),
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

/** A server begins its log afresh: that of one that ended by itself says why. */
function keepLog(log: string): void {
  if (existsSync(log)) renameSync(log, `${log}.before`)
}

function keepRunRecord(directory: DataDirectory): { record: RunRecord; note: (change: Partial<RunRecord>) => void } {
  const usher = identify(process.pid)
  if (usher === null) throw new Error('this process cannot find itself')
  const record: RunRecord = { usher, ready: false }
  writeRunRecord(directory, record)
  return { record, note: (change) => writeRunRecord(directory, Object.assign(record, change)) }
}
