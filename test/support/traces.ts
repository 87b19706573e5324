// What the database holds of a text: every column of every table of ours, whatever its type.

import { row, studio } from './database.ts'

/** Columns such as `public.attendees.name` in which a text stands, in whatever case: as text, in JSON, or as bytes. */
export type TracesOf = (text: string) => Promise<string[]>

/**
 * Of texts that nobody has written yet. Rows of before are not read: those of all other tests, which take a second for each text.
 * A row has the transaction that wrote it, and none of these had ended.
 */
export async function tracesFromNow(): Promise<TracesOf> {
  const { xmin } = await row<{ xmin: string }>('select pg_snapshot_xmin(pg_current_snapshot())::text as xmin')
  return (text) => tracesSince(xmin, text)
}

async function tracesSince(xmin: string, text: string): Promise<string[]> {
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
    const holds = ({ column, type }: { column: string; type: string }) =>
      `strpos(lower(${type === 'bytea' ? `encode(${column}, 'escape')` : `${column}::text`}), $1) > 0`
    const bytes = of.filter(({ type }) => type === 'bytea')
    // Whole rows first: one text for each row in place of one for each column.
    const { rows } = await studio.query(
      `select ${of.map((each) => `bool_or(${holds(each)}) as ${each.column}`).join(', ')} from ${table} t
       where t.xmin::text::bigint >= $2::bigint and (${['strpos(lower(t::text), $1) > 0', ...bytes.map(holds)].join(' or ')})`,
      [text.toLowerCase(), xmin],
    )
    found.push(
      ...of.filter(({ column }) => rows[0]?.[column.replaceAll('"', '')]).map(({ column }) => `${table}.${column}`),
    )
  }
  return found
}
