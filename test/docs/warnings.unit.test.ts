// The guide for integrators has every warning that the rules in SQL give, and no other.

import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

test('the guide names the warnings that there are', () => {
  const given = globSync('supabase/schemas/*/warnings.sql', { cwd: root }).flatMap((path) =>
    [...read(path).matchAll(/private\.warning\(\s*'(\w+)'/g)].map(([, code]) => code),
  )
  const [, section = ''] = read('docs/integrators.md').split('\n## Warnings\n')
  const told = [...section.slice(0, section.indexOf('\n## ')).matchAll(/^- `(\w+)`:/gm)].map(([, code]) => code)
  expect(told.toSorted()).toEqual([...new Set(given)].toSorted())
})
