// The command line as a person has it, a process of its own with its output and its exit code, or in this process. Whatever a test started is ended
// after it, by its own pid, and its folder removed.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { run } from '../../src/cli/cli.ts'
import { findDataDirectory } from '../../src/local/data-directory.ts'
import { readRunRecord } from '../../src/local/run-record.ts'
import { isRunning, type ProcessIdentity, stopProcess } from '../../src/process/processes.ts'

export const repository = join(import.meta.dirname, '../..')
const cli = join(repository, 'bin/usher.js')

export type Outcome = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string }

export type Started = {
  child: ChildProcess
  dataDir: string
  /** Where it says it listens. */
  url: string
  stdout(): string
  stderr(): string
  ended: Promise<Outcome>
}

const folders: string[] = []
const children: ChildProcess[] = []
const servers: ProcessIdentity[] = []

/** A folder nobody else has, with a blank in its path. */
export function temporaryFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'usher cli-')))
  folders.push(folder)
  return folder
}

/** Nothing of the environment of whoever runs the tests, but what programs need to run at all. */
export function environment(dataDir: string, more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const { PATH, HOME, TMPDIR } = process.env
  return {
    PATH,
    HOME,
    TMPDIR,
    // Empty counts as unset, and keeps a developer's .env from setting it.
    SUPABASE_URL: '',
    DATABASE_URL: '',
    REDIS_URL: '',
    USHER_DATA_DIR: dataDir,
    ...more,
  }
}

export function spawnUsher(
  args: string[],
  { dataDir, env = {}, command = [process.execPath, cli], cwd = tmpdir(), detached = false }: SpawnOptions,
): Omit<Started, 'url' | 'dataDir'> {
  const [file = '', ...before] = command
  const child = spawn(file, [...before, ...args], {
    cwd,
    env: environment(dataDir, env),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached,
  })
  children.push(child)
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, stdout, stderr }) as Outcome)
  return { child, stdout: () => stdout, stderr: () => stderr, ended }
}

export type SpawnOptions = {
  dataDir: string
  env?: NodeJS.ProcessEnv
  command?: string[]
  cwd?: string
  /** With a process group of its own. */
  detached?: boolean
}

/** Runs one command to its end. */
export const usherProcess = (args: string[], dataDir: string, env: NodeJS.ProcessEnv = {}): Promise<Outcome> =>
  spawnUsher(args, { dataDir, env }).ended

/** The same in this process, which costs a tenth. Not for a `start` or a `courier` that gets as far as handling signals. */
export async function usher(
  args: string[],
  dataDir: string,
  env: NodeJS.ProcessEnv = {},
  stdin: NodeJS.ReadableStream & { isTTY?: boolean } = new PassThrough().end(),
): Promise<Omit<Outcome, 'signal'>> {
  const printed = { stdout: '', stderr: '' }
  const into = (name: keyof typeof printed) => ({
    write(text: string) {
      printed[name] += text
    },
  })
  const code = await run(args, {
    environment: environment(dataDir, env),
    stdin,
    stdout: into('stdout'),
    stderr: into('stderr'),
    exit: () => {},
    stopSignal: () => new AbortController().signal,
  })
  return { code, ...printed }
}

/** `usher start` until its ready line. */
export async function startUsher(options: SpawnOptions & { port?: number; args?: string[] }): Promise<Started> {
  const port = options.port ?? (await freePort())
  const started = spawnUsher(options.args ?? ['start'], { ...options, env: { ...options.env, PORT: String(port) } })
  await waitFor(() => /^Usher is ready at (\S+) /m.test(started.stdout()) || hasEnded(started.child))
  const url = /^Usher is ready at (\S+) /m.exec(started.stdout())?.[1]
  if (url === undefined) throw new Error(`usher start ended without being ready:\n${started.stderr()}`)
  servers.push(...serversOf(options.dataDir))
  return { ...started, dataDir: options.dataDir, url }
}

/** Postgres and PostgREST of a data directory, as its run record names them. */
export function serversOf(dataDir: string): ProcessIdentity[] {
  const directory = findDataDirectory(dataDir)
  const record = directory === null ? null : readRunRecord(directory)
  return [record?.postgres, record?.postgrest].filter((server) => server !== undefined)
}

export const runningAmong = (processes: ProcessIdentity[]): ProcessIdentity[] => processes.filter(isRunning)

/** Every process whose command line names the folder, recorded or not. */
export function processesOn(folder: string): string[] {
  return commandLines().filter((command) => command.includes(folder))
}

function commandLines(): string[] {
  if (process.platform !== 'linux')
    return execFileSync('ps', ['-axww', '-o', 'command='], { encoding: 'utf8' }).split('\n')
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
      } catch {
        return ''
      }
    })
}

/** Of proc(5), from the state on: plain Debian has no `ps`. */
function statOf(pid: number | string): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** A process and its children. */
export function familyOf(pid: number): number[] {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return [
    pid,
    ...all.map(Number).filter((one) => {
      try {
        return Number(statOf(one)[1]) === pid
      } catch {
        return false
      }
    }),
  ]
}

/** By its whole command line. */
export const identify = (pid: number): ProcessIdentity => ({
  pid,
  command: readFileSync(`/proc/${pid}/cmdline`, 'utf8'),
})

export const identityOf = (child: ChildProcess): ProcessIdentity => identify(child.pid ?? 0)

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

export async function waitFor(isSo: () => boolean, milliseconds = 120_000): Promise<void> {
  const deadline = Date.now() + milliseconds
  while (!isSo()) {
    if (Date.now() > deadline) throw new Error(`not within ${milliseconds} ms`)
    await sleep(10)
  }
}

const hasEnded = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null

export async function end(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return
  child.kill('SIGTERM')
  await Promise.race([once(child, 'close'), sleep(120_000)])
  child.kill('SIGKILL')
}

/** Also after a test that failed half-way. */
export async function cleanUp(): Promise<void> {
  for (const folder of folders) servers.push(...serversOf(join(folder, 'data')))
  for (const child of children.splice(0)) await end(child)
  for (const server of servers.splice(0)) await stopProcess(server, [['SIGQUIT', 20_000]])
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
}
