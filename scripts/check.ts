// `npm run check`: runs every check that needs no test at the same time, and shows the output of each when it ends. With --test,
// as `npm test` has it, the tests run meanwhile; arguments after it go to vitest.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { text } from 'node:stream/consumers'
import packageJson from '../package.json' with { type: 'json' }
import { sharePristine } from './support/scratch-database.ts'
import { useTemporaryFolder } from './support/temporary-folder.ts'

const checks = ['types', 'lint', 'lint:sql', 'lint:openapi', 'db:verify'] as const

const root = join(import.meta.dirname, '..')
async function passes(script: (typeof checks)[number]): Promise<boolean> {
  const startedAt = performance.now()
  // One pipe for both outputs, so that lines stay in their order.
  const child = spawn(`(${packageJson.scripts[script]}) 2>&1`, {
    shell: true,
    cwd: root,
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')])
  const passed = code === 0
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  console.log(`${passed ? 'ok' : 'FAILED'} ${script} (${seconds} s)`)
  if (output.trim() !== '') console.log(output.trimEnd())
  return passed
}

async function testsPass(args: string[]): Promise<boolean> {
  const child = spawn('vitest', ['run', ...args], { env: environment, stdio: 'inherit' })
  const [code] = await once(child, 'exit')
  return code === 0
}

const folder = useTemporaryFolder()
const deleteFolder = () => rmSync(folder, { recursive: true, force: true })
process.once('exit', deleteFolder)
// Ctrl-C comes to the children as well, which end by themselves and are waited for.
const interruption = new AbortController()
process.once('SIGINT', () => {
  process.exitCode = 130
  interruption.abort()
})
process.once('SIGTERM', () => process.exit(143))
process.once('SIGHUP', () => process.exit(129))
// One for all that need such a database, made before they begin.
await sharePristine(folder, interruption.signal)
if (interruption.signal.aborted) process.exit()

const environment = {
  ...process.env,
  // As npm has it, which is left out: it takes as long as some of the checks.
  PATH: [join(root, 'node_modules', '.bin'), process.env.PATH].join(delimiter),
  // Of tsc: memory is collected less often, which is a quarter of its time.
  GOGC: '400',
}

const [mode, ...testArguments] = process.argv.slice(2)
const testing = mode === '--test' ? [testsPass(testArguments)] : []
const results = await Promise.all(checks.map(passes))
const failed = checks.filter((_, index) => !results[index])
const tested = await Promise.all(testing)
// Once more at the end, below the tests.
if (failed.length > 0) console.log(`FAILED ${failed.join(', ')}`)
process.exitCode ||= [...results, ...tested].every(Boolean) ? 0 : 1
