// The reference has every warning that the rules in SQL give, and no other.

import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { warnings } from '../../src/operations/warnings.ts'

test('the reference names the warnings that there are', () => {
  const given = globSync('supabase/schemas/*/warnings.sql').flatMap((path) =>
    [...readFileSync(path, 'utf8').matchAll(/private\.warning\(\s*'(\w+)'/g)].map(([, code]) => code),
  )
  expect(Object.keys(warnings)).toEqual([...new Set(given)].toSorted())
})
