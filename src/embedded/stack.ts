// Postgres and PostgREST on this machine, without Docker or an account: takes a data directory, gives back the addresses of
// a migrated database and its Data API. The order of everything is here; how each part is done is in the files beside it.
// Whatever happens, a start that fails leaves nothing running.

import { setImmediate } from 'node:timers/promises'
import { findPostgres, findPostgrest } from './binaries.ts'
import { type DataDirectory, findDataDirectory, openDataDirectory } from './data-directory.ts'
import { databaseUrlFor } from './database.ts'
import { startDatabase } from './database-server.ts'
import { interruption } from './interruption.ts'
import { acquireLock } from './lock.ts'
import { applyMigrations } from './migrate.ts'
import { stopOrphans } from './orphans.ts'
import { startPostgrest } from './postgrest.ts'
import { identify, isRunning } from './processes.ts'
import { type RunRecord, readRunRecord, removeRunRecord, writeRunRecord } from './run-record.ts'
import { loadOrCreateSecrets, readSecrets } from './secrets.ts'

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
    const stack = await startLocked(directory, options.progress, signal, lock.release)
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
  progress: Progress,
  signal: AbortSignal,
  unlock: () => void,
): Promise<EmbeddedStack> {
  const binaries = await findPostgres()
  const postgrestBinary = findPostgrest()
  await stopOrphans(directory, { postgres: binaries.postgres, postgrest: postgrestBinary }, progress)
  const note = keepRunRecord(directory)
  const secrets = loadOrCreateSecrets(directory)

  const servers: { stop: () => Promise<void> }[] = []
  const stopEverything = async () => {
    for (const server of servers.toReversed()) await server.stop()
    removeRunRecord(directory)
    unlock()
  }
  try {
    const postgres = await startDatabase({
      directory,
      binaries,
      secrets,
      durable: true,
      progress,
      onSpawn: (identity, port) => note({ postgres: { ...identity, port } }),
      signal,
    })
    servers.push(postgres)
    const databaseUrl = databaseUrlFor('postgres', secrets.postgresPassword, postgres.port)
    await applyMigrations(databaseUrl, { progress, signal })
    progress('Starting PostgREST …')
    const postgrest = await startPostgrest({
      binary: postgrestBinary,
      databaseUrl: databaseUrlFor('authenticator', secrets.authenticatorPassword, postgres.port),
      jwtSecret: secrets.jwtSecret,
      configFile: directory.postgrestConfig,
      logFile: directory.postgrestLog,
      onSpawn: (identity) => note({ postgrest: identity }),
      signal,
    })
    servers.push(postgrest)
    note({ dataApiUrl: postgrest.url, ready: true })

    let stopped: Promise<void> | null = null
    const failed = new Promise<string>((resolve) => {
      const watch = async (name: string, ended: Promise<string>, log: string) => {
        const how = await ended
        if (stopped === null) resolve(`${name} ended unexpectedly (${how}). Its log is ${log}.`)
      }
      void watch('Postgres', postgres.ended, directory.postgresLog)
      void watch('PostgREST', postgrest.ended, directory.postgrestLog)
    })
    const stop = () => {
      stopped ??= stopEverything()
      return stopped
    }
    return { databaseUrl, dataApiUrl: postgrest.url, jwtSecret: secrets.jwtSecret, failed, stop }
  } catch (error) {
    await stopEverything()
    throw error
  }
}

function keepRunRecord(directory: DataDirectory): (change: Partial<RunRecord>) => void {
  const usher = identify(process.pid)
  if (usher === null) throw new Error('this process cannot find itself')
  const record: RunRecord = { usher, ready: false }
  writeRunRecord(directory, record)
  return (change) => writeRunRecord(directory, Object.assign(record, change))
}
