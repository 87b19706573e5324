// Rights of each role on tables and functions, read from the catalogue. The expected rights are in expected-privileges.ts and the JSON files
// beside it; tenancy-of-*.test.ts tests whose rows a role sees.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { during, studio } from '../support/database.ts'
import { attempts } from './actor.ts'
import { functionsIn, tablesIn } from './catalogue.ts'
import { exportReaders, roles, schemas, tables, views } from './expected-privileges.ts'

const roleNames = Object.keys(roles)
const tableNames = Object.keys(tables)
/** Postgres's and Supabase's own, and the owner of everything. */
const foreignRoles = "(rolname ~ '^(pg_|supabase_)' or rolname = 'postgres')"

describe('in the catalogue', () => {
  test('every role is expected', async () => {
    const { rows } = await studio.query<{ rolname: string }>(`select rolname from pg_roles where not ${foreignRoles}`)
    expect(rows.map((row) => row.rolname).sort()).toEqual(roleNames.toSorted())
  })

  test('views run with the rights of their reader, and are read by members alone, but for those that are exported', async () => {
    const { rows } = await studio.query(
      `select c.oid::regclass::text as name, c.reloptions, array(
         select distinct a.grantee::regrole::text from aclexplode(c.relacl) a where a.grantee <> c.relowner order by 1
       ) as readers
       from pg_class c where c.relkind = 'v' and c.relnamespace = 'public'::regnamespace order by 1`,
    )
    const expected = views.map((view) => {
      const name = view.replace('public.', '')
      const readers = ['authenticated', exportReaders[name]].filter((reader) => reader !== undefined)
      return { name, reloptions: ['security_invoker=true'], readers }
    })
    expect(rows).toEqual(expected)
  })

  test.each(roleNames)('%s is granted the roles that are expected, and has no powers of its own', async (role) => {
    const { rows } = await studio.query(
      `select r.rolsuper or r.rolcreaterole or r.rolcreatedb or r.rolreplication as powerful,
         r.rolbypassrls as bypasses,
         array(select m.roleid::regrole::text from pg_auth_members m
           where m.member = r.oid and m.inherit_option order by 1) as inherits,
         array(select m.roleid::regrole::text from pg_auth_members m
           where m.member = r.oid and m.set_option order by 1) as becomes,
         exists (select from pg_auth_members m where m.member = r.oid and m.admin_option) as hands_out
       from pg_roles r where r.rolname = $1`,
      [role],
    )
    const { inherits = [], becomes = [], bypassesPolicies = false } = roles[role] ?? {}
    expect(rows).toEqual([{ powerful: false, bypasses: bypassesPolicies, inherits, becomes, hands_out: false }])
  })

  test.each(Object.entries(schemas))('schema %s may be used by %j, and nobody adds to it', async (schema, users) => {
    const { rows } = await studio.query<{ role: string; privilege: string }>(
      `select distinct case x.grantee when 0 then 'public' else x.grantee::regrole::text end as role,
         x.privilege_type as privilege
       from pg_namespace n, aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) x
       where n.nspname = $1 and x.grantee not in (n.nspowner, 'postgres'::regrole)
       order by 1`,
      [schema],
    )
    expect(rows).toEqual(users.map((role) => ({ role, privilege: 'USAGE' })))
  })

  test('tables are granted as it is recorded in privileges.json', async () => {
    const all = (await tablesIn('public', 'private')).filter((name) => !views.includes(name))
    const granted = await Promise.all(all.map(async (table) => [table, await grantsOn(table)]))
    await expectRecorded(Object.fromEntries(granted), 'privileges.json')
  })

  test('policies are those that are recorded in policies.json', async () => {
    const { rows } = await studio.query<{ table: string; policy: string; rule: string }>(
      `select p.schemaname || '.' || p.tablename as "table", p.policyname as policy,
         concat_ws(' ', p.permissive, 'for', lower(p.cmd), 'to', array_to_string(p.roles, ', '),
           'using ' || p.qual, 'with check ' || p.with_check) as rule
       from pg_policies p order by 1, 2`,
    )
    const policies: Record<string, Record<string, string>> = {}
    for (const { table, policy, rule } of rows) policies[table] = { ...policies[table], [policy]: rule }
    await expectRecorded(policies, 'policies.json')
  })

  test('functions are executed by those, and with the rights, that are recorded in callers.json', async () => {
    const callers: Record<string, string> = {}
    for (const { schema, name, types, securityDefiner, callers: all } of await functionsIn(
      'api',
      'private',
      'public',
    )) {
      if (all.length === 0) continue
      const signature = `${schema}.${name}(${types.join(', ').replaceAll('pg_catalog.', '')})`
      callers[signature] = all.join(', ') + (securityDefiner ? ', as its owner' : '')
    }
    await expectRecorded(Object.fromEntries(Object.entries(callers).toSorted()), 'callers.json')
  })
})

