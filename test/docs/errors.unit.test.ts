// docs/errors.md held against the code: every code that SQL or TypeScript can answer is in its tables, with its statuses, and
// nothing is in them that cannot be answered.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkInReasons } from '../../src/operations/check-ins.ts'
import { errorCodes, errorStatuses } from '../../src/operations/error-codes.ts'

const root = join(import.meta.dirname, '..', '..')

function sources(folder: string, ending: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => readFileSync(join(root, folder, name), 'utf8'))
}

const answered = new Map<string, Set<string>>()
const note = (code: string, status: string) => answered.set(code, (answered.get(code) ?? new Set()).add(status))

for (const sql of sources('supabase/schemas', '.sql')) {
  for (const [, status = '', code = ''] of sql.matchAll(/private\.(?:tg__)?refuse\(\s*(\d{3}),\s*'([a-z_]+)'/g))
    note(code, status)
}
for (const ts of sources('src', '.ts')) {
  for (const [, status = '', code = ''] of ts.matchAll(/new ApiError\(\s*(\d{3}),\s*'([a-z_]+)'/g)) note(code, status)
}
// turned_away is a verdict of uploaded scans only, and no error.
for (const reason of checkInReasons.filter((reason) => reason !== 'turned_away'))
  note(reason, reason === 'not_found' ? '404' : '409')

const documented = new Map(
  [...readFileSync(join(root, 'docs/errors.md'), 'utf8').matchAll(/^\| `([a-z_]+)` \| ([\d, ]+) \|/gm)].map(
    ([, code = '', statuses = '']) => [code, statuses.trim()],
  ),
)

test('the code is searched where refusals are made', () => {
  expect(answered.size).toBeGreaterThan(40)
})

test('every code that can be answered is documented, and nothing else is', () => {
  expect([...documented.keys()].sort()).toEqual([...answered.keys()].sort())
})

test('the list that the OpenAPI document is made from is the same', () => {
  expect(errorCodes.toSorted()).toEqual([...documented.keys()].sort())
})

test('each has one status over the interface', () => {
  for (const [code, status] of Object.entries(errorStatuses)) expect(answered.get(code), code).toContain(String(status))
})

test.each([...answered])('%s is documented with its statuses', (code, statuses) => {
  expect(documented.get(code)).toBe([...statuses].sort().join(', '))
})
