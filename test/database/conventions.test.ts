// What holds for everything in the database, whoever adds it: closed by default, explained, and named so that a refusal
// can be read. All of it is asked of the catalogue, so there is nothing to keep up here.

import { expect, test } from 'vitest'
import { studio } from '../support/database.ts'
import { functionsIn, tablesIn } from './catalogue.ts'

/** The first column of a query that finds what breaks a rule. */
async function offenders(sql: string): Promise<string[]> {
  const { rows } = await studio.query({ text: sql, rowMode: 'array' })
  return rows.map(([name]) => String(name))
}

const ours = (oid: string) => `${oid}::regnamespace::text in ('public', 'private', 'api')`

test('every function runs on an empty search path', async () => {
  const functions = await functionsIn('api', 'private')
  expect(functions.length).toBeGreaterThan(0)
  expect(functions.filter((f) => !f.settings.includes('search_path=""')).map((f) => f.name)).toEqual([])
})

test('no function is open to everybody, nor to anon, but the one that PostgREST runs before any request', async () => {
  const functions = await functionsIn('api', 'private', 'public')
  const open = functions.filter((f) => f.callers.includes('public') || f.callers.includes('anon'))
  expect(open.map((f) => `${f.schema}.${f.name}`)).toEqual(['private.check_request'])
})

test('every function plans by key, whatever the session or the role says', async () => {
  const unplanned = await offenders(
    `select p.oid::regprocedure from pg_proc p
     where p.pronamespace::regnamespace::text in ('api', 'private') and p.prosrc ~ '\\mfrom (public|private)\\.[a-z_]+ '
       and (p.proconfig::text !~ 'enable_seqscan=off' or p.proconfig::text !~ 'plan_cache_mode=')`,
  )
  expect(unplanned).toEqual([])
})

test('every table, view and column of schema public says what it is', async () => {
  const { rows } = await studio.query<{ name: string }>(
    `select concat_ws('.', c.relname, a.attname) as name
     from pg_class c
     left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'v')
       and (col_description(c.oid, a.attnum) is null and a.attnum is not null or obj_description(c.oid, 'pg_class') is null)
     order by 1`,
  )
  expect(rows).toEqual([])
})

test('every table has row level security', async () => {
  expect((await tablesIn('public', 'private')).length).toBeGreaterThan(0)
  expect(
    await offenders(
      `select c.oid::regclass from pg_class c
       where ${ours('c.relnamespace')} and c.relkind in ('r', 'p', 'f') and not c.relrowsecurity`,
    ),
  ).toEqual([])
})

test('schema api holds functions and nothing else', async () => {
  expect(await tablesIn('api')).toEqual([])
})

test('every table says in a comment what it is for', async () => {
  expect(
    await offenders(
      `select c.oid::regclass from pg_class c
       where ${ours('c.relnamespace')} and c.relkind in ('r', 'p') and obj_description(c.oid, 'pg_class') is null`,
    ),
  ).toEqual([])
})

test('a constraint is named after its table: _pkey, _fkey, _key, or a sentence that it starts', async () => {
  expect(
    await offenders(
      `select format('%s on %s', k.conname, c.relname)
       from pg_constraint k join pg_class c on c.oid = k.conrelid
       where ${ours('k.connamespace')} and not coalesce(case k.contype
         when 'p' then k.conname = c.relname || '_pkey'
         when 'f' then starts_with(k.conname, c.relname || '_') and k.conname ~ '_fkey$'
         when 'u' then starts_with(k.conname, c.relname || '_') and k.conname ~ '_key$'
         when 'c' then starts_with(k.conname, c.relname || '_') and k.conname ~ '^[a-z0-9_]+$'
           and substr(k.conname, length(c.relname) + 2) ~ '_' and k.conname !~ '_check\\d*$'
         when 't' then true -- a constraint trigger, named as a trigger
         when 'n' then true -- not null has a name from Postgres 18 on
       end, false)`,
    ),
  ).toEqual([])
})

test('an index is named after its table and ends in _idx, or in _key where it is unique', async () => {
  expect(
    await offenders(
      `select i.indexrelid::regclass
       from pg_index i join pg_class c on c.oid = i.indrelid join pg_class x on x.oid = i.indexrelid
       where ${ours('c.relnamespace')}
         and not exists (select from pg_constraint k where k.conindid = i.indexrelid and k.conrelid = i.indrelid)
         and not (starts_with(x.relname, c.relname || '_') and (x.relname ~ '_idx$' or i.indisunique and x.relname ~ '_key$'))`,
    ),
  ).toEqual([])
})

test('every foreign key has an index that starts with its first column', async () => {
  const foreignKeys = await offenders(
    `select k.conname from pg_constraint k
     where k.contype = 'f' and ${ours('k.connamespace')} and not exists (
       select from pg_index i
       join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
       where i.indrelid = k.conrelid and i.indisvalid and i.indkey[0] = k.conkey[1]
         and coalesce(pg_get_expr(i.indpred, i.indrelid) = format('(%I IS NOT NULL)', a.attname), true))`,
  )
  // A handful of plans, which nobody deletes while an organisation is on one.
  expect(foreignKeys).toEqual(['organisations_plan_fkey'])
})

test('a trigger is named after its table and its place in the order, and runs a function named tg_', async () => {
  expect(
    await offenders(
      `select format('%s on %s', t.tgname, c.relname)
       from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_proc p on p.oid = t.tgfoid
       where not t.tgisinternal and ${ours('c.relnamespace')}
         and not (t.tgname ~ ('^' || c.relname || '_[0-9]{3}_[a-z_]+$')
           and p.pronamespace = 'private'::regnamespace and p.proname ~ '^tg_([a-z_]+_)?_[a-z_]+$')`,
    ),
  ).toEqual([])
})

test('a policy is named after its table and what it allows, and is for one verb and named roles', async () => {
  expect(
    await offenders(
      `select format('%s on %s', p.polname, c.relname)
       from pg_policy p join pg_class c on c.oid = p.polrelid
       where not starts_with(p.polname, c.relname || '_' ||
           case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete'
             else 'every verb' end || '_')
         or 0 = any (p.polroles)`,
    ),
  ).toEqual([])
})
