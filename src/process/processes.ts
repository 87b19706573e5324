// Identifies, runs and stops processes. A process is identified by its pid and its start time, because pids are reused: nothing here may
// ever signal a process that is not provably the one meant.

import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, sep } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export type ProcessIdentity = { pid: number; started: string }

/** A signal, and how long to wait for the process to end before the next signal. */
export type StopStep = [signal: NodeJS.Signals, timeoutMs: number]

// A check is cheap on Linux; elsewhere it starts a program.
const pollIntervalMs = process.platform === 'linux' ? 15 : 100

/** The process that has this pid now; null if there is none, or only a zombie. */
export function identify(pid: number): ProcessIdentity | null {
  const started = startTime(pid)
  return started === null ? null : { pid, started }
}

export function isRunning(identity: ProcessIdentity): boolean {
  return startTime(identity.pid) === identity.started
}

/** The processes that run a program of this file name with exactly these first arguments. */
export function processesRunning(program: string, ...args: string[]): ProcessIdentity[] {
  const words = [basename(program), ...args]
  return (process.platform === 'linux' ? pidsInProc(words) : pidsInProcessList(words))
    .map(identify)
    .filter((identity) => identity !== null)
}

/** Resolves with true once the process has ended, with false if it survived every step. */
export async function stopProcess(identity: ProcessIdentity, steps: StopStep[]): Promise<boolean> {
  for (const [signal, timeoutMs] of steps) {
    if (!isRunning(identity)) return true
    send(identity, signal)
    const deadline = Date.now() + timeoutMs
    while (Date.now() < deadline) {
      await sleep(pollIntervalMs)
      if (!isRunning(identity)) return true
    }
  }
  return !isRunning(identity)
}

/** The same for several processes, synchronously: in an `exit` listener no promise settles. */
export function stopProcessesNow(processes: Iterable<readonly [ProcessIdentity, StopStep[]]>): void {
  const clock = new Int32Array(new SharedArrayBuffer(4))
  const stops = [...processes].map(([identity, steps]) => ({ identity, steps: [...steps], until: 0 }))
  for (;;) {
    const left = stops.filter(({ identity }) => isRunning(identity))
    for (const stop of left.filter(({ until }) => Date.now() >= until)) {
      const [signal, timeoutMs] = stop.steps.shift() ?? []
      if (signal === undefined || timeoutMs === undefined) stop.until = Number.POSITIVE_INFINITY
      else {
        stop.until = Date.now() + timeoutMs
        send(stop.identity, signal)
      }
    }
    if (left.every(({ until }) => until === Number.POSITIVE_INFINITY)) return
    Atomics.wait(clock, 0, 0, pollIntervalMs)
  }
}

/** SIGKILL is sent to the descendants as well: a suspended one would not notice that its parent has ended. */
function send(identity: ProcessIdentity, signal: NodeJS.Signals): void {
  const descendants = signal === 'SIGKILL' ? descendantsOf(identity.pid) : []
  for (const one of [identity, ...descendants]) signalProcess(one, signal)
}

function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): void {
  if (!isRunning(identity)) return
  try {
    process.kill(identity.pid, signal)
  } catch {
    // It has ended since the check.
  }
}

/** Children, their children, and so on, at this moment. */
function descendantsOf(pid: number): ProcessIdentity[] {
  const parents = parentsOfAll()
  const found = [pid]
  for (const ancestor of found) {
    for (const [child, parent] of parents) if (parent === ancestor) found.push(child)
  }
  return found
    .slice(1)
    .map(identify)
    .filter((identity) => identity !== null)
}

/** How a child process ended, for messages: "exit code 1", "signal SIGKILL", "ENOENT". */
export function ending(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    child.once('exit', (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`))
  })
}

/**
 * Runs a program to its end and returns its output. It has its own process group, so that Ctrl-C in the terminal reaches Usher alone.
 * If `signal` aborts, the whole group is killed.
 * @throws the reason of `signal`.
 */
export async function run(
  file: string,
  args: string[],
  options: Pick<SpawnOptions, 'cwd' | 'env' | 'uid' | 'gid' | 'signal'>,
): Promise<{ ok: boolean; ended: string; stdout: string; stderr: string }> {
  const { signal, ...rest } = options
  signal?.throwIfAborted()
  const child = spawn(file, args, { ...rest, detached: true, windowsHide: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const kill = () => killGroup(child)
  signal?.addEventListener('abort', kill, { once: true })
  process.on('exit', kill)
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const ended = await ending(child)
  if (child.pid !== undefined) await closed
  signal?.removeEventListener('abort', kill)
  process.off('exit', kill)
  signal?.throwIfAborted()
  return { ok: ended === 'exit code 0', ended, stdout, stderr }
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  try {
    process.kill(process.platform === 'win32' ? child.pid : -child.pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

function startTime(pid: number): string | null {
  try {
    if (process.platform === 'linux') return linuxStartTime(pid)
    if (process.platform === 'win32') {
      return powershell(`(Get-Process -Id ${pid} -ErrorAction Stop).StartTime.ToFileTimeUtc()`)
    }
    const [state, ...started] = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      env: { ...process.env, LC_ALL: 'C', TZ: 'UTC' },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
      .trim()
      .split(/\s+/)
    return state === undefined || state.startsWith('Z') ? null : started.join(' ')
  } catch {
    return null
  }
}

// proc(5): field 3 is the state, field 22 the start time in ticks since boot; with the boot id it is unique. Field 2 is the program name,
// which may contain spaces and brackets, so fields are counted from the last bracket.
function linuxStartTime(pid: number): string | null {
  const fields = statFields(pid)
  if (fields[0] === 'Z' || fields[0] === 'X') return null
  return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}:${fields[19]}`
}

function statFields(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** Pairs of pid and parent pid. Empty on Windows, where children are ended by other means. */
function parentsOfAll(): [number, number][] {
  if (process.platform === 'win32') return []
  if (process.platform !== 'linux') {
    const list = execFileSync('ps', ['-ax', '-o', 'pid=,ppid='], { encoding: 'utf8' })
    return list
      .trim()
      .split('\n')
      .map((line) => line.trim().split(/\s+/).map(Number) as [number, number])
  }
  return readdirSync('/proc').flatMap((entry): [number, number][] => {
    if (!/^\d+$/.test(entry)) return []
    try {
      return [[Number(entry), Number(statFields(Number(entry))[1])]]
    } catch {
      return []
    }
  })
}

function pidsInProc(words: string[]): number[] {
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return []
    try {
      const command = readFileSync(`/proc/${entry}/cmdline`, 'utf8').split('\0')
      const isMatch = command.some((_, at) =>
        words.every((word, index) => word === (index === 0 ? basename(command[at] ?? '') : command[at + index])),
      )
      return isMatch ? [Number(entry)] : []
    } catch {
      return []
    }
  })
}

function pidsInProcessList(words: string[]): number[] {
  const list =
    process.platform === 'win32'
      ? powershell('Get-CimInstance Win32_Process | ForEach-Object { "$($_.ProcessId) $($_.CommandLine)" }')
      : execFileSync('ps', ['-axww', '-o', 'pid=,command='], { encoding: 'utf8' })
  return list.split(/\r?\n/).flatMap((line) => {
    const [, pid, command = ''] = /^\s*(\d+) (.*)$/.exec(line) ?? []
    return `${command.replaceAll('"', '')} `.includes(`${sep}${words.join(' ')} `) ? [Number(pid)] : []
  })
}

function powershell(command: string): string {
  return execFileSync('powershell', ['-NoProfile', '-NonInteractive', '-Command', command], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim()
}
