// Organisations and API keys for the command line, as the role `postgres`. A new key's text is returned once, to be printed;
// only its hash is stored.

import pg from 'pg'
import { createKey, hashOf, hasMarker, modeOf, prefixOf } from '../gateway/api-key.ts'
import { withClient } from './client.ts'

/** Why the database refused, as a sentence for the terminal. */
export class AdminError extends Error {}

export type Organisation = { id: string; name: string; slug: string; plan: string; created_at: Date }
export type KeyRow = {
  prefix: string
  /** A person signs in with theirs. A grant is what they allowed a client. A page has one to register guests with. */
  kind: 'key' | 'person' | 'grant' | 'page'
  name: string
  organisation: string
  scopes: string[]
  confirmations: Confirmations
  created_at: Date
  last_used_at: Date | null
  expires_at: Date | null
  revoked_at: Date | null
}

/** Runs `work` on one connection, in one transaction. @throws AdminError */
export async function withDatabase<T>(databaseUrl: string, work: (client: pg.ClientBase) => Promise<T>): Promise<T> {
  let isConnected = false
  try {
    return await withClient(databaseUrl, async (client) => {
      isConnected = true
      await client.query('begin')
      const result = await work(client)
      await client.query('commit')
      return result
    })
  } catch (error) {
    if (!isConnected) throw new AdminError(`Cannot connect to the database: ${(error as Error).message}`)
    throw toAdminError(error)
  }
}

export async function createOrganisation(
  client: pg.ClientBase,
  { name, slug, plan, test = false }: { name: string; slug: string; plan?: string; test?: boolean },
): Promise<Organisation> {
  const { rows } = await client.query<Organisation>(
    `insert into public.organisations (name, slug, plan${test ? ', is_test' : ''})
     values ($1, $2, coalesce($3, 'standard')${test ? ', true' : ''})
     returning id, name, slug, plan, created_at`,
    [name, slug, plan],
  )
  return rows[0] as Organisation
}

/** All of them, with the number of their keys that work. */
export async function listOrganisations(client: pg.ClientBase): Promise<(Organisation & { keys: number })[]> {
  const { rows } = await client.query<Organisation & { keys: number }>(
    `select o.id, o.name, o.slug, o.plan, o.created_at,
       (select count(*)::integer from public.api_keys k where k.organisation_id = o.id and k.kind <> 'page' and private.is_usable_key(k)) as keys
     from public.organisations o order by o.slug`,
  )
  return rows
}

const changeable = [
  'name',
  'plan',
  'reply_to_email',
  'accent_colour',
  'logo_url',
  'payment_instructions',
  'seller_details',
  'tax_note',
  'confirm_refunds_above',
  'embed_origins',
] as const
type Changeable = (typeof changeable)[number]

/** @param changes what is left out is unchanged; an empty text clears. */
export async function updateOrganisation(
  client: pg.ClientBase,
  slug: string,
  changes: { [column in Changeable]?: string | undefined },
): Promise<Organisation & Record<Exclude<Changeable, keyof Organisation>, string | null>> {
  const columns = changeable.filter((column) => changes[column] !== undefined)
  const assigned = (column: Changeable, text: string) => {
    if (column === 'embed_origins') return `string_to_array(${text}, ',')`
    return `nullif(${text}, '')${column === 'confirm_refunds_above' ? '::bigint' : ''}`
  }
  const assignments = columns.map((column, i) => `${column} = ${assigned(column, `$${i + 2}`)}`)
  if (columns.length > 0) {
    const values = columns.map((column) => changes[column])
    await client.query(`update public.organisations set ${assignments.join(', ')} where slug = $1`, [slug, ...values])
  }
  const { rows } = await client.query(
    `select id, slug, ${changeable.join(', ')}, created_at from public.organisations where slug = $1`,
    [slug],
  )
  if (rows[0] === undefined) throw noSuchOrganisation(slug)
  return rows[0]
}

const noSuchOrganisation = (slug: string) => new AdminError(`There is no organisation ${slug}.`)

async function assertOrganisation(client: pg.ClientBase, slug: string): Promise<void> {
  const known = await client.query('select from public.organisations where slug = $1', [slug])
  if (known.rowCount === 0) throw noSuchOrganisation(slug)
}

/** With everything of it. @returns the number of rows of each table, the most first. */
export async function deleteOrganisation(client: pg.ClientBase, slug: string): Promise<Record<string, number>> {
  await assertOrganisation(client, slug)
  // One statement, which takes half a minute for 60,000 orders.
  await client.query('set statement_timeout = 0')
  const { rows } = await client.query<{ deleted: Record<string, number> }>(
    'select private.delete_organisation($1) as deleted',
    [slug],
  )
  return mostFirst(rows[0]?.deleted)
}

/** Of a test organisation, but for its settings, members, keys and webhook endpoints. @returns as `deleteOrganisation`. */
export async function emptyTestOrganisation(client: pg.ClientBase, slug: string): Promise<Record<string, number>> {
  await assertOrganisation(client, slug)
  await client.query('set statement_timeout = 0')
  const { rows } = await client.query<{ deleted: Record<string, number> }>(
    'select public.empty_test_organisation((select id from public.organisations where slug = $1)) as deleted',
    [slug],
  )
  return mostFirst(rows[0]?.deleted)
}

