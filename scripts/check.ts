// `npm run check`: runs every check that needs no test at the same time, and shows what each said when it ends.

import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'

const checks = ['types', 'lint', 'lint:sql', 'lint:openapi', 'db:verify']

async function passes(script: string): Promise<boolean> {
  const startedAt = performance.now()
  // One pipe for both outputs, so that lines stay in their order.
  const child = spawn(`npm run --silent ${script} 2>&1`, { shell: true, stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = new Promise<boolean>((resolve) => {
    child.on('close', (code) => resolve(code === 0))
  })
  const output = await text(child.stdout)
  const passed = await exited
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  console.log(`${passed ? 'ok' : 'FAILED'} ${script} (${seconds} s)`)
  if (output.trim() !== '') console.log(output.trimEnd())
  return passed
}

const results = await Promise.all(checks.map(passes))
process.exitCode = results.every(Boolean) ? 0 : 1
