// What the words of an organiser become in a page, and in the text part of an e-mail.

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { noteOf, notesHtml, notesText } from '../../src/guests/notes.ts'
import { hostileNames, structureOf, visibleText } from '../courier/hostile.ts'

const paragraph = (inner: string) => `<p dir="auto">${inner}</p>`
const link = (url: string, label: string) => `<a href="${url}" rel="noreferrer">${label}</a>`

test.each([
  ['Bring **ID** and *patience*.', paragraph('Bring <strong>ID</strong> and <em>patience</em>.')],
  ['One line\nand another\n\nA paragraph', paragraph('One line<br>and another') + paragraph('A paragraph')],
  ['- soup\n- salad', '<ul><li dir="auto">soup</li><li dir="auto">salad</li></ul>'],
  ['3. come in\n4. sit down', '<ol start="3"><li dir="auto">come in</li><li dir="auto">sit down</li></ol>'],
  ['# Parking', paragraph('<strong>Parking</strong>')],
  [
    'See https://a.example/?b=1&c=2.',
    paragraph(`See ${link('https://a.example/?b=1&amp;c=2', 'https://a.example/?b=1&amp;c=2')}.`),
  ],
  ['[the *map*](https://a.example)', paragraph(link('https://a.example/', 'the <em>map</em>'))],
  ['[write](mailto:a@b.example)', paragraph(link('mailto:a@b.example', 'write'))],
  ['![a plan](https://a.example/p.png)', paragraph(link('https://a.example/p.png', 'a plan'))],
  ['![](https://a.example/p.png)', paragraph(link('https://a.example/p.png', 'https://a.example/p.png'))],
  ['[x](javascript:alert(1))', paragraph('[x](javascript:alert(1))')],
  ['![x](data:image/png;base64,AA)', paragraph('![x](data:image/png;base64,AA)')],
  ['<b>x</b> &lt; `y` ~~z~~', paragraph('&lt;b&gt;x&lt;/b&gt; &amp;lt; `y` ~~z~~')],
  ['> a\n\n| b |\n|---|\n\n    c', paragraph('&gt; a') + paragraph('| b |<br>|---|') + paragraph('    c')],
  ['a\u202eb\u0007c', paragraph('ab c')],
  ['A & B &#8238;\\*', paragraph('A &amp; B &amp;#8238;*')],
])('%j becomes %j', (text, html) => {
  expect(`${notesHtml(text)}`).toBe(html)
})

test('the text part has the same words, without marks and with addresses', () => {
  const text = '# Hi *you*\nBring **ID** [here](https://a.example)\n\n- soup\n  1. hot\n- salad\n\n[x](javascript:1)'
  expect(notesText(text)).toBe(
    'Hi you\n\nBring ID here https://a.example/\n\n- soup\n  1. hot\n- salad\n\n[x](javascript:1)',
  )
})

test('a note is in the language of the page, else in that of the event, else there is none', () => {
  const event = { locale: 'de', guest_notes: { de: 'Hallo', fr: 'Bonjour' } } as const
  expect(noteOf(event, 'fr')).toEqual({ text: 'Bonjour', locale: 'fr' })
  expect(noteOf(event, 'en')).toEqual({ text: 'Hallo', locale: 'de' })
  expect(noteOf({ ...event, guest_notes: { fr: 'Bonjour' } }, 'en')).toBeUndefined()
})

const allowed = /^<(\/?(p|ul|ol|li|strong|em|br|a))( (dir|start|href|rel)="")*>$/
const pieces = [
  '*',
  '**',
  '_',
  '[',
  ']',
  '(',
  ')',
  '![',
  '- ',
  '1. ',
  '\n',
  '<',
  '>',
  '&',
  '"',
  '`',
  '\\',
  'a',
  ' ',
  'http://',
]

test('of no text is there any other element, nor an address that is not of the web or of mail', () => {
  const typed = fc.array(fc.oneof(fc.constantFrom(...pieces), fc.constantFrom(...Object.values(hostileNames))))
  fc.assert(
    fc.property(typed, (parts) => {
      const html = `${notesHtml(parts.join(''))}`
      expect(structureOf(html).filter((tag) => !allowed.test(tag))).toEqual([])
      for (const [, url] of html.matchAll(/href="([^"]*)"/g)) expect(url).toMatch(/^(https?|mailto):/)
      expect(visibleText(html)).not.toMatch(/[\u202a-\u202e\u2066-\u2069\0]/)
    }),
    { numRuns: 500 },
  )
})

test('lists and links that nest thousandfold are read', () => {
  for (const text of ['1. '.repeat(1666), '- '.repeat(2500), '['.repeat(5000)]) {
    const typed = text.replace(/\W/g, '')
    expect(visibleText(`${notesHtml(text)}`).replace(/\W/g, '').length).toBeGreaterThanOrEqual(typed.length - 5)
    expect(notesText(text).replace(/\W/g, '').length).toBe(typed.length)
  }
})