const mostFirst = (counts: Record<string, number> = {}) =>
  Object.fromEntries(Object.entries(counts).toSorted(([, a], [, b]) => b - a))

/** Whether a person confirms what a key asks for over MCP and cannot be undone. */
export const confirmationsOfKeys = ['asked', 'none'] as const
export type Confirmations = (typeof confirmationsOfKeys)[number]

/** @returns the key itself, which cannot be read again. */
export async function issueKey(
  client: Pick<pg.ClientBase, 'query'>,
  {
    organisation,
    name,
    scopes,
    expiresAt,
    confirmations = 'asked',
    kind = 'key',
  }: {
    organisation: string
    name: string
    scopes: readonly string[]
    expiresAt?: Date
    confirmations?: Confirmations
    kind?: 'key' | 'person'
  },
): Promise<string> {
  // A schema of the version before knows no test organisation, and no other kind or argument for it.
  const { rows } = await client.query<{ is_test: boolean | null }>(
    `select (to_jsonb(o) ->> 'is_test')::boolean as is_test from public.organisations o where o.slug = $1`,
    [organisation],
  )
  const key = createKey(rows[0]?.is_test ? 'test' : 'live')
  await client.query(
    `select private.create_api_key($1, $2, $3::public.api_scope[], $4, decode($5, 'hex'), $6,
       confirmations => $7::public.api_key_confirmations${kind === 'person' ? ", kind => 'person'" : ''})`,
    [organisation, name, scopes, prefixOf(key), hashOf(key), expiresAt ?? null, confirmations],
  )
  return key
}

/** A key for the door page of one event; by default until a day after it. */
export async function issueDoorKey(
  client: pg.ClientBase,
  {
    organisation,
    event,
    point,
    expiresAt,
    walkIns = false,
  }: { organisation: string; event: string; point?: string; expiresAt?: Date; walkIns?: boolean },
): Promise<{ key: string; eventId: string; pointId: string | null; expiresAt: Date; timezone: string }> {
  const { rows } = await client.query<{ id: string; name: string; ends_at: Date | null; timezone: string }>(
    `select e.id, e.name, coalesce(e.ends_at, e.starts_at) as ends_at, e.timezone
     from public.events e join public.organisations o on o.id = e.organisation_id
     where o.slug = $1 and (e.slug = $2 or e.id::text = lower($2))
     order by e.slug = $2
     limit 1`,
    [organisation, event],
  )
  const found = rows[0]
  if (found === undefined) throw await noSuchEvent(client, organisation, event)
  const day = 86_400_000
  const until = expiresAt ?? new Date((found.ends_at?.getTime() ?? Date.now()) + day)
  if (until.getTime() <= Date.now()) throw new AdminError('The event is over. Give --expires, such as 12h.')
  const pointId = point === undefined ? null : await findPoint(client, found.id, point)
  const name = `Door: ${found.name}`.slice(0, 200)
  // To register somebody, see the prices, and record money.
  const more = walkIns ? (['events:read', 'attendees:write', 'orders:write'] as const) : []
  const key = await issueKey(client, { organisation, name, scopes: ['checkin:write', ...more], expiresAt: until })
  return { key, eventId: found.id, pointId, expiresAt: until, timezone: found.timezone }
}

/** By name or id. */
async function findPoint(client: pg.ClientBase, eventId: string, point: string): Promise<string> {
  const { rows } = await client.query<{ id: string; name: string; is_meant: boolean }>(
    `select p.id, p.name, private.search_form($2) in (p.id::text, private.search_form(p.name)) as is_meant
     from public.check_in_points p where p.event_id = $1 and p.status = 'active' order by p.id`,
    [eventId, point],
  )
  const found = rows.filter(({ is_meant }) => is_meant)
  const [first] = found
  if (first !== undefined && found.length === 1) return first.id
  const list = (found.length > 1 ? found.map(({ id, name }) => `${id} (${name})`) : rows.map(({ name }) => name))
    .map((each) => `\n  ${each}`)
    .join('')
  const candidates = list === '' ? ' It has none.' : ` Give one of these:${list}`
  const problem = found.length > 1 ? 'several check-in points' : 'no active check-in point'
  throw new AdminError(`The event has ${problem} ${point}.${candidates}`)
}

/** Names what may have been meant: events that are called like it first, and then those nearest to today. */
async function noSuchEvent(client: pg.ClientBase, organisation: string, event: string): Promise<AdminError> {
  await assertOrganisation(client, organisation)
  const { rows } = await client.query<{ slug: string; day: string }>(
    `select e.slug, coalesce(to_char(e.starts_at at time zone e.timezone, 'YYYY-MM-DD'), 'no date') as day
     from public.events e join public.organisations o on o.id = e.organisation_id
     where o.slug = $1 and e.status <> 'cancelled'
     order by strpos(concat_ws(' ', e.slug, private.slug_form(e.name, 'en')), private.slug_form($2, 'en')) = 0,
       abs(extract(epoch from e.starts_at - now())) nulls last, e.slug
     limit 10`,
    [organisation, event],
  )
  const events = rows.map(({ slug, day }) => `\n  ${slug} (${day})`)
  const candidates = events.length > 0 ? ` Give one of these:${events.join('')}` : ' It has none yet.'
  return new AdminError(`The organisation ${organisation} has no event ${event}.${candidates}`)
}

