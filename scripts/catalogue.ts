// What a database consists of, as text: read by pg-delta, and by ./catalogue-queries.ts where pg-delta does not look. Changes
// nothing in the database. Nothing may be left out in silence: what neither sees is refused.

import {
  buildFactBase,
  type Diagnostic,
  encodeId,
  type Fact,
  type FactBase,
  type StableId,
} from '@supabase/pg-delta/core'
import { extract } from '@supabase/pg-delta/extract'
import { Pool, type PoolClient } from 'pg'
import { StartError } from '../src/process/start-error.ts'
import { catalogueQueries, ours } from './catalogue-queries.ts'

/** Object, such as `policy orders_select on public.orders`, to the lines that define it. */
export type Snapshot = Map<string, string>

/** A row that a fresh database has: its table, what is compared of it, and the statement that adds it, if one can. */
type ReferenceRow = { table: string; line: string; insert: string | null }

/** A view, and the statement that comments one of its columns. */
type ViewComment = { view: string; statement: string }

export type Catalogue = { facts: FactBase; snapshot: Snapshot; rows: ReferenceRow[]; viewComments: ViewComment[] }

/** Those of a project's two databases. */
export const readCatalogues = async (databases: { schemas: string; migrations: string }) => {
  const [schemas, migrations] = await Promise.all([
    readCatalogue(databases.schemas),
    readCatalogue(databases.migrations),
  ])
  return { schemas, migrations }
}

export async function readCatalogue(databaseUrl: string): Promise<Catalogue> {
  const pool = new Pool({ connectionString: databaseUrl })
  // `end` does not wait until the connections are closed, and a scratch server that stops meanwhile ends them itself.
  pool.on('error', () => {})
  try {
    const { factBase, diagnostics } = await extract(pool)
    refuseUncompared(diagnostics)
    const client = await pool.connect()
    try {
      const facts = withPlainChecks(withoutBookkeeping(factBase), await takeChecks(client))
      const rest = await takeRest(client)
      const rows = await takeReferenceRows(client)
      const snapshot = new Map([...toSnapshot([...definitionsOf(facts), ...rest]), ...rowsOfTables(rows)])
      return { facts, snapshot, rows, viewComments: await takeViewComments(client) }
    } finally {
      client.release()
    }
  } finally {
    await pool.end()
  }
}

// The Supabase CLI notes in a schema of its own which migrations it applied.
function withoutBookkeeping(facts: FactBase): FactBase {
  return buildFactBase(
    facts.facts().filter(({ id }) => !/[:.(]supabase_migrations\b/.test(encodeId(id))),
    [...facts.edges],
  )
}

/** The checks of tables without the brackets that they do not need: `between` has some, which are lost when it is written out. */
async function takeChecks(client: PoolClient): Promise<Map<string, string>> {
  // Empty, so that every name is qualified.
  await client.query("set search_path = ''")
  const { rows } = await client.query<{ name: string; check: string }>(`
    select concat_ws(' ', n.nspname, t.relname, c.conname) as name, pg_get_constraintdef(c.oid, true) as check
    from pg_constraint c
    join pg_class t on t.oid = c.conrelid
    join pg_namespace n on n.oid = t.relnamespace
    where c.contype = 'c'`)
  return new Map(rows.map(({ name, check }) => [name, check]))
}

function withPlainChecks(facts: FactBase, checks: Map<string, string>): FactBase {
  const plain = facts.facts().map((fact) => {
    const { id, payload } = fact
    const def = id.kind === 'constraint' ? checks.get(`${id.schema} ${id.table} ${id.name}`) : undefined
    return def === undefined ? fact : { ...fact, payload: { ...payload, def } }
  })
  return buildFactBase(plain, [...facts.edges])
}

type Definition = [object: string, lines: string]

// pg-delta detects these without comparing them. ./catalogue-queries.ts compares statistics; privileges on parameters come from
// the bootstrap, and postgres cannot grant any.
const detectedOnly = ['statistics object', 'parameter ACL']

function refuseUncompared(diagnostics: Diagnostic[]): void {
  const uncompared = diagnostics.filter(
    ({ code, context }) => code === 'unmodeled_kind' && !detectedOnly.includes(String(context?.kind)),
  )
  if (uncompared.length === 0) return
  throw new StartError(
    [
      'These objects cannot be compared; add a query to scripts/catalogue-queries.ts:',
      ...uncompared.map((d) => d.message),
    ].join('\n  '),
  )
}

function definitionsOf(facts: FactBase): Definition[] {
  const owners = facts.edges.filter(({ kind }) => kind === 'owner')
  return [
    ...owners.map(({ from, to }): Definition => [objectOf(from, facts), `owner: ${nameOf(to)}`]),
    ...facts.facts().flatMap((fact) => definitionOf(fact, facts)),
  ]
}

function definitionOf({ id, payload: { config, ...payload } }: Fact, facts: FactBase): Definition[] {
  // Attributes that begin with an underscore are not compared, such as a column's position: a migration adds a column at the end,
  // wherever it stands in the schema file.
  const attributes = Object.entries(payload).filter(
    ([name, value]) => value !== null && value !== false && !name.startsWith('_'),
  )
  const object = objectOf(id, facts)
  const label = labelOf(id)
  if (label !== undefined) {
    const values = attributes.map(([name, value], index) => (index === 0 ? textOf(value) : `${name} ${textOf(value)}`))
    return [[object, `${label}: ${values.join(', ')}`]]
  }
  const lines = attributes.flatMap(([name, value]) => {
    if (name === 'def') return [String(value).trim()]
    if (name === 'values' && Array.isArray(value)) return value.map((enumValue) => `'${enumValue}'`)
    return [`${name}: ${textOf(value)}`]
  })
  const settings = textOf(config ?? [])
  return [
    [object, lines.join('\n')],
    ...(settings === '' ? [] : [[`settings of ${nameOf(id)}`, settings] as Definition]),
  ]
}

function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(textOf).join(', ')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** The label of a fact that is shown as one line of another object. */
function labelOf(id: StableId): string | undefined {
  switch (id.kind) {
    case 'acl':
    case 'defaultPrivilege':
      return `grant to ${id.grantee.toLowerCase()}`
    case 'comment':
    case 'default':
      return id.kind
    case 'typeAttribute':
      return id.name
    case 'publicationRel':
      return `table ${id.schema}.${id.table}`
  }
}

const objectTypes: Record<string, string> = { r: 'tables', S: 'sequences', f: 'functions', T: 'types', n: 'schemas' }

function objectOf(id: StableId, facts: FactBase): string {
  switch (id.kind) {
    case 'comment':
      return objectOf(id.target, facts)
    case 'acl':
      return id.column === undefined ? objectOf(id.target, facts) : `column ${nameOf(id.target)}.${id.column}`
    case 'default':
    case 'column':
      return `column ${id.schema}.${id.table}.${id.name}`
    case 'constraint':
    case 'trigger':
    case 'rule':
    case 'policy':
      return `${id.kind} ${id.name} on ${id.schema}.${id.table}`
    case 'membership':
      return `membership of ${id.member} in ${id.role}`
    case 'defaultPrivilege':
      return `default privileges of ${id.role}${id.schema === null ? '' : ` in ${id.schema}`} on ${objectTypes[id.objtype]}`
    case 'typeAttribute':
      return objectOf({ kind: 'type', schema: id.schema, name: id.type }, facts)
    case 'type':
      return `${facts.get(id)?.payload.variant ?? 'type'} ${nameOf(id)}`
    case 'publicationRel':
      return `publication ${id.publication}`
    default:
      return `${id.kind.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)} ${nameOf(id)}`
  }
}

function nameOf(id: StableId): string {
  if ('args' in id) return `${id.schema}.${id.name}(${id.args.join(', ').replaceAll('"', '')})`
  if ('schema' in id && 'name' in id) return `${id.schema}.${id.name}`
  return 'name' in id ? id.name : encodeId(id)
}

function toSnapshot(definitions: Definition[]): Snapshot {
  const objects = Map.groupBy(definitions, ([object]) => object)
  return new Map(
    [...objects]
      .map(([object, parts]): [string, string] => [
        object,
        parts
          .map(([, lines]) => lines)
          .filter((lines) => lines !== '')
          .sort()
          .join('\n'),
      ])
      .sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0)),
  )
}

