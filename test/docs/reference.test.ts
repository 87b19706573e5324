// docs/reference is what `npm run docs` makes of the declarations and of the comments of the database.

import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { referencePages } from '../../scripts/docs.ts'
import { studio } from '../support/database.ts'
import { once } from '../support/once.ts'

const pages = once(() => referencePages(studio))

test.each(['operations', 'errors', 'notifications', 'settings', 'command-line', 'studio'])(
  '%s.md is up to date: npm run docs',
  async (name) => {
    expect(readFileSync(`docs/reference/${name}.md`, 'utf8')).toBe((await pages())[`${name}.md`])
  },
)
