// A dump of the data in one snapshot, as `pg_dump --data-only` makes it: every row by COPY, and the state of sequences. The embedded
// Postgres has no pg_dump, and that of another version refuses; so the schema of a restored database comes from the migrations.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'

type Dumped = {
  tables: { name: string; columns: string; file: string }[]
  sequences: { name: string; value: string }[]
}

// Applied migrations are the target's own; what belongs to Supabase but for its users is not Usher's.
const tablesSql = `
  select format('%I.%I', n.nspname, c.relname) as name,
    (select string_agg(quote_ident(a.attname), ', ' order by a.attnum)
     from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '') as columns
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where c.relkind = 'r' and n.nspname in ('public', 'private', 'auth')
  order by 1`

/** @param database a superuser. @param folder one that Postgres may write to. */
export async function dump(database: pg.Client, folder: string): Promise<void> {
  await database.query('begin isolation level repeatable read read only')
  const { rows } = await database.query<{ name: string; columns: string }>(tablesSql)
  const dumped: Dumped = { tables: [], sequences: [] }
  for (const [i, { name, columns }] of rows.entries()) {
    const file = `table${i}`
    await database.query(`copy ${name} (${columns}) to ${database.escapeLiteral(join(folder, file))}`)
    dumped.tables.push({ name, columns, file })
  }
  const sequences = await database.query<{ name: string; value: string }>(
    `select format('%I.%I', schemaname, sequencename) as name, last_value::text as value
     from pg_sequences where schemaname in ('public', 'private') and last_value is not null`,
  )
  dumped.sequences = sequences.rows
  await database.query('commit')
  await writeFile(join(folder, 'dump.json'), JSON.stringify(dumped))
}

/**
 * Restores it without triggers into a database whose schema is there.
 * @param database a superuser. @param over what is there stays; what the dump has as well is left out, as by `psql` that goes on after an error.
 */
export async function restore(database: pg.Client, folder: string, over = false): Promise<void> {
  const { tables, sequences } = JSON.parse(await readFile(join(folder, 'dump.json'), 'utf8')) as Dumped
  await database.query("set session_replication_role = 'replica'")
  if (!over) {
    await database.query('begin')
    await database.query(`truncate ${tables.map(({ name }) => name).join(', ')}`)
  }
  for (const { name, columns, file } of tables) {
    const copying = database.query(`copy ${name} (${columns}) from ${database.escapeLiteral(join(folder, file))}`)
    await (over ? copying.catch(() => {}) : copying)
  }
  for (const { name, value } of sequences) await database.query('select setval($1::regclass, $2)', [name, value])
  if (!over) await database.query('commit')
  await database.query('reset session_replication_role')
}