async function takeRest(client: PoolClient): Promise<Definition[]> {
  const definitions: Definition[] = []
  for (const query of catalogueQueries) {
    const { rows } = await client.query<{ object: string; definition: string | null }>(query)
    for (const row of rows) if (row.definition) definitions.push([row.object, row.definition])
  }
  return definitions
}

/**
 * The rows a fresh database already has (plans, defaults), for each table that has any. Columns that a default fills anew each
 * time, such as ids and timestamps, are left out.
 */
async function takeReferenceRows(client: PoolClient): Promise<ReferenceRow[]> {
  const { rows: tables } = await client.query<{ name: string; columns: string; insert: string }>(`
    select format('%I.%I', n.nspname, c.relname) as name,
      string_agg(format('%L, t.%I', a.attname, a.attname), ', ' order by a.attnum) as columns,
      -- What is generated cannot be given.
      case when not bool_or(a.attidentity <> '' or a.attgenerated <> '') then format(
        'format(%L, %s)',
        format('insert into %I.%I (%s) values (%s);', n.nspname, c.relname,
          string_agg(quote_ident(a.attname), ', ' order by a.attnum), string_agg('%L', ', ' order by a.attnum)),
        string_agg(format('t.%I', a.attname), ', ' order by a.attnum)
      ) else 'null' end as insert
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
    where c.relkind = 'r' and ${ours('n')}
      and coalesce(pg_get_expr(d.adbin, d.adrelid), '') !~ '\\('
    group by 1, n.nspname, c.relname
    order by 1`)
  const all: ReferenceRow[] = []
  for (const { name, columns, insert } of tables) {
    const { rows } = await client.query<Omit<ReferenceRow, 'table'>>(
      `select jsonb_build_object(${columns})::text as line, ${insert} as insert from ${name} as t order by 1`,
    )
    all.push(...rows.map((row) => ({ table: name, ...row })))
  }
  return all
}

// pg-delta does not plan them.
async function takeViewComments(client: PoolClient): Promise<ViewComment[]> {
  const { rows } = await client.query<ViewComment>(`
    select format('%I.%I', n.nspname, c.relname) as view,
      format('comment on column %I.%I.%I is %L;', n.nspname, c.relname, a.attname, col_description(c.oid, a.attnum)) as statement
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
    where c.relkind in ('v', 'm') and ${ours('n')} and col_description(c.oid, a.attnum) is not null
    order by 1, a.attnum`)
  return rows
}

const rowsOfTables = (rows: ReferenceRow[]): Snapshot =>
  new Map(
    [...Map.groupBy(rows, ({ table }) => table)].map(([table, ofTable]) => [
      `rows of ${table}`,
      ofTable.map(({ line }) => line).join('\n'),
    ]),
  )
