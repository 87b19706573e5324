// The names that `usher doctor` looks for in a project with other tables, held against the database.

import { expect, test } from 'vitest'
import { namesInPublic } from '../../src/local/migrate.ts'
import { studio } from '../support/database.ts'

test('every table, view, type and function in schema public is among them', async () => {
  const { rows } = await studio.query<{ name: string }>(`
    select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'v')
    union all
    select typname from pg_type where typnamespace = 'public'::regnamespace and typtype in ('e', 'd')
    union all
    select proname from pg_proc where pronamespace = 'public'::regnamespace`)
  expect(rows.length).toBeGreaterThan(20)
  expect(namesInPublic()).toEqual(expect.arrayContaining(rows.map(({ name }) => name)))
})
