// Starts a server process, Postgres or PostgREST. It has its own process group, so that Ctrl-C in the terminal reaches Usher alone, which
// then stops its servers in order. A server must never outlive an Usher that exits; after a SIGKILL the next start stops it.

import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs'
import { ending, identify, type ProcessIdentity, type StopStep, stopProcessesNow } from '../process/processes.ts'
import { StartError } from '../process/start-error.ts'
import { giveToFolderOwner } from './data-directory.ts'

export type ServerProcess = {
  identity: ProcessIdentity
  /** Resolves with the way it ended, such as "signal SIGKILL". */
  ended: Promise<string>
}

type ServerOptions = {
  env: NodeJS.ProcessEnv
  cwd: string
  uid?: number | undefined
  gid?: number | undefined
  /** Gets both output streams. Recreated at each start, so it stays small. */
  logFile: string
  /** Applied if Usher exits without having stopped the server. */
  exitSteps: StopStep[]
  /** Called synchronously after the spawn; if it throws, the server is killed. */
  onSpawn: (identity: ProcessIdentity) => void
}

const running = new Map<ProcessIdentity, StopStep[]>()

export async function spawnServer(file: string, args: string[], options: ServerOptions): Promise<ServerProcess> {
  const { logFile, exitSteps, onSpawn, ...rest } = options
  rmSync(logFile, { force: true })
  const log = openSync(logFile, 'wx', 0o600)
  giveToFolderOwner(logFile)
  const child = spawn(file, args, { ...rest, detached: true, windowsHide: true, stdio: ['ignore', log, log] })
  closeSync(log)
  const ended = ending(child)
  if (child.pid === undefined) throw new StartError(`${file} cannot be run here (${await ended}).`)
  // One that has ended already, as Postgres does beside the remains of another, is for the caller to judge: by its log.
  const identity = identify(child.pid) ?? { pid: child.pid, started: 'ended' }

  try {
    onSpawn(identity)
  } catch (error) {
    stopProcessesNow([[identity, [['SIGKILL', 500]]]])
    throw error
  }
  if (running.size === 0) process.on('exit', stopAll)
  running.set(identity, exitSteps)
  void ended.then(() => {
    running.delete(identity)
    if (running.size === 0) process.off('exit', stopAll)
  })
  return { identity, ended }
}

/** The last lines of a log, to append to a sentence. */
export function tail(logFile: string): string {
  const lines = readFileSync(logFile, 'utf8').trim().split('\n').slice(-8).join('\n')
  return lines === '' ? ' nothing.' : `\n${lines}`
}

function stopAll(): void {
  stopProcessesNow(running)
}
