// The Data API as somebody meets it who holds a token: a real PostgREST, and tokens signed with the project's secret. What
// a token says is checked again against the key at every request, and only schema api answers at all.

import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { hashOf } from '../../src/gateway/api-key.ts'
import { type Scope, scopes } from '../../src/operations/operation.ts'
import { studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import type { Claims } from './actor.ts'
import { tablesIn } from './catalogue.ts'
import { call, claimsOf, keyOf, send, sign } from './data-api-client.ts'

const share = <T>(items: readonly T[], of: number, i: number) => items.filter((_, j) => j % of === i)

const roleOfScope = (scope: Scope) => `scope_${scope.replace(':', '_')}`

describe('a token', () => {
  test.each(scopes)('of the role of %s is worth as much as the scopes of its key', async (scope) => {
    const organisation = await createOrganisation()
    const [has, lacks] = await Promise.all([
      keyOf(organisation, scope),
      keyOf(organisation, ...scopes.filter((other) => other !== scope)),
    ])
    const role = roleOfScope(scope)
    expect(await call('get_api_key', await sign({ ...has.claims, role }))).toMatchObject({
      status: 200,
      body: { id: has.id, scopes: [scope] },
    })
    expect(await call('get_api_key', await sign({ ...lacks.claims, role }))).toMatchObject({
      status: 403,
      code: 'missing_scope',
      details: { scope },
    })
  })

  test.each([
    ['revoked_at = now()', 401, 'api_key_revoked'],
    // A key is revoked or it is not: a moment to come is now.
    ["revoked_at = now() + interval '1 hour'", 401, 'api_key_revoked'],
    ["expires_at = now() - interval '1 second'", 401, 'api_key_expired'],
    ["scopes = '{orders:read}'", 403, 'missing_scope'],
  ])('is refused from the moment its key has %s', async (change, status, code) => {
    const { id, claims } = await keyOf(await createOrganisation())
    const token = await sign({ ...claims, role: 'scope_events_read' })
    expect((await call('list_events', token)).status).toBe(200)
    await studio.query(`update public.api_keys set ${change} where id = $1`, [id])
    expect(await call('list_events', token)).toMatchObject({ status, code })
  })

  test('is good until its key expires', async () => {
    const { id, claims } = await keyOf(await createOrganisation())
    await studio.query("update public.api_keys set expires_at = now() + interval '1 hour' where id = $1", [id])
    expect((await call('list_events', await sign({ ...claims, role: 'scope_events_read' }))).status).toBe(200)
  })

  test.each(['api_key', 'scope_events_read'])('of a key for people is refused, as the role %s too', async (role) => {
    const organisation = await createOrganisation()
    const { claims } = await claimsOf(organisation, await organisation.personKey())
    const answer = await call(role === 'api_key' ? 'get_api_key' : 'list_events', await sign({ ...claims, role }))
    expect(answer).toMatchObject({ status: 403, code: 'key_for_people' })
  })

  test('of a key that is gone is refused', async () => {
    const { id, claims } = await keyOf(await createOrganisation())
    await studio.query('delete from public.api_keys where id = $1', [id])
    const answer = await call('list_events', await sign({ ...claims, role: 'scope_events_read' }))
    expect(answer).toMatchObject({ status: 401, code: 'invalid_api_key' })
  })

  test.each(['api_key', 'scope_events_read'])('of the role %s names a key and its own organisation', async (role) => {
    const [ours, theirs] = await Promise.all([createOrganisation(), createOrganisation()])
    const { claims } = await keyOf(ours)
    const { api_key_id, organisation_id, ...rest } = claims
    const wrong: Claims[] = [
      rest,
      { ...rest, organisation_id } as Claims,
      { ...rest, api_key_id } as Claims,
      { ...claims, organisation_id: theirs.id },
      { ...claims, organisation_id: randomUUID() },
      { ...claims, api_key_id: randomUUID() },
    ]
    for (const each of wrong) {
      const answer = await call('get_api_key', await sign({ ...each, role }))
      expect(answer).toMatchObject({ status: 401, code: 'invalid_api_key' })
    }
  })

  test('reads only the organisation of its key', async () => {
    const [ours, theirs] = await Promise.all([createOrganisation(), createOrganisation()])
    const [event, foreign] = await Promise.all([ours.event(), theirs.event()])
    const token = await sign({ ...(await keyOf(ours)).claims, role: 'scope_events_read' })
    expect((await call('list_events', token)).body).toMatchObject({ data: [{ id: event.id }], has_more: false })
    expect(await call('get_event', token, { event_id: foreign.id })).toMatchObject({ status: 404, code: 'not_found' })
  })

  test('that is expired, or signed by somebody else, or not signed, is refused', async () => {
    const { claims } = await keyOf(await createOrganisation())
    const good = { ...claims, role: 'scope_events_read' }
    const [header, payload] = [
      { alg: 'none', typ: 'JWT' },
      { ...good, exp: Math.floor(Date.now() / 1000) + 300 },
    ]
    const encode = (part: unknown) => Buffer.from(JSON.stringify(part)).toString('base64url')
    for (const token of [
      await sign(good, { expires: '-5m' }),
      await sign(good, { secret: 'x'.repeat(43) }),
      `${encode(header)}.${encode(payload)}.`,
      'no token at all',
    ]) {
      expect((await call('list_events', token)).status).toBe(401)
    }
  })
})

// callers.json records which role may execute which function; this tests that PostgREST takes the role of the token.
test.each([
  // authenticator is nobody's role, and `none` is how SQL says "whoever signed in".
  ...['postgres', 'supabase_admin', 'supabase_auth_admin', 'pg_read_all_data', 'authenticator', 'none'],
  ...['service_role', 'authenticated', 'courier', 'gateway'],
])('the role %s reaches no operation by a token', async (role) => {
  const { claims } = await keyOf(await createOrganisation())
  const token = await sign({ ...claims, role, sub: randomUUID() })
  expect(await call('list_events', token)).toMatchObject({ status: 403, sqlstate: '42501' })
})

test('without a token, or as anon, nothing is to be had', async () => {
  expect(await call('list_events')).toMatchObject({ status: 401, sqlstate: '42501' })
  for (const claims of [{ role: 'anon' }, { sub: randomUUID() }] as Claims[]) {
    expect((await call('list_events', await sign(claims))).sqlstate).toBe('42501')
  }
})

test('the gateway resolves the hash of a key, and not of any other', async () => {
  const organisation = await createOrganisation()
  const key = await organisation.key('events:read')
  const token = await sign({ role: 'gateway' })
  expect(await call('resolve_api_key', token, { key_hash: hashOf(key) })).toMatchObject({
    status: 200,
    body: { organisation_id: organisation.id, scopes: ['events:read'] },
  })
  expect(await call('resolve_api_key', token, { key_hash: hashOf(`${key}x`) })).toMatchObject({
    status: 401,
    code: 'invalid_api_key',
  })
})

test('a key with every scope calls an operation only as the role of its scope', async () => {
  const { claims } = await keyOf(await createOrganisation())
  for (const role of ['api_key', ...scopes.filter((scope) => scope !== 'events:read').map(roleOfScope)]) {
    const answer = await call('list_events', await sign({ ...claims, role }))
    expect([role, answer.status, answer.sqlstate]).toEqual([role, 403, '42501'])
  }
})

test('a write cannot be made by a GET, which a link or a crawler would make', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const { claims } = await keyOf(organisation)
  const query = new URLSearchParams({ event_id: event.id, code: 'any code' })
  const token = await sign({ ...claims, role: 'scope_checkin_write' })
  expect(await send({ path: `/rpc/check_in?${query}` }, token)).toMatchObject({ status: 405, sqlstate: '25006' })
  expect((await studio.query('select from public.check_ins where event_id = $1', [event.id])).rowCount).toBe(0)
})

