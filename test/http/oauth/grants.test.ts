// Grants in the database: what an access token may of them, what happens to them at once, how many there are, and how long they are kept.

import { beforeAll, expect, test } from 'vitest'
import { prefixOf } from '../../../src/gateway/api-key.ts'
import { actAs } from '../../database/actor.ts'
import { during, row, studio } from '../../support/database.ts'
import { createOrganisation, type TestOrganisation } from '../../support/organisation.ts'
import { appOfThisFile } from '../../support/own-app.ts'
import { edit } from '../../support/studio.ts'
import { callWith, codeGrant, decide, formTokenOf, Jar, walkToConsent } from './walk.ts'

const { url } = await appOfThisFile({ trustProxy: true })

let organisation: TestOrganisation
beforeAll(async () => {
  organisation = await createOrganisation()
})

const idOf = async (key: string) =>
  (await row<{ id: string }>('select id from public.api_keys where prefix = $1', [prefixOf(key)])).id
const grantsOf = async (key: string) =>
  (await studio.query('select * from public.api_keys where parent_id = $1 order by id', [await idOf(key)])).rows
const addGrants = async (key: string, count: number) =>
  studio.query(
    `insert into public.api_keys (organisation_id, kind, parent_id, name, prefix, scopes, expires_at)
     select k.organisation_id, 'grant', k.id, 'Client', 'usher_grant_' || left(replace(gen_random_uuid()::text, '-', ''), 12),
       '{events:read,orders:read}', now() + interval '1 day'
     from public.api_keys k, generate_series(1, $2) where k.prefix = $1`,
    [prefixOf(key), count],
  )

/** Somebody who is signed in in a browser. */
async function signedIn(key: string) {
  const walk = await walkToConsent(key, { jar: new Jar(url) })
  const allow = (client: Pick<typeof studio, 'query'>, days: number) =>
    client.query(
      `select api.allow_client(encode(s.secret_hash, 'hex'), 'client', 'Client', '127.0.0.1', 'https://usher.example', '{events:read}', $2)
       from private.oauth_sign_ins s where s.api_key_id = $1`,
      [id, days],
    )
  const id = await idOf(key)
  return { id, walk, allow }
}

/** Begins while somebody else holds the key, who does the rest once they are waited for. */
async function whileHeld(id: string, begin: () => Promise<unknown>[], rest: string) {
  const { begun, held } = await during(async (client) => {
    const [{ pid }] = (
      await client.query('select pg_backend_pid() as pid from public.api_keys where id = $1 for no key update', [id])
    ).rows
    const begun = Promise.allSettled(begin())
    const waiting = async () =>
      (await studio.query('select from pg_stat_activity where $1 = any(pg_blocking_pids(pid))', [pid])).rowCount
    await expect.poll(waiting).toBeGreaterThanOrEqual(1)
    const held = await client.query(rest, [id]).then(
      () => 'done',
      (error: { code: string }) => error.code,
    )
    await client.query('commit')
    return { begun, held }
  })
  return { held, outcomes: (await begun).map((outcome) => ('reason' in outcome ? outcome.reason.code : 'done')) }
}

test('an access token keeps the scopes that it was issued for when its grant gets more', async () => {
  const key = await organisation.personKey()
  const jar = new Jar(url)
  const first = await walkToConsent(key, { jar, scope: 'events:read' })
  const token = (await codeGrant(first, await decide(first))).body.access_token
  const more = await walkToConsent(key, { jar, clientId: first.clientId, scope: 'events:read orders:read' })
  expect(more.page.text).toContain('will end at the same time')
  const both = (await codeGrant(more, await decide(more, { scope: 'orders:read' }))).body.access_token

  const [grant, ...others] = await grantsOf(key)
  expect([grant.scopes, others]).toEqual(['{events:read,orders:read}', []])
  const scopesOf = async (of: string | undefined) =>
    JSON.parse((await callWith(of, url, undefined, 'get_api_key')).text).result.structuredContent.data.scopes
  // One after the other, and then from what the process knows of both.
  expect([await scopesOf(token), await scopesOf(both), await scopesOf(token)]).toEqual([
    ['events:read'],
    ['events:read', 'orders:read'],
    ['events:read'],
  ])
  expect((await callWith(token, url, undefined, 'list_orders')).status).toBe(403)
  // As for what a function shows by scope.
  const claims = { api_key_id: grant.id, organisation_id: organisation.id, scopes: 'events:read' }
  expect(await actAs('api_key', claims, ({ rows }) => rows('select private.current_scopes()::text as now'))).toEqual([
    { now: '{events:read}' },
  ])
})

