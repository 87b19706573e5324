// Processes and data directories for the tests beside this file. Whatever a test made is removed after it.

import { type ChildProcess, execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type EmbeddedStack, startEmbeddedStack } from '../../src/local/stack.ts'
import { cleanUp as cleanUpProcesses, spawnUsher, temporaryFolder, waitFor } from '../cli/support.ts'

export { runningAmong, serversOf, temporaryFolder } from '../cli/support.ts'

const stacks: EmbeddedStack[] = []

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

/** Another process that runs the stack; `line` waits for a line that it writes. */
export function startElsewhere(dataDir: string): { child: ChildProcess; line: (wanted: RegExp) => Promise<string> } {
  const command = [process.execPath, join(import.meta.dirname, 'run-stack.ts')]
  const { child, stdout, stderr } = spawnUsher([dataDir], { dataDir, command })
  const line = async (wanted: RegExp): Promise<string> => {
    const find = () => `${stdout()}\n${stderr()}`.split('\n').find((text) => wanted.test(text))
    await waitFor(() => find() !== undefined || child.exitCode !== null)
    const found = find()
    if (found === undefined) throw new Error(`the process ended without writing ${wanted}:\n${stderr()}`)
    return found
  }
  return { child, line }
}

/** A program that has nothing to do with Usher, whatever it is given. */
export const startStranger = (...args: string[]): ChildProcess =>
  spawnUsher(['--eval', 'setInterval(() => {}, 1000)', '--', ...args], { dataDir: '', command: [process.execPath] })
    .child

export function privateFolder(parent: string, name: string): string {
  const folder = join(parent, name)
  mkdirSync(folder, { mode: 0o700 })
  return folder
}

/** Also after a test that failed half-way. */
export async function cleanUp(): Promise<void> {
  await Promise.all(stacks.splice(0).map((stack) => stack.stop()))
  await cleanUpProcesses()
}
