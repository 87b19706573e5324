// Each errand by its shortest path: it is possible, does what was asked and nothing else, and costs what is held here.

import { describe, expect, inject, test } from 'vitest'
import { studio } from '../support/database.ts'
import { type Cost, costOf, median } from './cost.ts'
import { errands } from './errands/index.ts'
import { arrange, judge, walk } from './round.ts'

const apiUrl = inject('apiUrl')

describe('an errand by its shortest path', () => {
  const costs: Cost[] = []
  const confirmed: string[] = []
  const isConfirmed = async (organisationId: string) =>
    (
      await studio.query('select from private.confirmations where organisation_id = $1 and spent_at is not null', [
        organisationId,
      ])
    ).rowCount === 1

  for (const errand of errands) {
    test(errand.name, async ({ annotate }) => {
      const round = await arrange(errand, studio, apiUrl)
      expect(await judge(studio, round, ''), 'nothing was done yet').not.toEqual([])
      const { turns, wrong } = await walk(studio, round, apiUrl)
      expect(wrong).toEqual([])
      if (await isConfirmed(round.organisationId)) {
        const program = await arrange(errand, studio, apiUrl, 'none')
        const without = await walk(studio, program, apiUrl)
        expect([without.wrong, without.turns.length]).toEqual([[], turns.length])
        expect(await isConfirmed(program.organisationId)).toBe(false)
        confirmed.push(errand.name)
      }
      const cost = costOf(turns)
      costs.push(cost)
      expect(cost.tokens).toBeLessThanOrEqual(3_000)
      await annotate(`${cost.calls} calls, ${cost.bytes} bytes, ${cost.tokens} tokens`)
    })
  }

  test('is confirmed by a person in some, with as many calls as by a key for programs', () => {
    expect(confirmed).toEqual(expect.arrayContaining(['cancel-and-tell', 'erase-everything']))
  })

  test('takes two calls at most in the median, and no more than three', () => {
    const calls = costs.map((cost) => cost.calls)
    expect(median(calls)).toBeLessThanOrEqual(2)
    expect(Math.max(...calls)).toBeLessThanOrEqual(3)
  })
})