test('whoever revokes a key and whoever allows a client with it do not lock each other out', async () => {
  const key = await organisation.personKey()
  const { id, allow } = await signedIn(key)
  await allow(studio, 1)
  const revoke = 'update public.api_keys set revoked_at = now() where id = $1'
  const { held, outcomes } = await whileHeld(id, () => [allow(studio, 30)], revoke)
  expect([held, outcomes]).toEqual(['done', ['PT409']])
  expect((await grantsOf(key)).map(({ revoked_at }) => revoked_at === null)).toEqual([false])
})

test('pressed twice at once, the button makes one grant', async () => {
  const key = await organisation.personKey()
  const { id, allow } = await signedIn(key)
  const { outcomes } = await whileHeld(id, () => [allow(studio, 1), allow(studio, 1)], 'select $1::uuid')
  expect(outcomes).toEqual(['done', 'done'])
  expect(await grantsOf(key)).toHaveLength(1)
})

test('a key has a hundred grants at most, and the page says what to do', async () => {
  const key = await organisation.personKey()
  const { id, walk } = await signedIn(key)
  await addGrants(key, 100)
  const refused = await walk.jar.ask(walk.at, {
    form: { action: 'allow', scope: 'events:read', form_token: formTokenOf(walk.page) },
  })
  expect([refused.status, refused.text.includes('Too many clients use this key')]).toEqual([400, true])
  expect(refused.text).toContain('href="../grants"')
  await studio.query(
    "update public.api_keys set expires_at = now() - interval '1 minute' where id = (select min(id::text)::uuid from public.api_keys where parent_id = $1)",
    [id],
  )
  await decide(walk)
  expect(await grantsOf(key)).toHaveLength(101)
})

test('a key that shrinks touches no grant that has ended', async () => {
  const key = await organisation.personKey()
  await addGrants(key, 2)
  const [ended] = await grantsOf(key)
  await edit('api_keys', ended.id, "expires_at = now() - interval '1 minute'")
  await edit('api_keys', await idOf(key), "scopes = '{events:read}'")
  expect((await grantsOf(key)).map(({ scopes }) => scopes)).toEqual(['{events:read,orders:read}', '{events:read}'])
  // Nor can it come back with more than its key has.
  await expect(edit('api_keys', ended.id, "expires_at = now() + interval '1 hour'")).rejects.toThrow('lacks')
})

test('a grant that ended unused is forgotten after a day, and one that was used is kept', async () => {
  const key = await organisation.personKey()
  await addGrants(key, 3)
  const [unused, used, good] = await grantsOf(key)
  await studio.query("update public.api_keys set expires_at = now() - interval '25 hours' where id = any ($1)", [
    [unused.id, used.id],
  ])
  await edit('api_keys', used.id, 'last_used_at = now()')
  await studio.query('select api.purge(30, 1000)')
  expect((await grantsOf(key)).map(({ id }) => id)).toEqual([used.id, good.id])
})

test('a key for a program does not sign in, and the page says what to make instead', async () => {
  const jar = new Jar(url)
  const form_token = formTokenOf(await jar.ask('/oauth/grants'))
  const { status, text } = await jar.ask('/oauth/grants', {
    form: { action: 'sign_in', key: await organisation.key(), form_token },
  })
  expect([status, jar.cookies.size]).toEqual([400, 1])
  expect(text).toContain('npx usher keys create --organisation SLUG --person &quot;Your name&quot; --scopes all')
})

test('a browser is signed in for as long as the key is good', async () => {
  const key = await organisation.personKey()
  const id = await idOf(key)
  await edit('api_keys', id, "expires_at = now() + interval '1 hour'")
  const jar = new Jar(url)
  const form_token = formTokenOf(await jar.ask('/oauth/grants'))
  const signedIn = await jar.ask('/oauth/grants', { form: { action: 'sign_in', key, form_token } })
  const seconds = Number(/usher_sign_in\w*=[^;]+;.*Max-Age=(\d+)/.exec(signedIn.headers.getSetCookie().join())?.[1])
  expect([seconds > 3000, seconds <= 3600]).toEqual([true, true])
  // Extended, the key is to be pasted again.
  await edit('api_keys', id, "expires_at = now() + interval '9 days'")
  const kept = await row(
    "select expires_at < now() + interval '2 hours' as ends from private.oauth_sign_ins where api_key_id = $1",
    [id],
  )
  expect(kept).toEqual({ ends: true })
})
