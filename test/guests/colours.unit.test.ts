// Whatever colour an organiser chooses, what is written in it or on it can be read.

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { backgrounds, contrast, paletteOf } from '../../src/guests/colours.ts'

const anyColour = fc.integer({ min: 0, max: 0xffffff }).map((value) => `#${value.toString(16).padStart(6, '0')}`)

test.each([
  // Values of WCAG's own examples and of its definition.
  ['#000000', '#ffffff', 21],
  ['#777777', '#ffffff', 4.48],
  ['#767676', '#ffffff', 4.54],
  ['#ff0000', '#ffffff', 4],
])('the contrast of %s and %s is %d', (one, other, expected) => {
  expect(contrast(one, other)).toBeCloseTo(expected, 2)
  expect(contrast(other, one)).toBe(contrast(one, other))
})

test('with any colour every pair has a contrast of 4.5 at least', () => {
  const colours = fc.oneof(anyColour, fc.constantFrom(null, '#000000', '#ffffff', '#777777', '#ffff00', '#26306b'))
  fc.assert(
    fc.property(colours, (colour) => {
      const { accent, onAccent, softOnAccent, linkOnLight, linkOnDark } = paletteOf(colour)
      const pairs = [
        [onAccent, accent],
        [softOnAccent, accent],
        [linkOnLight, '#ffffff'],
        [linkOnLight, backgrounds.light],
        [linkOnDark, backgrounds.dark],
        [linkOnDark, '#12141f'],
      ] as const
      for (const [one, other] of pairs) {
        expect([one, other, contrast(one, other) >= 4.5]).toEqual([one, other, true])
      }
    }),
    { numRuns: 500 },
  )
})

test('a colour that can be read is used as it is', () => {
  expect(paletteOf('#8a1c3b')).toMatchObject({ accent: '#8a1c3b', onAccent: '#ffffff', linkOnLight: '#8a1c3b' })
  expect(paletteOf('#ffd400')).toMatchObject({ accent: '#ffd400', onAccent: '#000000', linkOnDark: '#ffd400' })
})
