// Deleting an organisation wholly. Which tables have rows of an organisation is asked of the catalogue, so that a new one is noticed.

import { expect, test } from 'vitest'
import { brokenRules } from '../../properties/invariants.ts'
import { row, studio } from '../../support/database.ts'
import { createOrganisation } from '../../support/organisation.ts'
import type { Claims } from '../actor.ts'
import { send, sign } from '../data-api-client.ts'
import { createTenant, type Tenant } from '../tenant-fixture.ts'

/** All but views. */
async function tablesOfOrganisations(): Promise<string[]> {
  const { rows } = await studio.query<{ name: string }>(
    `select c.oid::regclass::text as name
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'organisation_id' and not a.attisdropped
     where c.relkind in ('r', 'p') and c.relnamespace in ('public'::regnamespace, 'private'::regnamespace) order by 1`,
  )
  return rows.map(({ name }) => name)
}

/** How many rows each table has of it. */
async function rowsOf(id: string): Promise<Record<string, number>> {
  const counts = (await tablesOfOrganisations()).map(async (table) => {
    const { n } = await row<{ n: number }>(`select count(*)::int as n from ${table} where organisation_id = $1`, [id])
    return [table, n] as const
  })
  const { n } = await row<{ n: number }>('select count(*)::int as n from public.organisations where id = $1', [id])
  return { organisations: n, ...Object.fromEntries(await Promise.all(counts)) }
}

/** Besides what every tenant has, what only some calls leave behind. */
async function fill({ id, keyId, claims, event }: Tenant): Promise<void> {
  // No person types a grant.
  await studio.query(
    `do $do$
     begin
       perform set_config('request.jwt.claims', '{"role":"gateway"}', true);
       insert into public.api_keys (organisation_id, kind, parent_id, name, prefix, scopes, expires_at)
       values ('${id}', 'grant', '${keyId}', 'Assistant', 'usher_grant_${keyId.slice(-12)}', '{events:read}', now() + interval '1 hour');
       insert into private.oauth_sign_ins values (sha256('${keyId}'), '${keyId}', now(), now() + interval '1 hour');
       insert into private.oauth_grants (api_key_id, client_id, returns_to, resource, sign_in_hash)
       select k.id, 'client', 'https://client.example', 'https://usher.example', sha256('${keyId}')
       from public.api_keys k where k.parent_id = '${keyId}';
     end
     $do$`,
  )
  await studio.query(
    `insert into private.idempotency_records (organisation_id, family_id, idempotency_key, request_fingerprint, outcome)
     values ($1, $2, 'key', 'fingerprint', '{}')`,
    [id, claims.family_id],
  )
  await studio.query(
    `insert into private.event_plans (organisation_id, family_id, arguments, read, steps_digest, refusals) values ($1, $2, '{}', '{}', '', 0)`,
    [id, claims.family_id],
  )
  await studio.query(
    `insert into private.confirmations (organisation_id, api_key_id, operation, scope, fingerprint, arguments, effect)
     values ($1, $2, 'cancel_event', 'events:write', sha256(''), '{}', '{}')`,
    [id, keyId],
  )
  await studio.query(
    `insert into private.export_links (organisation_id, api_key_id, token_hash, operation, arguments)
     values ($1, $2, sha256($1::uuid::text::bytea), 'export_orders', '{}')`,
    [id, keyId],
  )
  // A webhook that waits, and a change that nobody was told.
  await event.guest()
  await studio.query("update public.events set venue_city = 'Ghent' where id = $1", [event.id])
}

const deletion = async (id: string) =>
  (
    await row<{ deleted: Record<string, number> }>(
      'select private.delete_organisation((select slug from public.organisations where id = $1)) as deleted',
      [id],
    )
  ).deleted

async function settle({ id }: Pick<Tenant, 'id'>): Promise<void> {
  await studio.query('update public.api_keys set revoked_at = now() where organisation_id = $1', [id])
  await studio.query(
    "update public.events set starts_at = now() - interval '3 days', ends_at = now() - interval '2 days' where organisation_id = $1",
    [id],
  )
  await studio.query(
    "update public.emails set status = 'cancelled', next_attempt_at = null where organisation_id = $1 and status = 'queued'",
    [id],
  )
}

