// The outbox as its people and its keys see it in the database: their own organisation's, read and never written; and
// endpoints as a member adds them in Studio.

import { beforeAll, describe, expect, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { actAs } from './actor.ts'
import { createTenant, type Tenant } from './tenant-fixture.ts'

let a: Tenant
let b: Tenant
beforeAll(async () => {
  ;[a, b] = await Promise.all([createTenant(), createTenant()])
})

/** As Studio counts them, so that it is known what there is to see. */
const countOf = async (table: string, tenant: Tenant) =>
  (await row<{ n: number }>(`select count(*)::int as n from ${table} where organisation_id = $1`, [tenant.id])).n

describe('a person of the organisation', () => {
  test('fills it by what they do, without a right to', async () => {
    await actAs('authenticated', a.member, async ({ rows, touched }) => {
      const told = "select count(*)::int as n from public.notifications where type = 'attendee.updated'"
      const [before] = await rows<{ n: number }>(told)
      expect(await touched("update public.attendees set company = 'NASA' where id = $1", [a.attendeeId])).toBe(1)
      expect(await rows(told)).toEqual([{ n: (before?.n ?? 0) + 1 }])
    })
  })
})

describe('a key', () => {
  test('makes a delivery of its own pending again, and touches no more of it', async () => {
    const owe = "update public.webhook_deliveries set status = 'pending', next_attempt_at = now()"
    await actAs('scope_events_write', a.claims, async ({ touched, attempt }) => {
      expect(await touched(owe)).toBe(await countOf('public.webhook_deliveries', a))
      expect(await touched(`${owe} where organisation_id = $1`, [b.id])).toBe(0)
      for (const assignment of ["type = 'event.updated'", "last_error = ''", 'webhook_endpoint_id = id']) {
        expect(await attempt(`update public.webhook_deliveries set ${assignment}`)).toBe('42501')
      }
      expect(await attempt('delete from public.webhook_deliveries')).toBe('42501')
    })
  })
})

describe('an endpoint added in Studio', () => {
  const add = (tenant: Tenant): [string, unknown[]] => [
    `insert into public.webhook_endpoints (organisation_id, url, types)
     values ($1, 'https://studio.example.com', '{order.created,event.updated,order.created}') returning id, types, status`,
    [tenant.id],
  ]
  const secretsOf = 'select count(*)::int as n from private.webhook_secrets where webhook_endpoint_id = $1'

  test('by postgres has a secret that signs, is subscribed to each type once, and is enabled', async () => {
    const endpoint = await row<{ id: string; types: string; status: string }>(...add(a))
    expect(endpoint).toMatchObject({ types: '{order.created,event.updated}', status: 'enabled' })
    expect(
      await row('select secret, expires_at from private.webhook_secrets where webhook_endpoint_id = $1', [endpoint.id]),
    ).toEqual({ secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/), expires_at: null })
    await studio.query('delete from public.webhook_endpoints where id = $1', [endpoint.id])
    expect(await row(secretsOf, [endpoint.id])).toEqual({ n: 0 })
  })

  test('by a member has a secret, which the member cannot read; elsewhere they add none', async () => {
    await actAs('authenticated', a.member, async ({ rows, attempt, touched }) => {
      const [endpoint] = await rows<{ id: string }>(...add(a))
      expect(await attempt(secretsOf, [endpoint?.id])).toBe('42501')
      expect(await attempt(...add(b))).toBe('42501')
      // Back to postgres, within the transaction.
      await touched('reset role')
      expect(await rows(secretsOf, [endpoint?.id])).toEqual([{ n: 1 }])
    })
  })

  test('is subscribed to none but the types that can be chosen, and to at least one', async () => {
    for (const types of [
      '{webhook_endpoint.test}',
      '{order.created,webhook_endpoint.test}',
      '{*,order.created}',
      '{}',
      '{null}',
    ]) {
      const [, values] = add(a)
      const insert = studio.query(
        "insert into public.webhook_endpoints (organisation_id, url, types) values ($1, 'https://a.example.com', $2)",
        [...values, types],
      )
      await expect(insert, types).rejects.toMatchObject({
        code: 'PT422',
        message: expect.stringContaining('needs * alone'),
      })
    }
  })
})

test('a key that may not read orders makes no delivery of theirs pending once more, not even without a condition', async () => {
  const { id, event, claims } = await createTenant()
  await event.guest()
  const edit = "update public.webhook_deliveries set next_attempt_at = now() + interval '1 hour'"
  const touched = () => actAs('scope_events_write', claims, (actor) => actor.touched(edit))
  expect(await touched()).toBeGreaterThan(0)
  await studio.query("update public.api_keys set scopes = '{events:write,events:read}' where organisation_id = $1", [
    id,
  ])
  expect(await touched()).toBe(0)
})
