// What a telephone plays at the door.

import { expect, test } from 'vitest'
import { sounds } from '../../src/apps/door/browser/tones.ts'

/** Root mean square: of a sine it is a smaller part of the peak than of a square. */
const loudness = ({ wave, gain }: (typeof sounds)['stop']) => gain * (wave === 'sine' ? Math.SQRT1_2 : 1)

test('refusals are louder than welcomes, and every tone is above what small speakers leave out', () => {
  expect(loudness(sounds.caution)).toBeGreaterThan(loudness(sounds.welcome))
  expect(loudness(sounds.stop)).toBeGreaterThan(loudness(sounds.caution))
  expect(Math.min(...Object.values(sounds).flatMap(({ hertz }) => hertz))).toBeGreaterThan(500)
})
