// The one place where text becomes HTML.

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { html } from '../../src/guests/html.ts'
import { hostileNames, structureOf } from '../courier/hostile.ts'

test('text is escaped, in text and in attributes, and HTML made by the template is not', () => {
  const link = html`<a href="${'https://x.example/?a=1&b="2"'}">${`<b> & 'c'`}</a>`
  const escaped = '<a href="https://x.example/?a=1&amp;b=&quot;2&quot;">&lt;b&gt; &amp; &#39;c&#39;</a>'
  expect(`${html`<p>${link}${[link]}</p>`}`).toBe(`<p>${escaped}${escaped}</p>`)
})

test('what is left out leaves nothing behind', () => {
  expect(`${html`a${undefined}b${false}c${[]}d${''}e`}`).toBe('abcde')
})

test('what only looks like HTML made by the template is refused', () => {
  // From a program without types, or from JSON.
  const forged = { toString: () => '<script>' } as unknown as string
  expect(() => html`${forged}`).toThrow(TypeError)
})

test('no text changes the structure of a document', () => {
  const document = (text: string) => structureOf(`${html`<p title="${text}">${text}</p><i>${[text, text]}</i>`}`)
  const fragments = [
    '<',
    '>',
    '"',
    "'",
    '&',
    '`',
    '<!--',
    '-->',
    ']]>',
    '</p>',
    '<script>',
    ...Object.values(hostileNames),
  ]
  const nasty = fc
    .array(fc.oneof(fc.constantFrom(...fragments), fc.string({ unit: 'binary' })))
    .map((parts) => parts.join(''))
  fc.assert(
    fc.property(nasty, (text) => {
      expect(document(text)).toEqual(['<p title="">', '</p>', '<i>', '</i>'])
    }),
  )
})
