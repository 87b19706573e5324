// Runs Postgres on files that exist: takes the folder and a port that would be welcome, gives back a server that accepts
// connections on 127.0.0.1 and can be stopped. It never listens anywhere else, and makes no Unix socket (their paths must be
// short, and a data directory's may not be).

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { StartError } from '../start-error.ts'
import type { PostgresAccount } from './account.ts'
import type { PostgresBinaries } from './binaries.ts'
import { postgresEnvironment } from './cluster.ts'
import { freePort } from './ports.ts'
import { type ProcessIdentity, run, type StopStep, stopProcess } from './processes.ts'
import { type ServerProcess, spawnServer, tail } from './spawn-server.ts'

export type PostgresServer = ServerProcess & { port: number; stop: () => Promise<void> }

export type PostgresOptions = {
  databaseDir: string
  logFile: string
  binaries: PostgresBinaries
  account: PostgresAccount
  /** Used if it is free. */
  preferredPort?: number | undefined
  /** The port of one that ended, whose place it takes: no other will do. */
  samePort?: number | undefined
  /** More settings, as `name=value`. */
  settings?: string[]
  onSpawn?: (identity: ProcessIdentity, port: number) => void
  signal: AbortSignal
}

// SIGINT: end the sessions, write everything out. SIGQUIT: stop at once, recover at the next start.
export const stopPostgresSteps: StopStep[] = [
  ['SIGINT', 4000],
  ['SIGQUIT', 1000],
  ['SIGKILL', 500],
]

// In an Usher that exits at once: together within the two seconds that a stop has left.
const hastySteps: StopStep[] = [
  ['SIGINT', 500],
  ['SIGQUIT', 500],
  ['SIGKILL', 500],
]

// How long the remains of a killed Postgres, or another program's hold on the port, may keep a new one from starting.
const obstaclePatience = 5000

export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const deadline = Date.now() + obstaclePatience
  let port = options.samePort ?? (await freePort(options.preferredPort))
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
    if (portTaken && options.samePort === undefined) port = await freePort()
  }
}

/** The process that Postgres's own pid file names; null when there is no such file. */
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
    exitSteps: hastySteps,
    onSpawn: (identity) => options.onSpawn?.(identity, port),
  })
}

// Recovery after a crash may take as long as it takes: this waits while the process lives, and false means it ended.
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
    // There are no signals here: its own tool has another way of asking.
    await run(options.binaries.pgCtl, ['stop', '-D', options.databaseDir, '-m', 'fast', '-t', '4'], {
      env: postgresEnvironment(),
    })
  }
  await stopProcess(server.identity, stopPostgresSteps)
}
