// Folders, processes and data directories for the tests beside this file. Everything is made in the system's temporary
// folder, and whatever a test made is removed after it.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { findDataDirectory } from '../../src/local/data-directory.ts'
import { readRunRecord } from '../../src/local/run-record.ts'
import { type EmbeddedStack, startEmbeddedStack } from '../../src/local/stack.ts'
import { stopProcess } from '../../src/process/processes.ts'

const folders: string[] = []
const stacks: EmbeddedStack[] = []
const children: ChildProcess[] = []

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'usher embedded-'))
  folders.push(folder)
  return folder
}

/** A copy of a data directory nothing runs on, which spares a test the first start. */
export function copyOf(dataDir: string, folder = temporaryFolder()): string {
  const copy = join(folder, 'data')
  execFileSync('cp', ['-a', dataDir, copy])
  return copy
}

export async function start(dataDir: string, messages: string[] = []): Promise<EmbeddedStack> {
  const stack = await startEmbeddedStack({ dataDir, progress: (message) => messages.push(message) })
  stacks.push(stack)
  return stack
}

export { runningAmong, serversOf } from '../cli/support.ts'

/** Another process that runs the stack; resolves with the lines it writes to its standard error and output. */
export function startElsewhere(dataDir: string): { child: ChildProcess; line: (wanted: RegExp) => Promise<string> } {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'run-stack.ts'), dataDir], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.push(child)
  const seen: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    createInterface(stream).on('line', (line) => {
      seen.push(line)
      child.emit('line')
    })
  }
  const line = async (wanted: RegExp): Promise<string> => {
    const found = seen.find((text) => wanted.test(text))
    if (found !== undefined) return found
    if (child.exitCode !== null) throw new Error(`the process ended without writing ${wanted}:\n${seen.join('\n')}`)
    await Promise.race([once(child, 'line'), once(child, 'close')])
    return line(wanted)
  }
  return { child, line }
}

/** A program that has nothing to do with Usher, whatever it is given. */
export function startStranger(...args: string[]): ChildProcess {
  const child = spawn(process.execPath, ['--eval', 'setInterval(() => {}, 1000)', '--', ...args], { stdio: 'ignore' })
  children.push(child)
  return child
}

export function privateFolder(parent: string, name: string): string {
  const folder = join(parent, name)
  mkdirSync(folder, { mode: 0o700 })
  return folder
}

/** Also after a test that failed half-way: whatever still runs in one of its folders is ended. */
export async function cleanUp(): Promise<void> {
  await Promise.all(stacks.splice(0).map((stack) => stack.stop()))
  await Promise.all(children.splice(0).map(endChild))
  for (const folder of folders.splice(0)) {
    const directory = findDataDirectory(join(folder, 'data'))
    const record = directory === null ? null : readRunRecord(directory)
    for (const server of [record?.postgrest, record?.postgres]) {
      if (server !== undefined) await stopProcess(server, [['SIGKILL', 20_000]])
    }
    rmSync(folder, { recursive: true, force: true })
  }
}

async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}
