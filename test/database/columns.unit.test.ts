// The order of columns is that in which Studio's grid shows a table: what a row is called and what people use come first, then its ids and
// version, and last what is internal. Read from the schema files: a migration can add a column only at the end, wherever it stands there.

import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { schemaFiles } from '../../scripts/project-databases.ts'

const sql = schemaFiles('supabase')
  .map((path) => readFileSync(`supabase/${path}`, 'utf8'))
  .join('\n')

const tables = [...sql.matchAll(/^create table public\.(\w+) \(\n(.*?)^\)/gms)].map(([, table = '', body = '']) => {
  const comments = [
    ...sql.matchAll(new RegExp(`^comment on column public\\.${table}\\.(\\w+) is\\s+'(Internal: )?`, 'gm')),
  ].map(([, column = '', internal]) => ({ column, internal: internal !== undefined }))
  const columns = [...body.matchAll(/^ {2}(?!constraint )([a-z]\w*) /gm)].map(([, column = '']) => ({
    column,
    internal: comments.some((comment) => comment.column === column && comment.internal),
  }))
  return { table, columns, comments }
})

test('comments stand in the order of the columns', () => {
  expect(tables.length).toBeGreaterThan(15)
  for (const { table, columns, comments } of tables) {
    const commented = comments.map(({ column }) => column)
    // private.keep_table comments the rest.
    expect([table, ...commented]).toEqual([table, ...columns.map((c) => c.column).filter((c) => commented.includes(c))])
  }
})

test.each(tables)('in $table what is internal comes last, and ids before it', ({ columns }) => {
  // Ids of others stand where they are used.
  const ranks = columns
    .filter(({ column, internal }) => internal || !column.endsWith('_id') || column === 'organisation_id')
    .map(({ column, internal }) => (internal ? 2 : /^(id|organisation_id|version)$/.test(column) ? 1 : 0))
  expect(ranks).toEqual(ranks.toSorted())
})

test('what is internal says so, wherever it is', () => {
  const internal = tables.flatMap(({ comments }) => comments.filter((comment) => comment.internal))
  const names = new Set(internal.map(({ column }) => column))
  expect(names.size).toBeGreaterThan(10)
  const others = tables.flatMap(({ table, comments }) =>
    comments.filter((comment) => !comment.internal && names.has(comment.column)).map(({ column }) => [table, column]),
  )
  expect(others).toEqual([])
})
