// `npm run check`: runs every check that needs no test at the same time, and shows the output of each when it ends. With --test,
// as `npm test` has it, the tests run meanwhile; arguments after it go to vitest.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'

const checks = ['types', 'lint', 'lint:sql', 'lint:openapi', 'db:verify']

async function passes(script: string): Promise<boolean> {
  const startedAt = performance.now()
  // One pipe for both outputs, so that lines stay in their order.
  const child = spawn(`npm run --silent ${script} 2>&1`, { shell: true, stdio: ['ignore', 'pipe', 'inherit'] })
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')])
  const passed = code === 0
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  console.log(`${passed ? 'ok' : 'FAILED'} ${script} (${seconds} s)`)
  if (output.trim() !== '') console.log(output.trimEnd())
  return passed
}

async function testsPass(args: string[]): Promise<boolean> {
  const child = spawn('vitest', ['run', ...args], { stdio: 'inherit' })
  const [code] = await once(child, 'exit')
  return code === 0
}

const [mode, ...testArguments] = process.argv.slice(2)
const testing = mode === '--test' ? [testsPass(testArguments)] : []
const results = await Promise.all(checks.map(passes))
const failed = checks.filter((_, index) => !results[index])
const tested = await Promise.all(testing)
// Once more at the end, below the tests.
if (failed.length > 0) console.log(`FAILED ${failed.join(', ')}`)
process.exitCode = [...results, ...tested].every(Boolean) ? 0 : 1
