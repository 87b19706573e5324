// `npm run bench`: measures Usher beside its baselines. docs/performance.md explains the table. Each scenario has a new stack. Exit code 1:
// a write was lost or duplicated, or tickets were oversold; a missed target is printed only.

import { writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { profile } from './profile.ts'
import { printTargets } from './report.ts'
import { scenarios } from './scenarios.ts'
import { startStack, stopAll } from './stack.ts'

const { values: options } = parseArgs({
  options: {
    scenario: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '5' },
    connections: { type: 'string' },
    json: { type: 'string' },
    base: { type: 'string' },
    rows: { type: 'string' },
    profile: { type: 'boolean' },
  },
})
if (options.profile) {
  await profile()
  process.exit()
}
const listed = (text: string) => text.split(',').map((part) => part.trim())
const chosen = options.scenario === undefined ? scenarios.map(({ name }) => name) : listed(options.scenario)
const unknown = chosen.filter((name) => !scenarios.some((scenario) => scenario.name === name))
if (unknown.length > 0) {
  console.error(
    `Unknown: ${unknown.join(', ')}. Scenarios:\n${scenarios.map((s) => `  ${s.name}: ${s.about}`).join('\n')}`,
  )
  process.exit(2)
}
const effort = {
  rounds: Number(options.rounds),
  seconds: Number(options.seconds),
  ...(options.connections !== undefined && { connections: listed(options.connections).map(Number) }),
  ...(options.rows !== undefined && { rows: Number(options.rows) }),
}

const machine = `${cpus().length} × ${cpus()[0]?.model}, Node ${process.version}`
console.log(
  `${new Date().toISOString().slice(0, 10)}, ${machine}; ${effort.rounds} rounds of ${effort.seconds} s, medians; CPU in ms per answer`,
)
const interrupted = new Promise<never>((_, reject) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => reject(new Error(`Ended by ${signal}.`)))
})
interrupted.catch(() => {})
const results: Record<string, unknown> = {}
let isFaulty = false
for (const scenario of scenarios.filter(({ name }) => chosen.includes(name))) {
  console.log(`\n${scenario.name}: ${scenario.about}`)
  const stack = await startStack()
  try {
    const base = options.base === undefined ? undefined : await startStack(undefined, resolve(options.base))
    const outcome = await Promise.race([scenario.run(stack, { ...effort, ...(base && { base }) }), interrupted])
    printTargets(outcome.targets)
    if (outcome.faults) {
      const counts = Object.entries(outcome.faults)
      console.log(`  ${counts.map(([fault, n]) => `${fault} ${n}`).join(', ')}`)
      isFaulty ||= counts.some(([, n]) => n > 0)
    }
    results[scenario.name] = outcome
  } finally {
    await stopAll()
  }
}
if (options.json !== undefined) {
  writeFileSync(options.json, `${JSON.stringify({ date: new Date(), machine, effort, results }, null, 2)}\n`)
}
process.exit(isFaulty ? 1 : 0)
