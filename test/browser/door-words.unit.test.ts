// The languages of the door page: those of the e-mails, each with the placeholders of English.

import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { en, type Words } from '../../src/apps/door/browser/words/en.ts'
import { locales } from '../../src/operations/locales.ts'

const folder = join(import.meta.dirname, '../../src/apps/door/browser/words')

/** Each text of a language by its place, with the placeholders in it. */
const placeholders = (words: Words) =>
  Object.entries(words).flatMap(([name, text]) =>
    (typeof text === 'string' ? [text] : Object.values(text).flat()).map((each, i) => [
      `${name} ${i}`,
      (each.match(/\{\w+\}/g) ?? []).toSorted(),
    ]),
  )

test('the page speaks the languages of the e-mails', () => {
  expect(
    readdirSync(folder)
      .filter((name) => name !== 'index.ts')
      .toSorted(),
  ).toEqual(locales.map((locale) => `${locale}.ts`).toSorted())
})

test.each(locales)('%s fills in what English does', async (locale) => {
  const { [locale]: words } = (await import(join(folder, `${locale}.ts`))) as Record<string, Words>
  expect(placeholders(words as Words)).toEqual(placeholders(en))
})

test('French has a space that does not break before its signs', async () => {
  const { fr } = await import('../../src/apps/door/browser/words/fr.ts')
  const texts = Object.values(fr).flatMap((text) => (typeof text === 'string' ? [text] : Object.values(text).flat()))
  expect(texts.filter((text) => /[^\u202f\u00a0][;?!»:]|«[^\u202f]/.test(text))).toEqual([])
})
