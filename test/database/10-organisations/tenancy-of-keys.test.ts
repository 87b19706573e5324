// Whose rows an API key reads and writes: those of the organisation in its claims. Two organisations, the same for all
// tests, since nothing an actor does is kept.

import { beforeAll, expect, test } from 'vitest'
import { whileHeld } from '../../support/rows-of.ts'
import { actAs, type Claims } from '../actor.ts'
import { roles } from '../expected-privileges.ts'
import {
  additions,
  editAll,
  editable,
  extensible,
  held,
  readable,
  refusedAsNotFound,
  seen,
  seesOnlyNew,
} from '../tenancy.ts'
import { createTenant, signUp, type Tenant } from '../tenant-fixture.ts'

let a: Tenant
let b: Tenant
let stranger: Claims
beforeAll(async () => {
  ;[a, b, stranger] = await Promise.all([createTenant(), createTenant(), signUp()])
})

const roleOfKeys = Object.keys(roles).filter((role) => role === 'api_key' || role.startsWith('scope_'))
const pairs = (of: (role: string) => string[]) => roleOfKeys.flatMap((role) => of(role).map((table) => [role, table]))

const readsAll = (role: string) => readable(role).filter((table) => !seesOnlyNew[role]?.includes(table))
const readsNew = (role: string) => seesOnlyNew[role] ?? []

test.each(pairs(readsAll))('%s reads of %s all rows of its organisation, and no others', async (role, table) => {
  for (const tenant of [a, b]) {
    const all = table === 'public.api_keys' ? 1 : await held(table, tenant)
    // Entries about keys and members are for owners: test/database/90-outbox/audit.test.ts.
    const expected = table === 'public.audit_entries' ? expect.toSatisfy((n) => 0 < n && n < all) : all
    expect(await actAs(role, tenant.claims, (actor) => seen(actor, table))).toEqual({ [tenant.id]: expected })
  }
})

test.each(pairs(readsNew))(
  '%s reads of %s what it is adding, and nothing that was there before',
  async (role, table) => {
    const add = additions[table] as (typeof additions)[string]
    await actAs(role, a.claims, async (actor) => {
      expect(await seen(actor, table)).toEqual({})
      // As register_attendee does: an attendee comes with an order of the same transaction.
      await actor.touched(...add(a, stranger))
      expect(await seen(actor, table)).toEqual({ [a.id]: 1 })
    })
  },
)

test.each(pairs(readable))('%s reads nothing of %s without an organisation', async (role, table) => {
  expect(await actAs(role, {}, (actor) => seen(actor, table))).toEqual({})
})

test.each(roleOfKeys)('%s reads of the keys only itself', async (role) => {
  const keys = await actAs(role, a.claims, ({ rows }) => rows('select id from public.api_keys'))
  expect(keys).toEqual([{ id: a.keyId }])
})

test.each(pairs(editable))('%s edits of %s the rows of its organisation, and no others', async (role, table) => {
  for (const tenant of [a, b]) {
    const edited = await actAs(role, tenant.claims, ({ touched }) => touched(editAll(table)))
    expect(edited).toBe(await held(table, tenant))
  }
  expect(await actAs(role, {}, ({ touched }) => touched(editAll(table)))).toBe(0)
})

const notFound = (param: string | undefined) => ({ sqlstate: 'PT404', code: 'not_found', param })

test.each(pairs(extensible))('%s adds to %s rows of its organisation, and of no other', async (role, table) => {
  const add = additions[table] as (typeof additions)[string]
  await actAs(role, a.claims, async ({ touched, refusal }) => {
    expect(await refusal(...add(b, stranger))).toEqual(
      table in refusedAsNotFound ? notFound(refusedAsNotFound[table]) : { sqlstate: '42501' },
    )
    expect(await touched(...add(a, stranger))).toBe(1)
  })
  await actAs(role, {}, async ({ refusal }) => {
    // Its guard looks with the rights of the caller, who sees no event.
    const invisible = ['public.promo_codes', 'public.check_in_points', 'public.questions'].includes(table)
      ? notFound('event_id')
      : { sqlstate: '42501' }
    expect(await refusal(...add(a, stranger))).toEqual(invisible)
  })
})

test.each(pairs(extensible))('%s waits for nothing of another organisation that it adds to %s', async (role, table) => {
  const add = additions[table] as (typeof additions)[string]
  await whileHeld(b.id, () =>
    actAs(role, a.claims, async ({ rows, refusal }) => {
      await rows("set local lock_timeout = '2s'")
      expect((await refusal(...add(b, stranger))).sqlstate).toBe(table in refusedAsNotFound ? 'PT404' : '42501')
    }),
  )
})

test('scope_attendees_write adds nothing to another organisation by leaving out or mixing up whose it is', async () => {
  await actAs('scope_attendees_write', a.claims, async ({ refusal }) => {
    const order = `insert into public.orders (organisation_id, event_id, name, email)
      values ($1, $2, 'Guest', 'guest@example.com')`
    expect(await refusal(order, [null, b.event.id])).toEqual(notFound('event_id'))
    expect(await refusal(order, [a.id, b.event.id])).toEqual(notFound('event_id'))
    // Its own event, given away.
    expect(await refusal(order, [b.id, a.event.id])).toEqual({ sqlstate: '42501' })

    const attendee = `insert into public.attendees (organisation_id, event_id, order_id, ticket_type_id, name, email)
      values ($1, $2, $3, $4, 'Guest', 'guest@example.com')`
    const { event, orderId } = b
    expect(await refusal(attendee, [null, null, orderId, event.ticketTypeId])).toEqual(notFound('order_id'))
    expect(await refusal(attendee, [a.id, a.event.id, orderId, a.event.ticketTypeId])).toEqual(notFound('order_id'))
    expect(await refusal(attendee, [b.id, a.event.id, a.orderId, a.event.ticketTypeId])).toMatchObject({
      code: 'read_only_field',
      param: 'organisation_id',
    })
    // Its own order, with a ticket type of another's event.
    expect(await refusal(attendee, [a.id, a.event.id, a.orderId, event.ticketTypeId])).toEqual({ sqlstate: '23503' })
  })
  expect(await b.event.sold()).toBe(1)
})
