// What a database consists of, as text: takes a connection, gives back one entry for each object of Usher's (its name, and
// lines that define it), in an order that depends on nothing but the names. It must change nothing in the database.

import type { ClientBase } from 'pg'
import { catalogueQueries } from './catalogue-queries.ts'

/** Object, such as `policy orders_select on public.orders`, to the lines that define it. */
export type Snapshot = Map<string, string>

export async function takeSnapshot(client: ClientBase): Promise<Snapshot> {
  const entries: [string, string][] = []
  await client.query('begin transaction isolation level repeatable read read only')
  try {
    // With nothing on the path, Postgres writes every name with its schema.
    await client.query("set local search_path = ''")
    for (const query of catalogueQueries) {
      const { rows } = await client.query<{ object: string; definition: string | null }>(query)
      for (const row of rows) entries.push([row.object, row.definition ?? ''])
    }
  } finally {
    await client.query('rollback')
  }
  return new Map(entries.sort(byName))
}

/**
 * The rows a fresh database already has (plans, defaults), for each table that has any. Columns that a default fills anew each
 * time, such as ids and timestamps, are left out.
 */
export async function takeReferenceRows(client: ClientBase): Promise<Snapshot> {
  const { rows: tables } = await client.query<{ name: string; columns: string }>(`
    select format('%I.%I', n.nspname, c.relname) as name,
      string_agg(format('%L, t.%I', a.attname, a.attname), ', ' order by a.attnum) as columns
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
    where c.relkind = 'r' and n.nspname !~ '^pg_'
      and n.nspname not in ('information_schema', 'supabase_migrations', 'auth', 'extensions')
      and coalesce(pg_get_expr(d.adbin, d.adrelid), '') !~ '\\('
    group by 1
    order by 1`)
  const entries: [string, string][] = []
  for (const { name, columns } of tables) {
    const { rows } = await client.query<{ line: string }>(
      `select jsonb_build_object(${columns})::text as line from ${name} as t order by 1`,
    )
    if (rows.length > 0) entries.push([`rows of ${name}`, rows.map((row) => row.line).join('\n')])
  }
  return new Map(entries)
}

/** The whole of it, for reading or for keeping in a file. */
export function formatSnapshot(snapshot: Snapshot): string {
  return [...snapshot]
    .map(([object, definition]) => [object, ...definition.split('\n').map((line) => `  ${line}`.trimEnd())].join('\n'))
    .join('\n\n')
}

function byName([left]: [string, string], [right]: [string, string]): number {
  return left < right ? -1 : left > right ? 1 : 0
}
