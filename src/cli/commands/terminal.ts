// What every command reads and writes, and the database that it works on.

import type pg from 'pg'
import { withDatabase } from '../../local/admin.ts'
import { findRunningStack } from '../../local/stack.ts'
import { StartError } from '../../process/start-error.ts'
import { type Config, ConfigError, readConfig } from '../config.ts'

/** What a command reads and writes: the process, or a test's own. */
export type Surroundings = {
  environment: NodeJS.ProcessEnv
  stdin: NodeJS.ReadableStream & { isTTY?: boolean }
  stdout: { write(text: string): unknown }
  stderr: { write(text: string): unknown; isTTY?: boolean }
  /** Aborts when the process is asked to stop; before it is called, a signal ends the process. */
  stopSignal(force: () => void): AbortSignal
  /** Ends the process, whatever is still open. */
  exit(code: number): void
}

export type Terminal = ReturnType<typeof openTerminal>

export function openTerminal(surroundings: Surroundings) {
  const { environment, stdout, stderr, stopSignal } = surroundings
  const print = (text: string): void => void stdout.write(`${text}\n`)
  const say = (text: string): void => void stderr.write(`${text}\n`)
  return {
    ...surroundings,
    print,
    say,
    printJson: (value: unknown): void => print(JSON.stringify(value, null, 2)),
    onDatabase: async <T>(work: (client: pg.ClientBase) => Promise<T>): Promise<T> =>
      withDatabase(await databaseUrl(readConfig(environment)), work),
    /** Aborts at the first signal. The second ends the process: Postgres and PostgREST are stopped by a handler of its exit. */
    handleStopSignals: (): AbortSignal =>
      stopSignal(() => {
        say('Stopping at once.')
        process.exit(1)
      }),
  }
}

export async function databaseUrl(config: Config): Promise<string> {
  if (config.databaseUrl !== undefined) return config.databaseUrl
  if (config.database.kind === 'supabase') {
    throw new ConfigError('DATABASE_URL must be set with SUPABASE_URL: the connection string of the role postgres.')
  }
  const running = await findRunning(config)
  if (running === null) {
    throw new StartError(
      `No Usher runs on ${config.database.dataDir}. Start it with: npm start (USHER_DATA_DIR names another folder, DATABASE_URL another database.)`,
    )
  }
  return running.databaseUrl
}

/** The Usher that runs on this machine: its database, and where its API listens. Null: none, or it is not configured for one. */
export async function findRunning({ database }: Config) {
  return database.kind === 'supabase' ? null : findRunningStack(database.dataDir)
}
