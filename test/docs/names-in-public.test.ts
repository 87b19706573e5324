// The names that docs/operations.md lists for a project with other tables, and those that `usher doctor` looks for, held against the database.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { namesInPublic } from '../../src/local/migrate.ts'
import { studio } from '../support/database.ts'

const operations = readFileSync(join(import.meta.dirname, '..', '..', 'docs/operations.md'), 'utf8')

test('every table, view, type and function in schema public is named', async () => {
  const { rows } = await studio.query<{ kind: string; names: string[] }>(`
    select kind, array_agg(distinct name::text order by name::text) as names from (
      select case relkind when 'r' then 'tables' else 'views' end, relname from pg_class
      where relnamespace = 'public'::regnamespace and relkind in ('r', 'v')
      union all
      select 'types', typname from pg_type where typnamespace = 'public'::regnamespace and typtype in ('e', 'd')
      union all
      select 'functions', proname from pg_proc where pronamespace = 'public'::regnamespace
    ) as o (kind, name) group by kind`)
  for (const { kind, names } of rows) {
    const item = operations.match(new RegExp(`^- ${kind}: [^.]+\\.$`, 'm'))?.[0] ?? ''
    expect([kind, [...item.matchAll(/`(\w+)`/g)].map(([, name]) => name)]).toEqual([kind, names])
    expect(namesInPublic()).toEqual(expect.arrayContaining(names))
  }
})
