// Makes pg-delta's SQL look like supabase/schemas. Never changes a string, a comment or the body of a function.

import { formatSqlStatements } from '@supabase/pg-delta/sql-format'
import { withClient } from '../src/local/client.ts'

export function toReadableSql(sql: string, keywords: Set<string>): string {
  const [formatted = sql] = formatSqlStatements([sql], {
    keywordCase: 'lower',
    maxWidth: 120,
    alignColumns: false,
    alignKeyValues: false,
  })
  const lines = formatted.replace(quoted, (text, outside: string | undefined, identifier: string | undefined) => {
    // Postgres gives a view's query with a blank before it.
    if (outside !== undefined) return outside.toLowerCase().replace(/ as {2}(?=\S)/, ' as\n  ')
    return identifier === undefined || keywords.has(identifier) ? text : identifier
  })
  return `${withShortQuotes(lines).trimEnd().replace(/;$/, '')};`
}

// Text outside of quotes, where case means nothing; an identifier that may need no quotes; or any other quoted text.
const quoted = /([^'"$]+)|"([a-z_][a-z0-9_]*)"|"(?:[^"]|"")*"|'(?:[^']|'')*'|(\$\w*\$)[\s\S]*?\3|\$/g

/** Postgres writes the body of every function between $function$. */
function withShortQuotes(sql: string): string {
  const parts = sql.split('$function$')
  return parts.length === 3 && !parts.some((part) => part.includes('$$')) ? parts.join('$$') : sql
}

/** Names that cannot stand without quotes everywhere. */
export async function readKeywords(databaseUrl: string): Promise<Set<string>> {
  const { rows } = await withClient(databaseUrl, (client) =>
    client.query<{ word: string }>("select word from pg_get_keywords() where catcode <> 'U'"),
  )
  return new Set(rows.map((row) => row.word))
}