describe('tables', () => {
  test('are not there, for reading or for writing', async () => {
    const { claims } = await keyOf(await createOrganisation())
    const token = await sign({ ...claims, role: 'scope_events_read' })
    for (const [i, table] of (await tablesIn('public', 'private')).entries()) {
      const path = `/${table.split('.')[1]}`
      const requests = [
        { path },
        { path, method: 'POST', body: {} },
        { path, method: 'PATCH', body: {} },
        { path, method: 'DELETE' },
      ]
      for (const request of share(requests, 4, i % 4)) {
        expect([table, (await send(request, token)).status]).toEqual([table, 403])
      }
    }
  })

  test('of schema public are for people who sign in, not for keys', async () => {
    const { claims } = await keyOf(await createOrganisation())
    for (const role of ['api_key', ...scopes.map(roleOfScope)]) {
      const token = await sign({ ...claims, role })
      const read = await send({ path: '/events', headers: { 'Accept-Profile': 'public' } }, token)
      const headers = { 'Content-Profile': 'public' }
      const added = await send({ path: '/events', method: 'POST', body: {}, headers }, token)
      const called = await send({ path: '/rpc/ticket_codes', method: 'POST', body: {}, headers }, token)
      expect([role, read.status, added.status, called.status]).toEqual([role, 403, 403, 404])
    }
  })

  test.each(['private', 'auth', 'extensions', 'supabase_migrations', 'pg_catalog'])(
    'of schema %s are not to be had by asking for the schema',
    async (schema) => {
      const { claims } = await keyOf(await createOrganisation())
      const token = await sign({ ...claims, role: 'scope_events_read' })
      const read = await send({ path: '/events', headers: { 'Accept-Profile': schema } }, token)
      expect(read).toMatchObject({ status: 406, sqlstate: 'PGRST106' })
      const headers = { 'Content-Profile': schema }
      const write = await send({ path: '/events', method: 'POST', body: {}, headers }, token)
      expect(write).toMatchObject({ status: 406, sqlstate: 'PGRST106' })
      const rpc = await send({ path: '/rpc/check_request', method: 'POST', body: {}, headers }, token)
      expect(rpc).toMatchObject({ status: 406, sqlstate: 'PGRST106' })
    },
  )

  test('are not described either', async () => {
    const answer = await send({ path: '/' }, await sign({ role: 'gateway' }))
    expect([answer.status, answer.body]).toEqual([404, {}])
  })
})
