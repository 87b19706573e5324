// Lints the OpenAPI document with Redocly and Spectral, `npm run lint:openapi`: every recommended rule (redocly.yaml,
// .spectral.yaml), and a warning fails as an error does. Both run on this machine alone.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeApi } from '../src/http/openapi/document.ts'
import { operations } from '../src/operations/index.ts'

const root = join(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'usher-openapi-'))
const document = join(folder, 'openapi.json')

/** What a linter says; it counts as passing when it says so and names no problem. */
function lint(command: string, args: string[], clean: (output: string) => boolean): boolean {
  const { status, stdout, stderr } = spawnSync(join(root, 'node_modules', '.bin', command), [...args, document], {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
  })
  if (status === 0 && clean(stdout)) return true
  process.stderr.write(`${command}:\n${stdout ?? ''}${stderr ?? ''}\n`)
  return false
}

try {
  writeFileSync(document, JSON.stringify(describeApi(operations), null, 2))
  const passed = [
    // It has no option to fail on warnings; in this format it lists them.
    lint('redocly', ['lint', '--format=json'], (output) => JSON.parse(output).problems.length === 0),
    lint('spectral', ['lint', '--fail-severity=hint', '--quiet'], () => true),
  ]
  process.exitCode = passed.every(Boolean) ? 0 : 1
  if (process.exitCode === 0) console.log('the OpenAPI document passes redocly and spectral')
} finally {
  rmSync(folder, { recursive: true, force: true })
}
