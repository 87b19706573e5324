// Each errand by its shortest path: it is possible, does what was asked and nothing else, and costs what is held here.

import { describe, expect, inject, test } from 'vitest'
import { studio } from '../support/database.ts'
import { type Cost, costOf, median } from './cost.ts'
import { errands } from './errands/index.ts'
import { arrange, judge, walk } from './round.ts'
import { openSession } from './session.ts'
import { withIds } from './with-ids.ts'

const apiUrl = inject('apiUrl')

describe('an errand by its shortest path', () => {
  const costs: Cost[] = []

  for (const errand of errands) {
    test.skipIf(errand.needs !== undefined)(errand.name, async ({ annotate }) => {
      const round = await arrange(errand, studio, apiUrl)
      expect(await judge(studio, round, ''), 'nothing was done yet').not.toEqual([])
      const session = await openSession(apiUrl, round.key)
      const turns = await walk(round, async (tool, args) =>
        session.call(tool, await withIds(studio, round.organisationId, tool, args)),
      )
      await session.close()

      // A model says what the answers said. It leaves out what was not asked for.
      const read = turns.map(({ text }) => text).join('\n')
      expect(await judge(studio, { ...round, errand: { ...errand, never: () => [] } }, read)).toEqual([])
      const cost = costOf(turns)
      costs.push(cost)
      await annotate(`${cost.calls} calls, ${cost.bytes} bytes, ${cost.tokens} tokens`)
    })
  }

  test('takes two calls at most in the median, and no more than three', () => {
    const calls = costs.map((cost) => cost.calls)
    expect(median(calls)).toBeLessThanOrEqual(2)
    expect(Math.max(...calls)).toBeLessThanOrEqual(3)
  })
})
