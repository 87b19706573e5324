// Each operation over each interface: with whatever is not a valid key, and with what is another organisation's in each place. In `npm test`
// a few operations, others each time; in `npm run prove -- --strangers` all of them.

import { expect, inject, test } from 'vitest'
import { operations } from '../../../src/operations/index.ts'
import type { Operation } from '../../../src/operations/operation.ts'
import { appOfThisFile } from '../../support/own-app.ts'
import { whileHeld } from '../../support/rows-of.ts'
import { createRandom } from '../random.ts'
import { createLockout } from './lockout.ts'
import { isId } from './positions.ts'
import { createThem } from './them.ts'
import { trespassAll, triesAgainst } from './trespass.ts'

// Wrong keys are counted per address, and tokens are for an address: two apps, which believe whoever says where they are.
const { url } = await appOfThisFile({ trustProxy: true })
const { url: elsewhereUrl } = await appOfThisFile({ trustProxy: true })

const isWhole = inject('seed') !== undefined
const random = createRandom(Math.floor(Math.random() * 1e6))
const some = (count: number): Operation[] => {
  const chosen = new Set<Operation>()
  while (chosen.size < count) chosen.add(random.one(operations))
  return isWhole ? [...operations] : [...chosen]
}

test("what is another organisation's is refused as what is nobody's", async ({ task }) => {
  const them = await createThem()
  const tries = triesAgainst(them, some(3))
  expect(await trespassAll(tries, url, them)).toEqual([])
  task.meta.figures = `${tries.length} combinations of operation, interface, place and what stands there`
})

test("nothing waits for another organisation's locks, which would tell that there are any", async ({ task }) => {
  const them = await createThem()
  const all = triesAgainst(them, some(2))
  // Few: while a transaction is open, no notification of a later one is listed to anybody.
  const tries = isWhole ? all : all.filter(({ through, position }) => through === 'rest' && isId(position.kind))
  expect(await whileHeld(them.id, () => trespassAll(tries, url, them))).toEqual([])
  task.meta.figures = `${tries.length} combinations again, while every row of theirs is locked`
})

test('a caller without a valid key is told so, and nothing else', async ({ task }) => {
  const { attempts, tryAll } = await createLockout(url, elsewhereUrl, some(3))
  expect(await tryAll()).toEqual([])
  task.meta.figures = `${attempts.length} combinations of operation, interface and credential`
})
