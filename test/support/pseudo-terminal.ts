// A program in a pseudo-terminal, as a person has it: with a process group in the foreground that Ctrl-C reaches as a whole.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'

export type Terminal = {
  /** The program that holds the terminal; when it is killed, the terminal closes. */
  child: ChildProcess
  /** Everything that was shown, standard output and standard error as they came. */
  screen(): string
  /** As if typed: '\x03' is Ctrl-C. */
  type(keys: string): void
  /** When the command in the terminal has ended, with its exit code. */
  ended: Promise<number | null>
}

// util-linux's script, which belongs to every Debian. Others of that name take other arguments.
export const hasTerminals = process.platform === 'linux' && versionOfScript().includes('util-linux')

function versionOfScript(): string {
  try {
    return execFileSync('script', ['--version'], { encoding: 'utf8' })
  } catch {
    return ''
  }
}

export function openTerminal(command: string, options: { cwd: string; env: NodeJS.ProcessEnv }): Terminal {
  const child = spawn('script', ['-qfec', command, '/dev/null'], { ...options, stdio: ['pipe', 'pipe', 'ignore'] })
  let screen = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen += text
  })
  // The terminal may be gone before the last key.
  child.stdin.on('error', () => {})
  return {
    child,
    screen: () => screen,
    type: (keys) => void child.stdin.write(keys),
    ended: once(child, 'close').then(([code]) => code as number | null),
  }
}
