// Recognises, runs and stops processes, on Linux and macOS. Pids are reused, so a process is told by its command line as well, our program
// on our files: nothing here may ever signal another one.

import { type ChildProcess, execFile, execFileSync, type SpawnOptions } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

/** `command` is a part of its command line: see `commandOf`. */
export type ProcessIdentity = { pid: number; command: string }

/** A signal, and how long to wait for the process to end before the next signal. */
export type StopStep = [signal: NodeJS.Signals, timeoutMs: number]

const isLinux = process.platform === 'linux'
// A check is cheap on Linux; elsewhere it starts a program.
const pollIntervalMs = isLinux ? 15 : 100

/** How a process that runs a program of this file name with exactly these first arguments is recognised. */
export function commandOf(program: string, ...args: string[]): string {
  return [`/${basename(program)}`, ...args, ''].join(isLinux ? '\0' : ' ')
}

export function processesRunning(command: string): ProcessIdentity[] {
  return listProcesses()
    .filter((each) => each.commandLine.includes(command))
    .map(({ pid }) => ({ pid, command }))
}

/** A zombie has no command line. */
export function isRunning({ pid, command }: ProcessIdentity): boolean {
  const found = isLinux ? readProcess(pid) : listProcesses().filter((each) => each.pid === pid)
  return found.some(({ commandLine }) => commandLine.includes(command))
}

/** Resolves with true once the process has ended, with false if it survived every step. */
export async function stopProcess(identity: ProcessIdentity, steps: StopStep[]): Promise<boolean> {
  for (const [signal, timeoutMs] of steps) {
    if (isRunning(identity)) send(identity.pid, signal)
    const deadline = Date.now() + timeoutMs
    while (isRunning(identity) && Date.now() < deadline) await sleep(pollIntervalMs)
  }
  return !isRunning(identity)
}

/** Ends them synchronously: in an `exit` listener no promise settles. */
export function killNow(identities: ProcessIdentity[]): void {
  for (const identity of identities.filter(isRunning)) send(identity.pid, 'SIGKILL')
  const clock = new Int32Array(new SharedArrayBuffer(4))
  const deadline = Date.now() + 500
  while (identities.some(isRunning) && Date.now() < deadline) Atomics.wait(clock, 0, 0, pollIntervalMs)
}

/** SIGKILL is sent to the descendants as well: a suspended one would not notice that its parent has ended. */
function send(pid: number, signal: NodeJS.Signals): void {
  for (const each of [pid, ...(signal === 'SIGKILL' ? descendantsOf(pid) : [])]) {
    try {
      process.kill(each, signal)
    } catch {
      // It has ended since the check.
    }
  }
}

/** Children, their children, and so on, at this moment. */
function descendantsOf(pid: number): number[] {
  const all = listProcesses()
  const found = [pid]
  for (const ancestor of found) found.push(...all.filter(({ parent }) => parent === ancestor).map((each) => each.pid))
  return found.slice(1)
}

/** How a child process ended, for messages: "exit code 1", "signal SIGKILL", "ENOENT". */
export function ending(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    child.once('exit', (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`))
  })
}

/**
 * Runs a program to its end. If `signal` aborts, it is killed, and has ended when this throws the signal's reason; so it is if Usher exits.
 * @returns how it ended if it failed, and what it wrote to its standard error.
 */
export async function run(
  [file = '', ...args]: string[],
  {
    signal: abort,
    ...options
  }: Pick<SpawnOptions, 'cwd' | 'env' | 'uid' | 'gid'> & { signal?: AbortSignal | undefined },
): Promise<{ failure?: string; stderr: string }> {
  abort?.throwIfAborted()
  const running = promisify(execFile)(file, args, { ...options, maxBuffer: 64 * 1024 * 1024 })
  const { child } = running
  const kill = () => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) send(child.pid, 'SIGKILL')
  }
  abort?.addEventListener('abort', kill)
  process.on('exit', kill)
  try {
    return await running
  } catch (error) {
    abort?.throwIfAborted()
    const { code, signal, stderr } = error as { code: number | string; signal?: string | null; stderr: string }
    return { failure: signal ? `signal ${signal}` : typeof code === 'number' ? `exit code ${code}` : code, stderr }
  } finally {
    abort?.removeEventListener('abort', kill)
    process.off('exit', kill)
  }
}

type Process = { pid: number; parent: number; commandLine: string }

function listProcesses(): Process[] {
  if (isLinux) return readdirSync('/proc').flatMap((entry) => (/^\d+$/.test(entry) ? readProcess(Number(entry)) : []))
  const list = execFileSync('ps', ['-axww', '-o', 'pid=,ppid=,command='], { encoding: 'utf8' })
  return [...list.matchAll(/^ *(\d+) +(\d+) +(.*)$/gm)].map(([, pid, parent, command]) => ({
    pid: Number(pid),
    parent: Number(parent),
    commandLine: `${command} `,
  }))
}

/** None: it has ended. */
function readProcess(pid: number): Process[] {
  try {
    // proc(5): the parent is the second field after the name, which may contain blanks and brackets.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const [, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return [{ pid, parent: Number(parent), commandLine: readFileSync(`/proc/${pid}/cmdline`, 'utf8') }]
  } catch {
    return []
  }
}
