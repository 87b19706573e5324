// Runs Postgres on an existing cluster, and resolves once it accepts connections on 127.0.0.1. It must never listen anywhere else. It has
// no Unix socket, because the path of a socket must be short and that of a data directory may be long.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ProcessIdentity, run, type StopStep, stopProcess } from '../process/processes.ts'
import { StartError } from '../process/start-error.ts'
import type { PostgresAccount } from './account.ts'
import type { PostgresBinaries } from './binaries.ts'
import { postgresEnvironment } from './cluster.ts'
import { freePort } from './ports.ts'
import { type ServerProcess, spawnServer, tail } from './spawn-server.ts'

export type PostgresServer = ServerProcess & { port: number; stop: () => Promise<void> }

export type PostgresOptions = {
  databaseDir: string
  logFile: string
  binaries: PostgresBinaries
  account: PostgresAccount
  /** Used if it is free. */
  preferredPort?: number | undefined
  /** Used in any case: the port of the server that this one replaces. */
  requiredPort?: number | undefined
  /** Further settings, as `name=value`. */
  settings?: string[]
  onSpawn?: (identity: ProcessIdentity, port: number) => void
  signal: AbortSignal
}

// SIGINT: end the sessions, write a checkpoint. SIGQUIT: stop at once, recover at the next start.
export const stopPostgresSteps: StopStep[] = [
  ['SIGINT', 4000],
  ['SIGQUIT', 1000],
  ['SIGKILL', 500],
]

// For an Usher that exits at once: in total within the two seconds that remain of a forced stop.
const exitSteps: StopStep[] = [
  ['SIGINT', 500],
  ['SIGQUIT', 500],
  ['SIGKILL', 500],
]

// How long to retry while the remains of a killed Postgres, or another program on the port, prevent the start.
const startRetryMs = 5000

export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const deadline = Date.now() + startRetryMs
  let port = options.requiredPort ?? (await freePort(options.preferredPort))
  for (;;) {
    const server = await spawnPostgres(options, port)
    if (await isReady(server, options)) return { ...server, port, stop: () => stopPostgres(server, options) }

    const log = tail(options.logFile)
    const portTaken = /could not (bind|create any TCP)/.test(log)
    const remainsFound = /lock file .* already exists|pre-existing shared memory block/.test(log)
    if (Date.now() > deadline || !(portTaken || remainsFound)) {
      throw new StartError(
        `Postgres did not start (${await server.ended}). Its log, ${options.logFile}, ends with:${log}`,
      )
    }
    await sleep(100)
    if (portTaken && options.requiredPort === undefined) port = await freePort()
  }
}

/** The content of the pid file of Postgres; null if there is none. */
export function readPidFile(databaseDir: string): { pid: number; ready: boolean } | null {
  try {
    const lines = readFileSync(join(databaseDir, 'postmaster.pid'), 'utf8').split('\n')
    return { pid: Math.abs(Number(lines[0])), ready: lines[7]?.trim() === 'ready' }
  } catch {
    return null
  }
}

function spawnPostgres(options: PostgresOptions, port: number): Promise<ServerProcess> {
  const { account, binaries, databaseDir } = options
  const settings = [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    'unix_socket_directories=',
    ...(options.settings ?? []),
  ].flatMap((setting) => ['-c', setting])
  const command = [...account.prefix, binaries.postgres, '-D', databaseDir, ...settings]
  return spawnServer(command[0] ?? binaries.postgres, command.slice(1), {
    env: postgresEnvironment(),
    cwd: databaseDir,
    ...(account.uid === undefined ? {} : { uid: account.uid, gid: account.gid }),
    logFile: options.logFile,
    exitSteps,
    onSpawn: (identity) => options.onSpawn?.(identity, port),
  })
}

// Without a timeout, because crash recovery may take long. False: the process has ended.
async function isReady(server: ServerProcess, options: PostgresOptions): Promise<boolean> {
  let ended = false
  void server.ended.then(() => {
    ended = true
  })
  while (!ended) {
    const pidFile = readPidFile(options.databaseDir)
    if (pidFile?.ready && pidFile.pid === server.identity.pid) return true
    if (options.signal.aborted) {
      await stopPostgres(server, options)
      throw options.signal.reason
    }
    await sleep(10)
  }
  return false
}

async function stopPostgres(server: ServerProcess, options: PostgresOptions): Promise<void> {
  if (process.platform === 'win32') {
    // Windows has no signals: pg_ctl uses a named pipe instead.
    await run(options.binaries.pgCtl, ['stop', '-D', options.databaseDir, '-m', 'fast', '-t', '4'], {
      env: postgresEnvironment(),
    })
  }
  await stopProcess(server.identity, stopPostgresSteps)
}
