// Each operation over each interface: with whatever is not a valid key, and with what is another organisation's in each place.

import { expect, test } from 'vitest'
import { appOfThisFile } from '../../support/own-app.ts'
import { whileHeld } from '../../support/rows-of.ts'
import { createLockout } from './lockout.ts'
import { createThem } from './them.ts'
import { trespassAll, triesAgainst } from './trespass.ts'

const { url } = await appOfThisFile({ trustProxy: true })
const { url: elsewhereUrl } = await appOfThisFile({ trustProxy: true })

test("what is another organisation's is refused as what is nobody's", async ({ task }) => {
  const them = await createThem()
  const tries = triesAgainst(them)
  expect(await trespassAll(tries, url, them)).toEqual([])
  task.meta.figures = `${tries.length} combinations of operation, interface, place and what stands there`
})

test('whoever has no valid key is told so, and nothing else', async ({ task }) => {
  const { attempts, tryAll } = await createLockout(url, elsewhereUrl)
  expect(await tryAll()).toEqual([])
  task.meta.figures = `${attempts.length} combinations of operation, interface and credential`
})

test("nothing waits for another organisation's locks, which would tell that there are any", async ({ task }) => {
  const them = await createThem()
  const tries = triesAgainst(them)
  expect(await whileHeld(them.id, () => trespassAll(tries, url, them))).toEqual([])
  task.meta.figures = `${tries.length} combinations again, while every row of theirs is locked`
})
