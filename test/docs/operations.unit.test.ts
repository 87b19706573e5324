// The table of docs/integrators.md held against the operations: each has its row, with its path and scope.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { operations } from '../../src/operations/index.ts'

const rows = readFileSync(join(import.meta.dirname, '..', '..', 'docs/integrators.md'), 'utf8')
  .split('\n')
  .filter((line) => /^\| `[a-z_]+`/.test(line))

test('the table of docs/integrators.md has every operation, and no other', () => {
  const documented = rows.flatMap((line) =>
    [...(line.split('|')[1] ?? '').matchAll(/`([a-z_]+)`/g)].map(([, name]) => name),
  )
  expect(documented.toSorted()).toEqual(operations.map(({ name }) => name).toSorted())
})

test.each(operations)(
  '$name is documented with its method, the end of its path, and its scope',
  ({ name, method, path, scope }) => {
    const [, , route = '', scopes = ''] = (rows.find((line) => line.includes(`\`${name}\``)) ?? '').split('|')
    expect(route).toContain(method)
    expect(route).toContain(path.slice(path.lastIndexOf('/')))
    expect(scopes).toContain(scope ?? 'any key')
  },
)
