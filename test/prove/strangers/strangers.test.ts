// A part of what `npm run prove -- --strangers` does in full (the files *.prove.ts beside it): other operations each time.

import { expect, test } from 'vitest'
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

const random = createRandom(Math.floor(Math.random() * 1e6))
const some = (count: number): Operation[] => {
  const chosen = new Set<Operation>()
  while (chosen.size < count) chosen.add(random.pick(operations) as Operation)
  return [...chosen]
}

test("what is another organisation's is refused as what is nobody's, and not waited for", async () => {
  const them = await createThem()
  expect(await trespassAll(triesAgainst(them, some(3)), url, them)).toEqual([])
  // Few: while a transaction is open, no notification of a later one is listed to anybody.
  const held = triesAgainst(them, some(2)).filter(({ through, position }) => through === 'rest' && isId(position.kind))
  expect(await whileHeld(them.id, () => trespassAll(held, url, them))).toEqual([])
})

test('whoever has no valid key is told so, and nothing else', async () => {
  const { tryAll } = await createLockout(url, elsewhereUrl, some(3))
  expect(await tryAll()).toEqual([])
})
