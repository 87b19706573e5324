// Functions, tables and enums, as Postgres's catalogue lists them.

import { studio } from '../support/database.ts'

export type SqlFunction = {
  schema: string
  name: string
  arguments: string[]
  /** `schema.name` of the types of the arguments, arrays and built-ins included. */
  types: string[]
  /** The arguments that may be left out. */
  optional: string[]
  volatility: 'i' | 's' | 'v'
  settings: string[]
  securityDefiner: boolean
  /** Roles that may execute it, its owner left out; `public` is everybody. */
  callers: string[]
  comment: string | null
}

export async function functionsIn(...schemas: string[]): Promise<SqlFunction[]> {
  const { rows } = await studio.query<SqlFunction>(
    `select n.nspname as schema,
       p.proname as name,
       coalesce(p.proargnames[1:p.pronargs], '{}') as arguments,
       array(
         select t.typnamespace::regnamespace || '.' || t.typname
         from unnest(p.proargtypes) with ordinality a (type, position) join pg_type t on t.oid = a.type
         order by a.position
       ) as types,
       coalesce(p.proargnames[p.pronargs - p.pronargdefaults + 1:p.pronargs], '{}') as optional,
       p.provolatile as volatility,
       coalesce(p.proconfig, '{}') as settings,
       p.prosecdef as "securityDefiner",
       array(
         select case x.grantee when 0 then 'public' else x.grantee::regrole::text end
         from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) x
         where x.grantee <> p.proowner
         order by 1
       ) as callers,
       obj_description(p.oid, 'pg_proc') as comment
     from pg_proc p join pg_namespace n on n.oid = p.pronamespace
     where n.nspname = any ($1)
     order by 1, 2`,
    [schemas],
  )
  return rows
}

/** `public.events` and so on. Views and sequences count as tables: they hand out rows as well. */
export async function tablesIn(...schemas: string[]): Promise<string[]> {
  const { rows } = await studio.query<{ name: string }>(
    `select n.nspname || '.' || c.relname as name
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = any ($1) and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
     order by 1`,
    [schemas],
  )
  return rows.map((row) => row.name)
}

/** Columns that can be written: a generated one is nobody's to write. */
export async function columnsOf(table: string): Promise<string[]> {
  const { rows } = await studio.query<{ name: string }>(
    `select a.attname as name from pg_attribute a
     where a.attrelid = $1::regclass and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
     order by a.attnum`,
    [table],
  )
  return rows.map((row) => row.name)
}

/** Labels of every enum, by name: `{ 'public.event_status': ['draft', …] }`. */
export async function enums(): Promise<Record<string, string[]>> {
  const { rows } = await studio.query<{ name: string; labels: string[] }>(
    `select t.typnamespace::regnamespace || '.' || t.typname as name,
       array_agg(e.enumlabel::text order by e.enumsortorder) as labels
     from pg_enum e join pg_type t on t.oid = e.enumtypid
     group by 1`,
  )
  return Object.fromEntries(rows.map((row) => [row.name, row.labels]))
}
