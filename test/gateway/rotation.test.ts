// Rotation: a new key takes over from an old one, which works a while longer. Together they are one caller.

import { randomUUID } from 'node:crypto'
import { expect, inject, test } from 'vitest'
import { prefixOf } from '../../src/gateway/api-key.ts'
import { AdminError, rotateKey, withDatabase } from '../../src/local/admin.ts'
import { studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { organisationAllowed } from '../support/plan.ts'
import { rest } from '../support/rest.ts'

const hour = 3600

const rotate = (key: string, overlapSeconds: number) =>
  withDatabase(inject('databaseUrl'), (client) => rotateKey(client, prefixOf(key), overlapSeconds))

const me = async (key: string) => rest(key)('GET', '/me')

test('the new key has the scopes and the name of the old one, and both work until the overlap ends', async () => {
  const organisation = await createOrganisation()
  const old = await organisation.key('events:read', 'checkin:write')
  const replacement = await rotate(old, hour)

  expect(prefixOf(replacement)).not.toBe(prefixOf(old))
  const [before, after] = [await me(old), await me(replacement)]
  expect([before.status, after.status]).toEqual([200, 200])
  expect(after.body.data).toMatchObject({
    name: before.body.data.name,
    scopes: ['events:read', 'checkin:write'],
    organisation: { slug: organisation.slug },
    expires_at: null,
  })
  const left = (Date.parse(before.body.data.expires_at) - Date.now()) / 1000
  expect(left).toBeGreaterThan(hour - 60)
  expect(left).toBeLessThanOrEqual(hour)

  await studio.query('update public.api_keys set expires_at = now() where prefix = $1', [prefixOf(old)])
  expect((await me(old)).body.error.code).toBe('api_key_expired')
  expect((await me(replacement)).status).toBe(200)
})

test('a retry that goes out with the new key is recognised: the idempotency keys are shared', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const old = await organisation.key()
  const headers = { 'Idempotency-Key': randomUUID() }
  const register = (key: string) =>
    rest(key)(
      'POST',
      `/events/${event.id}/registrations`,
      { ticket_type_id: event.ticketTypeId, name: 'Mary Jackson', email: 'mary@example.com' },
      headers,
    )

  const first = await register(old)
  const retried = await register(await rotate(old, hour))
  expect([first.status, retried.status]).toEqual([201, 201])
  expect(retried.body).toEqual(first.body)
  expect(retried.headers.get('idempotent-replayed')).toBe('true')
  expect(await event.sold()).toBe(1)

  const stranger = await register(await organisation.key())
  expect(stranger.headers.get('idempotent-replayed')).toBeNull()
  expect(await event.sold()).toBe(2)
})

test('rotating does not double the allowance: the rate limit is shared', async () => {
  const old = await (await organisationAllowed(4)).key()
  const replacement = await rotate(old, hour)
  const answers = [await me(old), await me(replacement), await me(old), await me(replacement)]
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  expect((await me(old)).body.error.code).toBe('rate_limited')
  expect((await me(replacement)).body.error.code).toBe('rate_limited')
})

test('an expiry set before is not put off by rotating', async () => {
  const old = await (await createOrganisation()).key()
  await studio.query("update public.api_keys set expires_at = now() + interval '10 minutes' where prefix = $1", [
    prefixOf(old),
  ])
  const replacement = await rotate(old, hour)
  const expiries = [(await me(old)).body.data.expires_at, (await me(replacement)).body.data.expires_at]
  expect(expiries[0]).toBe(expiries[1])
  expect(Date.parse(expiries[1]) - Date.now()).toBeLessThanOrEqual(600_000)
})

test.each([
  ['revoked', 'revoked_at = now()', 'The API key was revoked.'],
  ['expired', 'expires_at = now()', 'The API key has expired.'],
])('a %s key cannot be rotated back to life', async (_how, set, sentence) => {
  const key = await (await createOrganisation()).key()
  await studio.query(`update public.api_keys set ${set} where prefix = $1`, [prefixOf(key)])
  const refused = await rotate(key, hour).catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(AdminError)
  expect((refused as AdminError).message).toContain(sentence)
})
