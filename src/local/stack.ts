// Starts a migrated Postgres and PostgREST on a data directory, without Docker or an account. The order of the steps is here; each step
// is in a file beside it. A start that fails must leave nothing running.

import { existsSync, renameSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { assertNoProxyBetween } from '../process/loopback.ts'
import { isRunning, type ProcessIdentity } from '../process/processes.ts'
import { interruption } from '../process/stop-signals.ts'
import { findPostgres, findPostgrest } from './binaries.ts'
import { databaseUrlFor } from './client.ts'
import { findDataDirectory, openDataDirectory } from './data-directory.ts'
import { startDatabase } from './database-server.ts'
import { acquireLock } from './lock.ts'
import { applyMigrations } from './migrate.ts'
import { stopOrphans } from './orphans.ts'
import { type PostgrestPorts, startPostgrest } from './postgrest.ts'
import { portsOf, type RunRecord, readRunRecord, removeRunRecord, writeRunRecord } from './run-record.ts'
import { loadOrCreateSecrets, readSecrets } from './secrets.ts'
import { type Supervised, supervise } from './supervise.ts'

export type EmbeddedStack = RunningStack & {
  /** Ports of Postgres and PostgREST, which a restart keeps. */
  ports: number[]
  /** Adds to the run record, which other commands read. */
  note(change: Pick<RunRecord, 'api' | 'metrics'>): void
  /** Resolves with a sentence when Postgres or PostgREST has ended by itself and restarting it has failed. */
  failed: Promise<string>
  stop(): Promise<void>
}

/** How to reach the parts of a stack. */
export type RunningStack = {
  /** Connection string of `postgres`, the role of Supabase Studio (not a superuser). */
  databaseUrl: string
  /** Base URL of PostgREST on loopback, without the prefix /rest/v1. */
  dataApiUrl: string
  /** HS256 secret that PostgREST verifies tokens with. */
  jwtSecret: string
}

type StackOptions = {
  dataDir: string
  progress: (message: string) => void
  /** Called when a server has ended by itself and when it is restarted. */
  report?: (message: string) => void
}

/** @throws StartError, with a message for a person. Ctrl-C or SIGTERM during the start makes it undo itself and throw. */
export async function startEmbeddedStack({
  dataDir,
  progress,
  report = progress,
}: StackOptions): Promise<EmbeddedStack> {
  assertNoProxyBetween()
  const directory = openDataDirectory(dataDir)
  const lock = acquireLock(directory)
  const { signal, release } = interruption()
  const servers: Supervised[] = []
  const stopEverything = async () => {
    for (const server of servers.toReversed()) await server.stop()
    removeRunRecord(directory)
    lock.release()
  }
  try {
    const binaries = await findPostgres()
    const binary = findPostgrest()
    await stopOrphans(directory, binaries, binary, progress)
    const record: RunRecord = { usher: { pid: process.pid }, ready: false }
    const note = (change: Partial<RunRecord>) => writeRunRecord(directory, Object.assign(record, change))
    note({})
    const secrets = loadOrCreateSecrets(directory)

    const ofPostgres = {
      ...{ directory, binaries, secrets, durable: true },
      onSpawn: (identity: ProcessIdentity, port: number) => note({ postgres: { ...identity, port } }),
    }
    const postgres = await startDatabase({ ...ofPostgres, progress, signal })
    const { port } = postgres
    const restartPostgres = (signal: AbortSignal) => {
      keepLog(directory.postgresLog)
      return startDatabase({ ...ofPostgres, requiredPort: port, progress: () => {}, signal })
    }
    servers.push(supervise({ name: 'Postgres', first: postgres, restart: restartPostgres, report }))
    const databaseUrl = databaseUrlFor('postgres', secrets.postgresPassword, port)
    await applyMigrations(databaseUrl, { progress, signal })

    progress('Starting PostgREST …')
    const ofPostgrest = {
      ...{ directory, binary, secrets, postgresPort: port },
      onSpawn: (identity: ProcessIdentity, ports: PostgrestPorts) => note({ postgrest: { ...identity, ...ports } }),
    }
    const postgrest = await startPostgrest({ ...ofPostgrest, signal })
    const restartPostgrest = (signal: AbortSignal) => {
      keepLog(directory.postgrestLog)
      return startPostgrest({ ...ofPostgrest, ports: postgrest.ports, signal })
    }
    servers.push(supervise({ name: 'PostgREST', first: postgrest, restart: restartPostgrest, report }))
    note({ dataApiUrl: postgrest.url, ready: true })
    // A signal may have come during the last step: check once more, after one turn of the event loop.
    await setImmediate()
    signal.throwIfAborted()

    const failed = Promise.race(servers.map((server) => server.failed))
    let stopped: Promise<void> | undefined
    return {
      databaseUrl,
      dataApiUrl: postgrest.url,
      jwtSecret: secrets.jwtSecret,
      ports: portsOf(record),
      note,
      failed: failed.then((sentence) => `${sentence} Its log is in ${directory.path}.`),
      stop() {
        stopped ??= stopEverything()
        return stopped
      },
    }
  } catch (error) {
    await stopEverything()
    throw error
  } finally {
    release()
  }
}

/** A start replaces the log: keeps the one that says why the server ended. */
function keepLog(log: string): void {
  if (existsSync(log)) renameSync(log, `${log}.before`)
}

/** For other commands while a server runs on the data directory, with what it recorded. Null: nothing runs there. */
export async function findRunningStack(dataDir: string): Promise<(RunningStack & { record: RunRecord }) | null> {
  const directory = findDataDirectory(dataDir)
  const record = directory === null ? null : readRunRecord(directory)
  if (directory === null || !record?.ready || record.postgres === undefined || !isRunning(record.postgres)) return null
  const secrets = readSecrets(directory)
  if (secrets === null || record.dataApiUrl === undefined) return null
  return {
    databaseUrl: databaseUrlFor('postgres', secrets.postgresPassword, record.postgres.port),
    dataApiUrl: record.dataApiUrl,
    jwtSecret: secrets.jwtSecret,
    record,
  }
}