const expectRecorded = (value: unknown, file: string) =>
  expect(
    `${JSON.stringify(value, null, 2)}\n`,
    'If this is meant, run: npx vitest run test/database/roles.test.ts -u',
  ).toMatchFileSnapshot(file)

/** { role: { verb: columns } }, read from the access control lists; the verb says so where a grant may be passed on. */
async function grantsOn(table: string): Promise<Record<string, Record<string, string>>> {
  const { rows } = await studio.query<{ role: string; verb: string; columns: string }>(
    `select case x.grantee when 0 then 'public' else x.grantee::regrole::text end as role,
       lower(x.privilege_type) || case when x.is_grantable then ' with grant option' else '' end as verb,
       string_agg(g.name, ', ' order by g.name) as columns
     from (
       select '*' as name, coalesce(c.relacl, acldefault('r', c.relowner)) as acl, c.relowner
       from pg_class c where c.oid = $1::regclass
       union all
       select a.attname::text, a.attacl, c.relowner
       from pg_attribute a join pg_class c on c.oid = a.attrelid
       where c.oid = $1::regclass and a.attacl is not null
     ) g, aclexplode(g.acl) x
     where x.grantee <> g.relowner
     group by 1, 2 order by 1, 2`,
    [table],
  )
  const grants: Record<string, Record<string, string>> = {}
  for (const { role, verb, columns } of rows) grants[role] = { ...grants[role], [verb]: columns }
  return grants
}

describe('in action', () => {
  test('anon reaches nothing in the schemas api and private but the check that lets its requests pass', async () => {
    const statements = ['select api.list_events()', 'select private.claims()', 'select from private.api_key_hashes']
    const outcomes = await attempts('anon', {}, [...statements, 'select private.check_request()'])
    expect(Object.values(outcomes)).toEqual(['42501', '42501', '42501', 'allowed'])
  })

  test('a token of the project, of a role of its own or without one, passes the check', async () => {
    await during(async (client) => {
      for (const claims of ['', '{}', '{"role": "reporting"}']) {
        await client.query("select set_config('request.jwt.claims', $1, true), set_config('role', 'anon', true)", [
          claims,
        ])
        await client.query('select private.check_request()')
      }
    })
  })

  test('a pre-request function that the project has already stays, and the migration says what it is to call', async () => {
    const file = join(import.meta.dirname, '../../supabase/schemas/10-organisations/api-keys.sql')
    const blocks = readFileSync(file, 'utf8').match(/^do \$\$[\s\S]+?^\$\$;/gm) ?? []
    const settingIt = blocks.find((block) => block.includes('db_pre_request')) ?? ''
    await during(async (client) => {
      const warnings: (string | undefined)[] = []
      client.on('notice', ({ message }) => warnings.push(message))
      const hook = async (before: string) => {
        await client.query(`alter role authenticator set pgrst.db_pre_request = '${before}'`)
        await client.query(settingIt)
        const { rows } = await client.query(
          "select s from pg_roles, unnest(rolconfig) s where rolname = 'authenticator' and s like 'pgrst.db_pre_request=%'",
        )
        return rows[0].s
      }
      expect(await hook('')).toBe('pgrst.db_pre_request=private.check_request')
      expect(warnings).toEqual([])
      expect(await hook('public.limit_requests')).toBe('pgrst.db_pre_request=public.limit_requests')
      expect(warnings).toEqual([expect.stringContaining('perform private.check_request()')])
    })
  })

  test('what the Data API signs in as has no planner settings, which would reach every request of the project', async () => {
    const { rows } = await studio.query<{ setting: string }>(
      "select split_part(s, '=', 1) as setting from pg_roles, unnest(rolconfig) s where rolname = 'authenticator'",
    )
    expect(rows.map(({ setting }) => setting).sort()).toEqual([
      'lock_timeout',
      'pgrst.db_pre_request',
      'statement_timeout',
    ])
  })

  test('service_role passes every policy, and so has nothing to read', async () => {
    const refusals = await attempts(
      'service_role',
      {},
      tableNames.map((table) => `select from ${table}`),
    )
    expect(new Set(Object.values(refusals))).toEqual(new Set(['42501']))
  })
})
