// Checks what only the database itself shows: the history of migrations, and who may execute what. Reads only.

import type pg from 'pg'
import { applyMigrations } from '../../gateway/database-probe.ts'
import { AdminError, withDatabase } from '../../local/admin.ts'
import { disagreementsSql } from '../../local/invariants.ts'
import { compareMigrations, namesInPublic } from '../../local/migrate.ts'
import { operations } from '../../operations/index.ts'
import { roleOf } from '../../operations/operation.ts'
import { type Finding, failed, ok, warning } from './finding.ts'

const connectionString =
  'Set DATABASE_URL to the connection string of the role postgres ("Connect" in the dashboard; the session pooler without IPv6).'

/**
 * @param projectUrl that of the Data API, to tell whether both are the same project; undefined for the embedded stack.
 * @param deep recounts everything that is derived, which reads every table.
 */
export async function checkDatabase(
  databaseUrl: string | undefined,
  projectUrl: string | undefined,
  deep = false,
): Promise<Finding[]> {
  if (databaseUrl === undefined) {
    const message = 'DATABASE_URL is not set: migrations and grants are not compared, and `usher keys` cannot work.'
    return [warning('database', message, connectionString)]
  }
  const [ours, theirs] = [projectOf(databaseUrl), projectUrl && projectOf(projectUrl)]
  if (ours !== undefined && theirs !== undefined && ours !== theirs) {
    const message = `DATABASE_URL belongs to the project ${ours}, SUPABASE_URL to ${theirs}.`
    return [failed('database', message, 'Take both from the same project.')]
  }
  try {
    return await withDatabase(databaseUrl, async (client) => {
      const history = await compareMigrations(databaseUrl)
      const findings = [await checkRole(client), checkHistory(history)]
      if (history.isNew) findings.push(...(await checkNames(client)))
      // Without the migrations there is nothing to grant, and no table of keys.
      if (history.pending.length === 0)
        findings.push(
          await checkGrants(client),
          await checkKeys(client),
          await checkContacts(client),
          ...(await checkRealtime(client)),
          ...(deep ? await checkInvariants(client) : []),
        )
      return findings
    })
  } catch (error) {
    if (!(error instanceof AdminError)) throw error
    return [failed('database', error.message, connectionString)]
  }
}

/** The reference of a hosted project, which is in its host names and in the user name of the pooler. */
function projectOf(url: string): string | undefined {
  const { hostname, username } = new URL(url)
  return /^(?:db\.)?([a-z]{20})\.supabase\.co$/.exec(hostname)?.[1] ?? /^postgres\.([a-z]{20})$/.exec(username)?.[1]
}

async function checkRole(client: pg.ClientBase): Promise<Finding> {
  const { rows } = await client.query<{ role: string }>('select current_user as role')
  const role = rows[0]?.role
  if (role === 'postgres') return ok('database', 'The database accepts connections as the role postgres.')
  return failed('database', `DATABASE_URL is for the role ${role}.`, connectionString)
}

function checkHistory({ pending, unknown }: { pending: string[]; unknown: string[] }): Finding {
  if (pending.length > 0 && unknown.length > 0) {
    return failed(
      'migration_history',
      `The project has unknown migrations (${unknown.join(', ')}) and lacks ${pending.join(', ')}.`,
      'Use the release of Usher that created the project, or a new project: see docs/operate/upgrade.md.',
    )
  }
  if (pending.length > 0) return failed('migration_history', `Not applied: ${pending.join(', ')}.`, applyMigrations)
  if (unknown.length > 0) {
    return warning(
      'migration_history',
      `The project is ahead, with migrations ${unknown.join(', ')}.`,
      'Deploy the release of Usher that has these migrations.',
    )
  }
  return ok('migration_history', 'Every migration is applied.')
}

/** Before the first migration: what the project has by a name that Usher gives to something of its own. */
async function checkNames(client: pg.ClientBase): Promise<Finding[]> {
  const { rows } = await client.query<{ taken: string }>(
    `select 'schema ' || nspname as taken from pg_namespace where nspname in ('api', 'private')
     union all
     select 'public.' || c.relname from pg_class c where c.relnamespace = 'public'::regnamespace and c.relname = any ($1)
     union all
     select 'type public.' || t.typname from pg_type t
     where t.typnamespace = 'public'::regnamespace and t.typrelid = 0 and t.typname = any ($1)
     union all
     select 'function ' || p.oid::regprocedure from pg_proc p where p.pronamespace = 'public'::regnamespace and p.proname = any ($1)
     order by 1`,
    [namesInPublic()],
  )
  if (rows.length === 0) return []
  return [
    failed(
      'names',
      `The project already has objects that Usher creates: ${rows.map(({ taken }) => taken).join(', ')}.`,
      'Rename these, or give Usher its own project: see "A project with other tables" in docs/operate/supabase.md.',
    ),
  ]
}

