// Which process is which, how to run one to its end, and how to stop one. A process is identified by its pid and the time
// it started, because pids are used again: nothing here may ever signal a process that is not provably the one meant.

import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, sep } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export type ProcessIdentity = { pid: number; started: string }

/** A signal, and how long to wait for it to work before the next one, in milliseconds. */
export type StopStep = [signal: NodeJS.Signals, patience: number]

// Looking costs next to nothing on Linux; elsewhere it starts a program.
const pollIntervalMs = process.platform === 'linux' ? 15 : 100

/** Who a pid is at this moment; null when nobody is, or only a dead process its parent has not collected yet. */
export function identify(pid: number): ProcessIdentity | null {
  const started = startTime(pid)
  return started === null ? null : { pid, started }
}

export function isRunning(identity: ProcessIdentity): boolean {
  return startTime(identity.pid) === identity.started
}

/** The processes that run this program, known by the name of its file, with exactly these as its first arguments. */
export function processesRunning(program: string, ...args: string[]): ProcessIdentity[] {
  const words = [basename(program), ...args]
  return (process.platform === 'linux' ? searchProc(words) : searchList(words))
    .map(identify)
    .filter((identity) => identity !== null)
}

/** Resolves true once the process is gone, false if it outlived every step. */
export async function stopProcess(identity: ProcessIdentity, steps: StopStep[]): Promise<boolean> {
  for (const [signal, patience] of steps) {
    if (!isRunning(identity)) return true
    send(identity, signal)
    const deadline = Date.now() + patience
    while (Date.now() < deadline) {
      await sleep(pollIntervalMs)
      if (!isRunning(identity)) return true
    }
  }
  return !isRunning(identity)
}

/** The same for several at once while nothing else happens: in an `exit` listener no promise is ever settled. */
export function stopProcessesNow(processes: Iterable<readonly [ProcessIdentity, StopStep[]]>): void {
  const clock = new Int32Array(new SharedArrayBuffer(4))
  const stops = [...processes].map(([identity, steps]) => ({ identity, steps: [...steps], until: 0 }))
  for (;;) {
    const left = stops.filter(({ identity }) => isRunning(identity))
    for (const stop of left.filter(({ until }) => Date.now() >= until)) {
      const [signal, patience] = stop.steps.shift() ?? []
      if (signal === undefined || patience === undefined) stop.until = Number.POSITIVE_INFINITY
      else {
        stop.until = Date.now() + patience
        send(stop.identity, signal)
      }
    }
    if (left.every(({ until }) => until === Number.POSITIVE_INFINITY)) return
    Atomics.wait(clock, 0, 0, pollIntervalMs)
  }
}

/** SIGKILL goes to its descendants as well: one that is suspended would not notice that its parent is gone. */
function send(identity: ProcessIdentity, signal: NodeJS.Signals): void {
  const descendants = signal === 'SIGKILL' ? descendantsOf(identity.pid) : []
  for (const one of [identity, ...descendants]) signalProcess(one, signal)
}

function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): void {
  if (!isRunning(identity)) return
  try {
    process.kill(identity.pid, signal)
  } catch {
    // It ended between the two lines.
  }
}

/** Children and their children, as they are at this moment. */
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

/** How a child ended, for a sentence: "exit code 1", "signal SIGKILL", "ENOENT". */
export function ending(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    child.once('exit', (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`))
  })
}

/**
 * Runs a program to its end and gives back what it printed. It has a process group of its own, so that Ctrl-C at the
 * terminal reaches Usher alone; when `signal` aborts, the whole group is killed and the abort's reason thrown.
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
    // It ended by itself.
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

// proc(5): field 3 is the state, field 22 the start time in ticks since boot; the boot's own id makes it unique for ever.
// The second field is the program's name, which may itself contain spaces and brackets: count from its last bracket.
function linuxStartTime(pid: number): string | null {
  const fields = statFields(pid)
  if (fields[0] === 'Z' || fields[0] === 'X') return null
  return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}:${fields[19]}`
}

function statFields(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** Pairs of pid and parent's pid. Empty on Windows, where children are ended by other means. */
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

function searchProc(words: string[]): number[] {
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return []
    try {
      const command = readFileSync(`/proc/${entry}/cmdline`, 'utf8').split('\0')
      const isIt = command.some((_, at) =>
        words.every((word, index) => word === (index === 0 ? basename(command[at] ?? '') : command[at + index])),
      )
      return isIt ? [Number(entry)] : []
    } catch {
      return []
    }
  })
}

function searchList(words: string[]): number[] {
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
