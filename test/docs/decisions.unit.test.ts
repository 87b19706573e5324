// docs/contribute/decisions/: a file a decision, each in the list and in one form.

import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const folder = 'docs/contribute/decisions'
const files = readdirSync(folder).filter((name) => name !== 'README.md')
const read = (name: string) => readFileSync(`${folder}/${name}`, 'utf8')

test('the list names every decision once, by its title', () => {
  const listed = [...read('README.md').matchAll(/^- \[(.+)\]\((.+)\)$/gm)].map(([, title, name]) => [name, title])
  const titles = files.map((name) => [name, /^# (.+)\n/.exec(read(name))?.[1]])
  expect(listed.sort()).toEqual(titles.sort())
})

test('every decision says why and when to revisit it, in at most 150 words', () => {
  const form = /\n\n\*\*Why:\*\* .+\n\n\*\*Revisit\*\* [^\n]+(\n[^\n]+)*\n$/s
  const wrong = files.filter((name) => !form.test(read(name)) || read(name).split(/\s+/).length > 150)
  expect(wrong).toEqual([])
})