async function checkGrants(client: pg.ClientBase): Promise<Finding> {
  const needed = operations.map((operation) => ({ fn: operation.name, role: roleOf(operation) }))
  const { rows } = await client.query<{ complaint: string; fix: string }>(
    `select format('%s may not execute api.%s.', n.role, n.fn) as complaint,
       format('grant execute on function %s to %I;', p.oid::regprocedure, n.role) as fix
     from jsonb_to_recordset($1) as n (fn text, role text)
     join pg_proc p on p.proname = n.fn and p.pronamespace = to_regnamespace('api')
     join pg_roles r on r.rolname = n.role
     where not has_function_privilege(r.oid, p.oid, 'execute')
     union all
     select format('%s may execute %s.', r.rolname, p.oid::regprocedure),
       format('revoke execute on function %s from public, %I;', p.oid::regprocedure, r.rolname)
     from pg_proc p, pg_roles r
     where p.pronamespace = to_regnamespace('api') and r.rolname in ('anon', 'service_role')
       and has_function_privilege(r.oid, p.oid, 'execute')
     union all
     select format('%s has privileges on %s.', r.rolname, c.oid::regclass),
       format('revoke all on table %s from %I;', c.oid::regclass, r.rolname)
     from pg_class c, pg_roles r
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'v', 'm', 'p') and r.rolname in ('anon', 'service_role')
       and (c.relname in ('organisations', 'plans') or exists (
         select from pg_attribute a where a.attrelid = c.oid and a.attname = 'organisation_id'
       ))
       and has_table_privilege(r.oid, c.oid, 'select, insert, update, delete')
     order by 1`,
    [JSON.stringify(needed)],
  )
  if (rows.length === 0)
    return ok('grants', 'Each role can execute what its scope needs, anon and service_role nothing.')
  const complaints = rows.map(({ complaint }) => complaint)
  const shown = complaints.slice(0, 3).join(' ') + (complaints.length > 3 ? ` And ${complaints.length - 3} more.` : '')
  return failed('grants', shown, `Run as postgres: ${rows.map(({ fix }) => fix).join(' ')}`)
}

async function checkKeys(client: pg.ClientBase): Promise<Finding> {
  const { rows } = await client.query(
    "select from public.api_keys where kind <> 'page' and revoked_at is null and (expires_at is null or expires_at > now()) limit 1",
  )
  if (rows.length > 0) return ok('keys', 'There is a valid API key.')
  return warning(
    'keys',
    'There is no valid API key.',
    'npx usher organisations create --name "Acme" --slug acme && npx usher keys create --organisation acme --name "First steps" --scopes all',
  )
}

async function checkContacts(client: pg.ClientBase): Promise<Finding> {
  const { rows } = await client.query<{ all: number; without: number; one: string | null }>(
    `select count(*)::integer as all, count(*) filter (where o.reply_to_email is null)::integer as without,
       min(o.slug) filter (where o.reply_to_email is null) as one
     from public.organisations o`,
  )
  const { all = 0, without = 0, one } = rows[0] ?? {}
  if (without === 0) return ok('contacts', 'Every organisation has a reply-to address.')
  return warning(
    'contacts',
    `${without} of ${all} organisations have no reply_to_email: replies to their e-mails go to MAIL_FROM, and ticket pages show no address.`,
    `npx usher organisations update --organisation ${one} --reply-to-email hello@example.com`,
  )
}

/** Supabase makes the table when a project first uses Realtime, which may be after the migrations. Nothing is found where it is not there. */
async function checkRealtime(client: pg.ClientBase): Promise<Finding[]> {
  const { rows } = await client.query<{ allowed: boolean }>(
    `select exists (
       select from pg_policy p where p.polrelid = c.oid and p.polname = 'usher_members_listen_to_arrivals'
     ) as allowed
     from pg_class c where c.oid = to_regclass('realtime.messages')`,
  )
  return rows.map(({ allowed }) =>
    allowed
      ? ok('realtime', 'Members can listen to arrivals by Realtime.')
      : warning(
          'realtime',
          'Members cannot listen to arrivals: Realtime was enabled after the migrations.',
          'Run as postgres: select private.set_up_realtime();',
        ),
  )
}

/** One finding for each check that some rows do not pass. */
async function checkInvariants(client: pg.ClientBase): Promise<Finding[]> {
  // The rows of a large database are added up in memory, and compiling a statement of this size takes longer than it saves.
  await client.query("set work_mem = '128MB'; set jit = off")
  const { rows } = await client.query<{
    check: string
    table: string
    ids: string[]
    count: number
    stored: string
    expected: string
  }>(
    `select d."check", d."table", (array_agg(d.id order by d.id))[:10]::text[] as ids, count(*)::integer, min(d.stored) as stored, min(d.expected) as expected
     from (${disagreementsSql}) d group by 1, 2 order by 1`,
    [null],
  )
  if (rows.length === 0) return [ok('invariants', 'All derived data matches a recount.')]
  const fix = 'Keep a backup, stop changing these rows, and report it.'
  return rows.map(({ check, table, ids, count, stored, expected }) => {
    const others = count > ids.length ? `, and ${count - ids.length} others` : ''
    const told = count > 1 ? '' : `: ${stored}, expected ${expected}`
    return failed('invariants', `Violated: ${check}. In ${table}: ${ids.join(', ')}${others}${told}.`, fix)
  })
}