test('of an organisation that is deleted no row is left anywhere, and others keep theirs', async () => {
  const [gone, kept] = await Promise.all([createTenant(), createTenant()])
  await Promise.all([fill(gone), fill(kept)])
  await settle(gone)
  const before = await rowsOf(gone.id)
  expect(Object.entries(before).filter(([, rows]) => rows === 0)).toEqual([])
  const ofOthers = await rowsOf(kept.id)

  const deleted = await deletion(gone.id)
  expect(deleted).toMatchObject({ organisations: 1, attendees: before.attendees, payments: before.payments })
  const after = await rowsOf(gone.id)
  expect(Object.entries(after).filter(([, rows]) => rows > 0)).toEqual([])
  expect(await rowsOf(kept.id)).toEqual(ofOthers)
  expect(await brokenRules(kept.event.id)).toEqual([])

  // What names no organisation is below a foreign key; of sign-ins, which have a hash alone, it is looked for.
  const signIns = await studio.query('select from private.oauth_sign_ins where secret_hash = sha256($1::text::bytea)', [
    gone.keyId,
  ])
  expect(signIns.rows).toEqual([])
  // Accounts belong to the project.
  const { n } = await row<{ n: number }>('select count(*)::int as n from auth.users where id = any ($1)', [
    [gone.owner.sub, gone.member.sub],
  ])
  expect(n).toBe(2)
})

test('a test organisation is emptied by its owners: members, keys and endpoints stay, and it goes on', async () => {
  const [emptied, live] = await Promise.all([createTenant({ isTest: true }), createTenant()])
  await Promise.all([fill(emptied), fill(live)])
  const before = await rowsOf(emptied.id)
  const ofLive = await rowsOf(live.id)
  const empty = async (organisation_id: string, who: Claims) =>
    send(
      {
        ...{ method: 'POST', path: '/rpc/empty_test_organisation', body: { organisation_id } },
        headers: { 'Content-Profile': 'public' },
      },
      await sign({ ...who, role: 'authenticated' }),
    )
  expect(await empty(emptied.id, emptied.member)).toMatchObject({ status: 404 })
  expect(await empty(live.id, live.owner)).toMatchObject({ status: 422, param: 'organisation_id' })
  expect(await empty(emptied.id, emptied.owner)).toMatchObject({ status: 200, body: { attendees: before.attendees } })
  const after = await rowsOf(emptied.id)
  const stays = ['organisations', 'organisation_members', 'private.requests', 'webhook_endpoints']
  for (const table of stays) expect([table, after[table]]).toEqual([table, before[table]])
  expect(Object.keys(after).filter((table) => after[table] && !stays.includes(table))).toEqual([
    'api_keys',
    'audit_entries',
  ])
  expect(await rowsOf(live.id)).toEqual(ofLive)
})

test('it is refused while somebody is at work with it, a guest may be on the way, or an e-mail waits', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  await event.guest()
  await organisation.key()
  const refusal = async () => (await deletion(organisation.id).catch((error: Error) => error)) as Error
  expect((await refusal()).message).toMatch(
    /^The organisation is in use: the API key usher_live_\w{8} is not revoked\.$/,
  )
  await studio.query('update public.api_keys set revoked_at = now() where organisation_id = $1', [organisation.id])
  expect((await refusal()).message).toMatch(/^The organisation is in use: the event event-\S+ is not over\.$/)
  await studio.query("update public.events set status = 'cancelled' where organisation_id = $1", [organisation.id])
  const { id } = await row<{ id: string }>(
    `insert into public.emails (organisation_id, kind, attendee_id)
     select organisation_id, 'event_cancelled', id from public.attendees where organisation_id = $1 returning id`,
    [organisation.id],
  )
  expect((await refusal()).message).toBe('The organisation is in use: it has queued e-mails (1).')
  await studio.query(
    "update public.emails set status = 'sent', sent_at = now(), next_attempt_at = null where id = $1",
    [id],
  )
  expect(await refusal()).toMatchObject({ organisations: 1, events: 1, attendees: 1 })
  const unknown = studio.query("select private.delete_organisation('nobody-has-this')")
  await expect(unknown).rejects.toThrow('There is no organisation with this slug.')
})
