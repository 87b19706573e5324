// Lints the OpenAPI document with Redocly and Spectral by every recommended rule: `npm run lint:openapi`. A warning fails as an error does.

import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeApi } from '../src/http/openapi/document.ts'
import { operations } from '../src/operations/index.ts'

const root = join(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'usher-openapi-'))
const document = join(folder, 'openapi.json')

/** What a linter says; it counts as passing when it says so and names no problem. */
function lint(command: string, args: string[], clean: (output: string) => boolean): Promise<boolean> {
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  return new Promise((resolve) => {
    const program = join(root, 'node_modules', '.bin', command)
    execFile(program, [...args, document], { cwd: root, env, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      const passed = error === null && clean(stdout)
      if (!passed) process.stderr.write(`${command}:\n${stdout}${stderr || (error?.message ?? '')}\n`)
      resolve(passed)
    })
  })
}

try {
  writeFileSync(document, JSON.stringify(describeApi(operations), null, 2))
  const passed = await Promise.all([
    // It has no option to fail on warnings; in this format it lists them.
    lint(
      'redocly',
      ['lint', '--config=config/redocly.yaml', '--format=json'],
      (output) => JSON.parse(output).problems.length === 0,
    ),
    lint('spectral', ['lint', '--ruleset=config/spectral.yaml', '--fail-severity=hint', '--quiet'], () => true),
  ])
  process.exitCode = passed.every(Boolean) ? 0 : 1
  if (process.exitCode === 0) console.log('the OpenAPI document passes redocly and spectral')
} finally {
  rmSync(folder, { recursive: true, force: true })
}
