// A round against the API as a process, in words.

import { conclude } from '../report.ts'
import { describe, hostile, type Report, type Round } from './hostile.ts'
import { startApiProcess } from './process.ts'
import { targets } from './rest.ts'

/** @returns whether nothing is wrong. */
export async function proveHostile(dataDir: string, round: Round, say: (line: string) => void): Promise<boolean> {
  say(`Seed ${round.seed}. Again: npm run prove -- --hostile --seed ${round.seed} --requests ${round.requests}`)
  const api = await startApiProcess(dataDir)
  try {
    const report = await hostile(api, { ...round, say: (line) => say(`  ${line}`) })
    for (const line of linesOf(report)) say(line)
    return conclude(report.problems)
  } finally {
    await api.stop()
  }
}

function* linesOf({ requests, seconds, kinds, statuses, succeeded, slowest, measured }: Report) {
  const tally = (of: Map<string, number>) =>
    [...of]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, times]) => `${name} ${times}`)
      .join(', ')
  yield `${requests} requests in ${seconds.toFixed(0)} s: ${tally(kinds)}.`
  yield `Answers: ${tally(statuses)}.`
  yield `The slowest took ${slowest.milliseconds.toFixed(0)} ms (${slowest.what}).`
  const names = new Set(targets.map(({ operation }) => operation.name))
  const never = [...names].filter((name) => !succeeded.has(name))
  yield `${succeeded.size} of ${names.size} operations succeeded at least once${never.length > 0 ? `; never: ${never.join(', ')}` : ''}.`
  for (const { after, memory } of measured.filter((_, i, all) => i === 1 || i === all.length - 1))
    yield `After ${after}: ${describe(memory)}.`
}