const selectKeys = `
  select k.prefix, k.kind, k.name, o.slug as organisation, k.scopes::text[] as scopes, k.confirmations,
    k.created_at, k.last_used_at, k.expires_at, k.revoked_at
  from public.api_keys k join public.organisations o on o.id = k.organisation_id`

export async function listKeys(client: pg.ClientBase, organisation: string): Promise<KeyRow[]> {
  await assertOrganisation(client, organisation)
  const { rows } = await client.query<KeyRow>(`${selectKeys} where o.slug = $1 order by k.id`, [organisation])
  return rows
}

/** @param key a prefix, or a whole key: somebody found it, and the rest of it is repeated nowhere. */
export async function revokeKey(client: pg.ClientBase, key: string): Promise<KeyRow & { revokedBefore: boolean }> {
  const prefix = await knownPrefix(client, key)
  const { rowCount } = await client.query(
    'update public.api_keys set revoked_at = now() where prefix = $1 and revoked_at is null',
    [prefix],
  )
  const { rows } = await client.query<KeyRow>(`${selectKeys} where k.prefix = $1`, [prefix])
  return { ...(rows[0] as KeyRow), revokedBefore: rowCount === 0 }
}

async function knownPrefix(client: pg.ClientBase, key: string): Promise<string> {
  const text = key.trim()
  const prefix = hasMarker(text) ? prefixOf(text) : text
  const { rowCount } = await client.query('select from public.api_keys where prefix = $1', [prefix])
  if (rowCount !== 0) return prefix
  // What has another form may be a secret of something else.
  const named = /^usher_(live|test|grant)_[0-9A-Za-z]{1,12}$/.test(prefix) ? `no API key ${prefix}` : 'no such API key'
  throw new AdminError(`There is ${named}. List them with: usher keys list --organisation SLUG`)
}

/**
 * @param old as of `revokeKey`.
 * @returns the new key; the old one works until the overlap ends.
 */
export async function rotateKey(client: pg.ClientBase, old: string, overlapSeconds: number): Promise<string> {
  const prefix = await knownPrefix(client, old)
  const key = createKey(modeOf(prefix))
  await client.query("select private.rotate_api_key($1, $2, decode($3, 'hex'), make_interval(secs => $4))", [
    prefix,
    prefixOf(key),
    hashOf(key),
    overlapSeconds,
  ])
  return key
}

/** The slug of the organisation that has an event of this id, slug, name or external_id; without one, the only organisation. */
export async function findOrganisationOfEvent(client: pg.ClientBase, event: string): Promise<string> {
  const { rows } = await client.query<{ slug: string; has_event: boolean }>(
    `select o.slug, exists (
       select from public.events e
       where e.organisation_id = o.id
         and (e.id::text = lower($1) or e.slug = lower($1) or lower(e.name) = lower($1) or e.external_id = $1)
     ) as has_event
     from public.organisations o
     order by has_event desc, o.slug
     limit 11`,
    [event],
  )
  const [first, second] = rows
  if (first === undefined)
    throw new AdminError('There is no organisation yet. Create one with: usher organisations create')
  if (second === undefined || (first.has_event && !second.has_event)) return first.slug
  throw new AdminError(`Give the organisation with --organisation, such as ${rows.map(({ slug }) => slug).join(', ')}.`)
}

/** @returns what it did, as a sentence. */
export async function releaseDeliveries(client: pg.ClientBase): Promise<string> {
  const { rows } = await client.query<{ done: string }>('select private.release_deliveries() as done')
  return rows[0]?.done ?? ''
}

// By code and field of one of Usher's own rules; of a race, by the name of the constraint.
const messages: Record<string, string> = {
  organisations_slug_key: 'An organisation already has this slug. Choose another --slug.',
  'already_exists slug': 'An organisation already has this slug. Choose another --slug.',
  'validation_failed slug': '--slug takes lower-case letters, digits and hyphens, at most 63.',
  'validation_failed name': '--name, or --person, takes one line of 1 to 200 characters.',
  'not_found plan': 'There is no such plan. The table public.plans lists them.',
}

function toAdminError(error: unknown): Error {
  if (!(error instanceof pg.DatabaseError)) return error as Error
  const { code, param } = (error.code?.startsWith('PT') ? JSON.parse(error.detail ?? '{}') : {}) as {
    code?: string
    param?: string
  }
  const message = messages[error.constraint ?? `${code} ${param}`]
  if (message !== undefined) return new AdminError(message)
  return new AdminError([error.message, error.hint].filter(Boolean).join(' '))
}
