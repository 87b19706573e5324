// Runs a program in Deno, of the version that Supabase's edge runtime is based on: offline, with the packages of this project
// and no more rights than given.

import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Readable } from 'node:stream'

const root = join(import.meta.dirname, '../..')

const { runInstall } = createRequire(import.meta.url)('deno/install_api.cjs') as { runInstall(): string }

export const functionsFolder = join(root, 'supabase/functions')
export const functionFolder = join(functionsFolder, 'courier')

export function spawnDeno(
  program: string,
  args: string[],
  env: Record<string, string> = {},
  folder = functionFolder,
): ChildProcessByStdio<null, Readable, Readable> {
  const offline = ['--node-modules-dir=manual', '--cached-only', '--no-remote', '--no-prompt', '--no-lock']
  const config = ['--config', join(folder, 'deno.json')]
  const rights = ['--allow-net', '--allow-env', '--allow-sys=hostname', `--allow-read=${root}`]
  const { PATH, HOME } = process.env
  return spawn(runInstall(), ['run', ...offline, ...config, ...rights, join(root, 'test/support', program), ...args], {
    env: { PATH, HOME, NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}
