// What the database holds of a text: every column of every table of ours, whatever its type.

import { studio } from './database.ts'

/** Columns such as `public.attendees.name` in which the text stands, in whatever case: as text, in JSON, or as bytes. */
export async function tracesOf(text: string): Promise<string[]> {
  const { rows: columns } = await studio.query<{ table: string; column: string; type: string }>(
    `select c.oid::regclass::text as "table", quote_ident(a.attname) as "column", format_type(a.atttypid, null) as type
     from pg_class c
     join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relkind in ('r', 'p', 'm')
       and c.relnamespace::regnamespace::text not in ('pg_catalog', 'information_schema', 'auth')
       and c.relnamespace::regnamespace::text !~ '^pg_(toast|temp)'
     order by 1, a.attnum`,
  )
  const tables = Map.groupBy(columns, ({ table }) => table)
  const found: string[] = []
  for (const [table, of] of tables) {
    const { rows } = await studio.query(
      `select ${of
        .map(({ column, type }) =>
          type === 'bytea'
            ? `bool_or(strpos(lower(encode(${column}, 'escape')), $1) > 0) as ${column}`
            : `bool_or(strpos(lower(${column}::text), $1) > 0) as ${column}`,
        )
        .join(', ')} from ${table}`,
      [text.toLowerCase()],
    )
    found.push(
      ...of.filter(({ column }) => rows[0]?.[column.replaceAll('"', '')]).map(({ column }) => `${table}.${column}`),
    )
  }
  return found
}
