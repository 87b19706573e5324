// Statements as the grid of Studio sends them: values come as JSON, and the row is named by its key.

const literal = (value: unknown) => `'${JSON.stringify(value).replaceAll("'", "''")}'`
const listed = (columns: string[]) => columns.map((column) => `"${column}"`).join(', ')

export function gridInsert(table: string, rows: object[], returning = '*'): string {
  const columns = listed([...new Set(rows.flatMap(Object.keys))])
  return `insert into public.${table} (${columns}) select ${columns}
    from jsonb_populate_recordset(null::public.${table}, ${literal(rows)}) returning ${returning}`
}

export function gridUpdate(table: string, changes: object, where: string, returning = '*'): string {
  const columns = listed(Object.keys(changes))
  return `update public.${table} set (${columns}) = (select ${columns}
    from json_populate_record(null::public.${table}, ${literal(changes)})) where ${where} returning ${returning}`
}
