// One look: whatever colour an organiser chooses, what is written in it or on it can be read, and no other file has colours.

import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { contrast, paletteOf } from '../../src/guests/look.ts'

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

/** What is written, and on what. */
const pairs = [
  ...(['text', 'soft', 'link'] as const).flatMap((text) => [[text, 'page'] as const, [text, 'card'] as const]),
  ...([
    ['onAccent', 'accent'],
    ['softOnAccent', 'accent'],
    ['onFinal', 'final'],
  ] as const),
  ...([
    ['onGood', 'good'],
    ['onNotice', 'notice'],
    ['onBad', 'bad'],
    ['onBad', 'card'],
  ] as const),
  ...([
    ['ink', 'paper'],
    ['ink', 'caution'],
    ['paper', 'welcome'],
    ['paper', 'stop'],
  ] as const),
]

test('with any colour every pair has a contrast of 4.5 at least, in light and dark', () => {
  const colours = fc.oneof(anyColour, fc.constantFrom(null, '#000000', '#ffffff', '#777777', '#ffff00', '#26306b'))
  fc.assert(
    fc.property(colours, (colour) => {
      for (const palette of Object.values(paletteOf(colour))) {
        for (const [text, surface] of pairs) {
          const isReadable = contrast(palette[text], palette[surface]) >= 4.5
          expect([text, surface, isReadable]).toEqual([text, surface, true])
        }
      }
    }),
    { numRuns: 500 },
  )
})

test('a colour that can be read is used as it is', () => {
  const [red, yellow] = [paletteOf('#8a1c3b'), paletteOf('#ffd400')]
  expect(red.light).toMatchObject({ accent: '#8a1c3b', onAccent: '#ffffff', link: '#8a1c3b' })
  expect(yellow.dark).toMatchObject({ accent: '#ffd400', onAccent: '#000000', link: '#ffd400' })
})

// Where a colour may stand as such, and which.
const { accent } = paletteOf(null).light
const allowed: Record<string, RegExp> = {
  'guests/look.ts': /./,
  // Read before any style is.
  'apps/door/browser/page.html': new RegExp(accent),
  'apps/door/browser/manifest.webmanifest': new RegExp(accent),
  // Corrects those of Swagger UI.
  'apps/docs/page.css': /./,
  // Examples of an organisation's.
  'cli/commands/organisations.ts': /#26306b|#8a1c3b/,
  'operations/check-in-points.ts': /#26306b/,
}

test('no other file has a colour', () => {
  const src = join(import.meta.dirname, '../../src')
  const files = globSync('**/*.{ts,js,css,html,webmanifest}', { cwd: src })
  expect(files.length).toBeGreaterThan(200)
  const found = files.flatMap((file) =>
    readFileSync(join(src, file), 'utf8')
      .matchAll(/#(?:[0-9a-f]{3,4}){1,2}\b(?!\()|\b(?:rgb|hsl|oklch)a?\(|: *(?:white|black)\b(?!-)/gi)
      .map(([colour]) => colour)
      .filter((colour) => !allowed[file]?.test(colour))
      .map((colour) => `${file}: ${colour}`)
      .toArray(),
  )
  expect(found).toEqual([])
})
