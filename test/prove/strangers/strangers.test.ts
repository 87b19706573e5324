// A part of what `npm run prove -- --strangers` does in full (the files *.prove.ts beside it): other operations, places and credentials
// each time.

import { expect, test } from 'vitest'
import { appOfThisFile } from '../../support/own-app.ts'
import { createRandom } from '../random.ts'
import { createLockout } from './lockout.ts'
import { createThem } from './them.ts'
import { trespassAll, triesAgainst } from './trespass.ts'

// Wrong keys are counted per address, and tokens are for an address: two apps, which believe whoever says where they are.
const { url } = await appOfThisFile({ trustProxy: true })
const { url: elsewhereUrl } = await appOfThisFile({ trustProxy: true })

const random = createRandom(Math.floor(Math.random() * 1e6))
const some = <T>(all: T[], count: number): T[] => Array.from({ length: count }, () => random.pick(all) as T)

test("what is another organisation's is refused as what is nobody's", async () => {
  const them = await createThem()
  expect(await trespassAll(some(triesAgainst(them), 40), url, them)).toEqual([])
})

test('whoever has no valid key is told so, and nothing else', async () => {
  const { attempts, tryAll } = await createLockout(url, elsewhereUrl)
  expect(await tryAll(some(attempts, 60))).toEqual([])
})
