// The rule of supabase/schemas: whatever fires on a table, or guards it, stands in the folder of the table.

import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { schemaFiles } from '../../scripts/project-databases.ts'

const files = schemaFiles('supabase').map((path) => ({
  room: path.split('/')[1],
  sql: readFileSync(`supabase/${path}`, 'utf8'),
}))

const found = (pattern: RegExp) =>
  files.flatMap(({ room, sql }) =>
    [...sql.matchAll(pattern)].map(([, first = '', second = '']) => ({ room, first, second })),
  )

const roomOf = new Map(found(/^create (?:table|view) (\w+\.\w+)/gm).map(({ room, first }) => [first, room]))

test.each([
  ['trigger', /^create (?:constraint )?trigger (\w+)[^;]*? on (\w+\.\w+)\n/gm],
  ['policy', /^create policy (\w+) on (\w+\.\w+)/gm],
  ['audit', /^select private\.(audit_changes)\('(\w+\.\w+)'/gm],
])('each %s stands in the room of its table', (_, pattern) => {
  const all = found(pattern)
  expect(all.length).toBeGreaterThan(10)
  expect(all.filter(({ room, second }) => room !== roomOf.get(second))).toEqual([])
})

test('the function of a trigger of one table stands in the room of the table', () => {
  const all = found(/^create function private\.(tg_(\w+?)__\w+)\(/gm)
  expect(all.length).toBeGreaterThan(40)
  const strangers = all.filter(
    ({ room, second }) => room !== (roomOf.get(`public.${second}`) ?? roomOf.get(`private.${second}`)),
  )
  expect(strangers).toEqual([])
})
