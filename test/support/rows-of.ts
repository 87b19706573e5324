// All rows of an organisation, whatever table they are in: their fingerprint, what is named in them, and locks on them.

import { during, studio } from './database.ts'

/** How rows are an organisation's that do not say so themselves. */
const through: Record<string, string> = {
  'public.organisations': 't.id = $1',
  'private.api_key_hashes': 't.api_key_id in (select id from public.api_keys where organisation_id = $1)',
  'private.oauth_grants': 't.api_key_id in (select id from public.api_keys where organisation_id = $1)',
  'private.oauth_sign_ins': 't.api_key_id in (select id from public.api_keys where organisation_id = $1)',
  'private.oauth_records': 't.grant_id in (select id from public.api_keys where organisation_id = $1)',
  'private.cancellations': 't.event_id in (select id from public.events where organisation_id = $1)',
  'private.unannounced_changes': 't.event_id in (select id from public.events where organisation_id = $1)',
  'private.webhook_secrets':
    't.webhook_endpoint_id in (select id from public.webhook_endpoints where organisation_id = $1)',
}

/** Rows of nobody: plans, clients before they are allowed anything, and what the installation keeps of itself; and the log of requests, which follows them. */
const ofNobody = [
  'public.plans',
  'private.installations',
  'private.oauth_clients',
  'private.object_names',
  'private.link_keys',
  'private.personal_columns',
  'private.requests',
]

let everyTable: Promise<[table: string, where: string][]> | undefined

async function tablesOf(): Promise<[table: string, where: string][]> {
  const { rows } = await studio.query<{ table: string; owned: boolean }>(
    `select n.nspname || '.' || c.relname as "table",
       exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'organisation_id') as owned
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname in ('public', 'private') and c.relkind in ('r', 'p') order by 1`,
  )
  return rows.flatMap(({ table, owned }): [string, string][] => {
    if (ofNobody.includes(table)) return []
    const where = through[table] ?? (owned ? 't.organisation_id = $1' : undefined)
    if (where === undefined) throw new Error(`Whose are the rows of ${table}? Say so here.`)
    return [[table, where]]
  })
}

/** All rows of an organisation, a checksum for each table. When a key was last used, it says itself. */
export async function fingerprint(organisationId: string): Promise<Record<string, string>> {
  everyTable ??= tablesOf()
  const parts = (await everyTable).map(
    ([table, where]) =>
      `select '${table}' as "table", count(*) || ' ' || md5(coalesce(string_agg(x.text, e'\\n' order by x.text), '')) as sum
       from (select ${table === 'public.api_keys' ? "(to_jsonb(t) - 'last_used_at')" : 't'}::text as text from ${table} t where ${where}) x`,
  )
  const { rows } = await studio.query<{ table: string; sum: string }>(parts.join(' union all '), [organisationId])
  return Object.fromEntries(rows.map(({ table, sum }) => [table, sum]))
}

/** Every identifier in its rows. */
export async function idsOf(organisationId: string): Promise<Set<string>> {
  everyTable ??= tablesOf()
  const parts = (await everyTable).map(([table, where]) => `select t::text as text from ${table} t where ${where}`)
  const { rows } = await studio.query<{ id: string }>(
    `select distinct m[1] as id from (${parts.join(' union all ')}) x, regexp_matches(x.text, '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}', 'g') m`,
    [organisationId],
  )
  return new Set(rows.map(({ id }) => id))
}

/** While every row of an organisation is locked, and every lock that is named for one: whoever waits for one of them has looked at it. */
export async function whileHeld<T>(organisationId: string, work: () => Promise<T>): Promise<T> {
  everyTable ??= tablesOf()
  const tables = await everyTable
  const ids = await idsOf(organisationId)
  return during(async (client) => {
    for (const [table, where] of tables)
      await client.query(`select from ${table} t where ${where} for update`, [organisationId])
    // Advisory locks have a class and the hash of an id: supabase/schemas/20-events/locks.sql and others.
    await client.query(
      'select pg_advisory_xact_lock(class, hashtext(id)) from generate_series(1, 9) class, unnest($1::text[]) id',
      [[...ids]],
    )
    return work()
  })
}
