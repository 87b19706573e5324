// Sentences name the thing first: none begins with a clause in place of a noun, as "Whoever …" or "What is …" does. docs/reference is
// made of what the other tests read.

import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const begins = /^(Whoever\b|Of which\b|What\b[^?]*\b(is|are|was)\b(?!.*\?$))/

const sentencesOf = (text: string): string[] =>
  text
    .replace(/\s+/g, ' ')
    .split(/(?<=[.!?:;|]) +/)
    .map((sentence) => sentence.replace(/^[^\p{L}]+/u, ''))

/** @param texts of a file: its prose, or its strings. */
function oddSentences(pattern: string[], texts: (source: string) => string[]): string[] {
  return globSync(pattern).flatMap((file) =>
    texts(readFileSync(file, 'utf8'))
      .flatMap(sentencesOf)
      .filter((sentence) => begins.test(sentence))
      .map((sentence) => `${file}: ${sentence.slice(0, 100)}`),
  )
}

test('in the documentation', () => {
  const paragraphs = (page: string) => page.replace(/^```.*?^```$/gms, '').split(/\n\n|\n(?=[-|#\d])/)
  expect(oddSentences(['README.md', 'docs/!(reference)/**/*.md', 'docs/*.md'], paragraphs)).toEqual([])
})

test('in comments, messages and hints of the database', () => {
  const strings = (sql: string) =>
    [...sql.replace(/--.*$/gm, '').matchAll(/'((?:[^']|'')*)'/g)].map(([, text = '']) => text)
  expect(oddSentences(['supabase/schemas/**/*.sql'], strings)).toEqual([])
})

test('in descriptions, messages, pages and --help', () => {
  const strings = (ts: string) =>
    [...ts.replace(/^\s*(\/\/|\/?\*).*$/gm, '').matchAll(/'([^'\n]*)'|"([^"\n]*)"|`([^`]*)`/g)].map(
      ([, ...texts]) => texts.find((text) => text !== undefined) ?? '',
    )
  expect(oddSentences(['src/**/*.ts', 'src/**/*.html'], strings)).toEqual([])
})
