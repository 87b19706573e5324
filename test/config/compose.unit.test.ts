// What compose.yaml gives to each process.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const compose = readFileSync(join(import.meta.dirname, '..', '..', 'compose.yaml'), 'utf8')

test('neither the API nor the courier gets the connection string of the role postgres', () => {
  const [, environment = ''] = /environment: &environment\n((?: {6}.*\n)+)/.exec(compose) ?? []
  // It goes before env_file, and a variable set to nothing counts as not set.
  expect(environment).toMatch(/^ +DATABASE_URL: ""$/m)
  expect(compose.match(/<<: \*usher/g)).toHaveLength(2)
  expect(compose.match(/environment: [&*]environment/g)).toHaveLength(2)
})
