// Starts a server process, Postgres or PostgREST. It has its own process group, so that Ctrl-C in the terminal reaches Usher alone, which
// then stops its servers in order. A server must never outlive an Usher that exits; after a SIGKILL the next start stops it.

import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { ending, killNow, type ProcessIdentity } from '../process/processes.ts'
import { StartError } from '../process/start-error.ts'
import { giveToFolderOwner } from './data-directory.ts'

export type ServerProcess = {
  identity: ProcessIdentity
  /** Resolves with the way it ended, such as "signal SIGKILL". */
  ended: Promise<string>
  hasEnded(): boolean
}

type ServerOptions = {
  /** How the next start recognises it. */
  command: string
  env: NodeJS.ProcessEnv
  cwd: string
  /** The user to run as. */
  user?: { uid: number; gid: number } | undefined
  /** Gets both output streams. Recreated at each start, so it stays small. */
  logFile: string
  /** Called synchronously after the spawn; if it throws, the server is killed. */
  onSpawn: (identity: ProcessIdentity) => void
}

const running = new Set<ProcessIdentity>()
const killAll = () => killNow([...running])

export async function spawnServer([file = '', ...args]: string[], options: ServerOptions): Promise<ServerProcess> {
  const { command, logFile, onSpawn, user, ...rest } = options
  rmSync(logFile, { force: true })
  const log = openSync(logFile, 'wx', 0o600)
  giveToFolderOwner(logFile)
  const child = spawn(file, args, { ...rest, ...user, detached: true, stdio: ['ignore', log, log] })
  closeSync(log)
  const ended = ending(child)
  if (child.pid === undefined) throw new StartError(`${file} cannot be run here (${await ended}).`)
  const identity = { pid: child.pid, command }
  if (running.size === 0) process.on('exit', killAll)
  running.add(identity)
  void ended.then(() => {
    running.delete(identity)
    if (running.size === 0) process.off('exit', killAll)
  })
  try {
    onSpawn(identity)
  } catch (error) {
    killNow([identity])
    throw error
  }
  return { identity, ended, hasEnded: () => child.exitCode !== null || child.signalCode !== null }
}

/** @returns false: the server has ended, or the time is up. @throws the reason of `signal`. */
export async function becomesReady(
  server: ServerProcess,
  isReady: () => boolean | Promise<boolean>,
  { signal, timeoutMs }: { signal: AbortSignal; timeoutMs: number },
): Promise<boolean> {
  const deadline = Date.now() + timeoutMs
  while (!server.hasEnded() && Date.now() < deadline) {
    signal.throwIfAborted()
    if (await isReady()) return true
    await sleep(10)
  }
  return false
}

/** The last lines of a log, to append to a sentence. */
export function tail(logFile: string): string {
  const lines = readFileSync(logFile, 'utf8').trim().split('\n').slice(-8).join('\n')
  return lines === '' ? ' nothing.' : `\n${lines}`
}
