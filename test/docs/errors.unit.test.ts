// The list of error codes, from which docs/reference/errors.md is made, held against the code: it has every code that SQL or
// TypeScript can answer, with its status, and no other.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkInReasons } from '../../src/operations/check-ins.ts'
import { errors } from '../../src/operations/error-codes.ts'

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

// Of these, Studio alone is answered another status.
const inStudio: Record<string, string[]> = { api_key_revoked: ['409'] }

test('the code is searched where refusals are made', () => {
  expect(answered.size).toBeGreaterThan(40)
})

test('every code that can be answered is declared, and nothing else is', () => {
  expect(Object.keys(errors).sort()).toEqual([...answered.keys()].sort())
})

test.each(Object.entries(errors))('%s is declared with its status', (code, { status }) => {
  expect([...(answered.get(code) ?? [])].sort()).toEqual([`${status}`, ...(inStudio[code] ?? [])])
})
