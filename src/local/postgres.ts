// Runs Postgres on an existing cluster, and resolves once it accepts connections on 127.0.0.1. It must never listen anywhere else. It has
// no Unix socket, because the path of a socket must be short and that of a data directory may be long.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { commandOf, type ProcessIdentity, type StopStep, stopProcess } from '../process/processes.ts'
import { StartError } from '../process/start-error.ts'
import type { PostgresAccount } from './account.ts'
import type { PostgresBinaries } from './binaries.ts'
import { postgresEnvironment } from './cluster.ts'
import { type DataDirectory, writeFileAtomically } from './data-directory.ts'
import { freePort } from './ports.ts'
import { becomesReady, type ServerProcess, spawnServer, tail } from './spawn-server.ts'

export type PostgresServer = ServerProcess & { port: number; stop: () => Promise<unknown> }

export type PostgresOptions = {
  directory: DataDirectory
  binaries: PostgresBinaries
  account: PostgresAccount
  /** False: does not wait for the disk, for a temporary database. */
  durable: boolean
  /** The port of the server that this one replaces. Default: the last one if it is free, or any. */
  requiredPort?: number
  onSpawn?: (identity: ProcessIdentity, port: number) => void
  signal: AbortSignal
}

// SIGINT: end the sessions, write a checkpoint. SIGQUIT: stop at once, recover at the next start.
const stopSteps: StopStep[] = [
  ['SIGINT', 4000],
  ['SIGQUIT', 1000],
  ['SIGKILL', 500],
]
export const stopPostgres = (identity: ProcessIdentity) => stopProcess(identity, stopSteps)

export const postgresCommand = (binaries: PostgresBinaries, directory: DataDirectory): string =>
  commandOf(binaries.postgres, '-D', directory.database)

// How long to retry while the remains of a killed Postgres, or another program on the port, prevent the start.
const startRetryMs = 5000

export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const { directory, requiredPort, signal } = options
  const deadline = Date.now() + startRetryMs
  let port = requiredPort ?? (await freePort(rememberedPort(directory)))
  for (;;) {
    const server = await spawnPostgres(options, port)
    const stop = () => stopPostgres(server.identity)
    const isReady = () => isReadyAs(server.identity.pid, directory)
    try {
      // Without a limit, because crash recovery may take long.
      if (await becomesReady(server, isReady, { signal, timeoutMs: Number.POSITIVE_INFINITY })) {
        writeFileAtomically(directory.port, `${port}\n`)
        return { ...server, port, stop }
      }
    } catch (error) {
      await stop()
      throw error
    }
    const log = tail(directory.postgresLog)
    const portTaken = /could not (bind|create any TCP)/.test(log)
    const remainsFound = /lock file .* already exists|pre-existing shared memory block/.test(log)
    if (Date.now() > deadline || !(portTaken || remainsFound)) {
      throw new StartError(
        `Postgres did not start (${await server.ended}). Its log, ${directory.postgresLog}, ends with:${log}`,
      )
    }
    await sleep(100)
    if (portTaken && requiredPort === undefined) port = await freePort()
  }
}

function spawnPostgres(options: PostgresOptions, port: number): Promise<ServerProcess> {
  const { account, binaries, directory, durable, onSpawn } = options
  const settings = [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    'unix_socket_directories=',
    ...(durable ? [] : ['fsync=off', 'full_page_writes=off', 'synchronous_commit=off']),
  ].flatMap((setting) => ['-c', setting])
  return spawnServer([...account.prefix, binaries.postgres, '-D', directory.database, ...settings], {
    command: postgresCommand(binaries, directory),
    env: postgresEnvironment(),
    cwd: directory.database,
    user: account.user,
    logFile: directory.postgresLog,
    onSpawn: (identity) => onSpawn?.(identity, port),
  })
}

/** By the pid file of Postgres, which it writes itself. */
function isReadyAs(pid: number, directory: DataDirectory): boolean {
  const file = join(directory.database, 'postmaster.pid')
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
  return Number(lines[0]) === pid && lines[7]?.trim() === 'ready'
}

function rememberedPort(directory: DataDirectory): number | undefined {
  const port = existsSync(directory.port) ? Number(readFileSync(directory.port, 'utf8')) : 0
  return Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined
}
