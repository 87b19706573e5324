// Runs the command line of the official conformance suite against a server and returns what each scenario reported. It judges
// nothing, and leaves no process and no folder behind.

import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as z from 'zod'

export const cli = createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/dist/index.js')

/** More than ten times what a revision takes when nothing else runs. */
const timeout = 120_000

export type Revision = '2025-11-25' | '2026-07-28'

const CheckSchema = z.object({
  id: z.string(),
  status: z.enum(['SUCCESS', 'FAILURE', 'WARNING', 'SKIPPED', 'INFO']),
  errorMessage: z.string().optional(),
  details: z.unknown().optional(),
})
export type Check = z.infer<typeof CheckSchema>

/**
 * What the checks of each scenario of a revision reported, in that revision's way of talking. One process runs them all:
 * starting one takes longer than most scenarios do.
 */
export async function runScenarios(url: string, revision: Revision): Promise<Map<string, Check[]>> {
  const folder = await mkdtemp(join(tmpdir(), 'usher-conformance-'))
  try {
    await conformance(['server', '--url', url, '--suite', 'all', '--spec-version', revision, '-o', folder], folder)
    return await checksIn(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** What was written into a folder, by scenario. */
export async function checksIn(folder: string): Promise<Map<string, Check[]>> {
  const results = (await readdir(folder)).map(async (result): Promise<[string, Check[]]> => {
    const checks = await readFile(join(folder, result, 'checks.json'), 'utf8')
    return [nameOf(result), CheckSchema.array().parse(JSON.parse(checks))]
  })
  return new Map(await Promise.all(results))
}

/** From `server-tools-list-2026-11-20T21-07-09-718Z`. */
function nameOf(result: string): string {
  return result.replace(/^server-/, '').replace(/-\d{4}-\d{2}-\d{2}T[\d-]+Z$/, '')
}

function conformance(args: string[], cwd: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { cwd, timeout, maxBuffer: 64 * 1024 * 1024 }
    execFile(process.execPath, [cli, ...args], options, (error, stdout, stderr) => {
      // It exits with 1 when any scenario failed. Anything else means that it did not get to the end.
      if (error && error.code !== 1)
        reject(new Error(`conformance ${args.join(' ')}:\n${stderr || stdout}`, { cause: error }))
      else resolve(stdout)
    })
  })
}
