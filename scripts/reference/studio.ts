// docs/reference/studio.md: schema public as Studio shows it, with the comments of the database.

import type pg from 'pg'
import { code, page, table } from './markdown.ts'

type Row = { kind: string; name: string; comment: string; column: string; type: string; meaning: string }

// Of a column of an enum, the values.
const columns = `
  select c.relkind as kind, c.relname as name, obj_description(c.oid, 'pg_class') as comment, a.attname as column,
    coalesce(
      (select string_agg(e.enumlabel, ', ' order by e.enumsortorder) from pg_enum e where e.enumtypid = a.atttypid),
      format_type(a.atttypid, a.atttypmod)
    ) as type, coalesce(col_description(c.oid, a.attnum), '') as meaning
  from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'v')
  order by c.relname, a.attnum`

const functions = `
  select proname || '(' || pg_get_function_arguments(oid) || ')' as name, obj_description(oid, 'pg_proc') as comment
  from pg_proc where pronamespace = 'public'::regnamespace order by proname`

export async function studioPage(client: Pick<pg.ClientBase, 'query'>): Promise<string> {
  const [{ rows }, ofFunctions] = [await client.query<Row>(columns), await client.query<Row>(functions)]
  const listed = ofFunctions.rows.map(({ name, comment }) => [code(name), comment])
  const describe = ([first, ...others]: [Row, ...Row[]]) => {
    const listed = [first, ...others].map(({ column, type, meaning }) => [code(column), type, meaning])
    return `### ${first.name}\n\n${first.comment}\n\n${table('column | type | meaning', listed)}`
  }
  const all = [...Map.groupBy(rows, ({ name }) => name).values()] as [Row, ...Row[]][]
  return page(
    '# Schema public',
    'Organisers work on these tables in Studio. Each rule of the API holds there as well.',
    '## Tables',
    ...all.filter(([{ kind }]) => kind === 'r').map(describe),
    '## Views',
    ...all.filter(([{ kind }]) => kind === 'v').map(describe),
    '## Functions',
    table('function | meaning', listed),
  )
}
