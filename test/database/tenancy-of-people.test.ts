// Whose rows a person sees and writes who is signed in through Supabase Auth: those of the organisations they belong to,
// and keys, members, the audit trail and the organisation itself only where they are an owner. What each role may do is in
// test/database/10-organisations/members.test.ts. The same people for all tests, since nothing
// an actor does is kept.

import { beforeAll, describe, expect, test } from 'vitest'
import { whileHeld } from '../support/rows-of.ts'
import { actAs, type Claims } from './actor.ts'
import { roles, sharedTables, tables } from './expected-privileges.ts'
import { additions, editAll, editable, edits, extensible, held, readable, refusedAsNotFound, seen } from './tenancy.ts'
import { createTenant, join, signUp, type Tenant } from './tenant-fixture.ts'

let a: Tenant
let b: Tenant
let stranger: Claims
let memberOfBoth: Claims
beforeAll(async () => {
  ;[a, b, stranger, memberOfBoth] = await Promise.all([createTenant(), createTenant(), signUp(), signUp()])
  await Promise.all([join(a.id, memberOfBoth, 'manager'), join(b.id, memberOfBoth, 'owner')])
})

test.each(readable('authenticated'))(
  '%s has rows of both organisations, or what follows would prove nothing',
  async (table) => {
    expect(await held(table, a)).toBeGreaterThan(0)
    expect(await held(table, b)).toBeGreaterThan(0)
  },
)

test('every table that anybody may read, edit or add to is tried', () => {
  const everybody = (of: (role: string) => string[]) => [...new Set(Object.keys(roles).flatMap(of))].sort()
  const ofOrganisers = Object.keys(tables).filter(
    (table) => table.startsWith('public.') && !sharedTables.includes(table),
  )
  expect(readable('authenticated')).toEqual(ofOrganisers)
  expect(everybody(readable).filter((table) => !ofOrganisers.includes(table))).toEqual([])
  expect(everybody(editable)).toEqual(Object.keys(edits).sort())
  expect(everybody(extensible)).toEqual(Object.keys(additions).sort())
})

describe('a person who is signed in', () => {
  const tablesOfPeople = readable('authenticated')
  const editedByOwnersOnly = ['public.organisations', 'public.organisation_members', 'public.api_keys']

  test.each(tablesOfPeople)('sees of %s what is theirs: an owner all of it, a member all but keys', async (table) => {
    const ofA = { [a.id]: await held(table, a) }
    const ofB = { [b.id]: await held(table, b) }
    const sees = (claims: Claims) => actAs('authenticated', claims, (actor) => seen(actor, table))
    const keys = ['public.api_keys', 'public.audit_entries'].includes(table)
    expect(await sees(a.owner)).toEqual(ofA)
    expect(await sees(a.member)).toEqual(keys ? {} : ofA)
    expect(await sees(b.owner)).toEqual(ofB)
    expect(await sees(memberOfBoth)).toEqual(keys ? ofB : { ...ofA, ...ofB })
  })

  test.each(tablesOfPeople)('sees nothing of %s as a stranger, or when nobody says who they are', async (table) => {
    expect(await actAs('authenticated', stranger, (actor) => seen(actor, table))).toEqual({})
    expect(await actAs('authenticated', {}, (actor) => seen(actor, table))).toEqual({})
    // The claims of an API key are worth nothing to a person.
    expect(await actAs('authenticated', a.claims, (actor) => seen(actor, table))).toEqual({})
  })

  test.each(editable('authenticated'))('edits of %s what is theirs to edit, and no others', async (table) => {
    const [ofA, ofB] = await Promise.all([held(table, a), held(table, b)])
    const edited = (claims: Claims) => actAs('authenticated', claims, ({ touched }) => touched(editAll(table)))
    const owners = editedByOwnersOnly.includes(table)
    expect(await edited(a.owner)).toBe(ofA)
    expect(await edited(b.owner)).toBe(ofB)
    expect(await edited(a.member)).toBe(owners ? 0 : ofA)
    expect(await edited(memberOfBoth)).toBe(owners ? ofB : ofA + ofB)
    expect(await edited(stranger)).toBe(0)
    expect(await edited({})).toBe(0)
  })

  test('deletes members as an owner, of their organisation only', async () => {
    const deleted = (claims: Claims) =>
      actAs('authenticated', claims, ({ touched }) =>
        touched('delete from public.organisation_members where user_id <> $1', [claims.sub]),
      )
    expect(await deleted(a.owner)).toBe((await held('public.organisation_members', a)) - 1)
    expect(await deleted(memberOfBoth)).toBe((await held('public.organisation_members', b)) - 1)
    expect(await deleted(a.member)).toBe(0)
    expect(await deleted(stranger)).toBe(0)
  })

  const everybody = [
    ['an owner', () => a.owner],
    ['a member', () => a.member],
  ] as const

  test.each(everybody)('edits the events of their organisation as %s, and no others', async (_who, claims) => {
    await actAs('authenticated', claims(), async ({ touched, refusal }) => {
      const insert = `insert into public.events (organisation_id, name, slug) values ($1, 'New', 'new')`
      expect(await touched(insert, [a.id])).toBe(1)
      expect(await refusal(insert, [b.id])).toEqual({ sqlstate: '42501' })
      expect(await touched("update public.events set name = 'Renamed'")).toBe(2)
      expect(await touched("update public.events set name = 'Renamed' where id = $1", [b.event.id])).toBe(0)
    })
  })

  test.each(everybody)('edits the ticket types of their organisation as %s, and no others', async (_who, claims) => {
    await actAs('authenticated', claims(), async ({ touched, refusal }) => {
      const insert = 'insert into public.ticket_types (organisation_id, event_id, name) values ($1, $2, $3)'
      expect(await touched(insert, [a.id, a.event.id, 'New'])).toBe(1)
      expect(await touched(insert, [null, a.event.id, 'New'])).toBe(1)
      expect(await refusal(insert, [b.id, b.event.id, 'New'])).toEqual({ sqlstate: '42501' })
      expect(await refusal(insert, [a.id, b.event.id, 'New'])).toMatchObject({ code: 'not_found', param: 'event_id' })
      expect(await touched('update public.ticket_types set price = 100')).toBe(6)
      expect(await touched('update public.ticket_types set price = 1 where event_id = $1', [b.event.id])).toBe(0)
    })
  })

  test.each(everybody)(
    'edits and cancels the orders and attendees of their organisation as %s',
    async (_who, claims) => {
      await actAs('authenticated', claims(), async ({ rows, touched }) => {
        expect(await touched("update public.attendees set company = 'NASA'")).toBe(3)
        expect(await touched("update public.orders set status = 'cancelled'")).toBe(3)
        expect(
          await rows(
            `select distinct a.status, t.quantity_sold
             from public.attendees a join public.ticket_types t on t.id = a.ticket_type_id`,
          ),
        ).toEqual([{ status: 'cancelled', quantity_sold: 0 }])
      })
      await actAs('authenticated', claims(), async ({ touched }) => {
        expect(await touched("update public.orders set status = 'cancelled' where id = $1", [b.orderId])).toBe(0)
        expect(await touched("update public.attendees set status = 'cancelled' where id = $1", [b.attendeeId])).toBe(0)
      })
    },
  )

  test.each(everybody)(
    'scans and undoes at the events of their organisation as %s, and at no others',
    async (_who, claims) => {
      await actAs('authenticated', claims(), async ({ rows, refusal, touched }) => {
        const undo = 'update public.check_ins set undone_at = now() where id = $1'
        expect(await touched(undo, [b.checkInId])).toBe(0)
        expect(await touched(undo, [a.checkInId])).toBe(1)

        const scan = `insert into public.check_ins (event_id, code)
      select $1, ticket_code from public.ticket_codes($1) where attendee_id = $2 returning result, source`
        expect(await rows(scan, [a.event.id, a.attendeeId])).toEqual([{ result: 'accepted', source: 'studio' }])
        const elsewhere = "insert into public.check_ins (event_id, code) values ($1, 'any')"
        expect(await refusal(elsewhere, [b.event.id])).toMatchObject({ sqlstate: 'PT404', code: 'not_found' })
      })
    },
  )

  test.each(extensible('authenticated'))(
    'adds to %s what is theirs to add, and to no other organisation',
    async (table) => {
      const add = additions[table] as (typeof additions)[string]
      for (const [claims, may] of [
        [a.owner, true],
        [a.member, !editedByOwnersOnly.includes(table)],
        [b.owner, false],
        [stranger, false],
        [{}, false],
      ] as const) {
        await actAs('authenticated', claims, async ({ attempt }) => {
          const refused = table in refusedAsNotFound ? 'PT404' : '42501'
          expect(await attempt(...add(a, stranger))).toBe(may ? 'allowed' : refused)
        })
      }
    },
  )

  test.each(extensible('authenticated'))(
    "adds nothing to another organisation's %s, and waits for nothing of it",
    async (table) => {
      const add = additions[table] as (typeof additions)[string]
      const refused = table in refusedAsNotFound ? 'PT404' : '42501'
      await whileHeld(a.id, () =>
        actAs('authenticated', b.owner, async ({ rows, attempt }) => {
          await rows("set local lock_timeout = '2s'")
          expect(await attempt(...add(a, stranger))).toBe(refused)
        }),
      )
    },
  )

  test('adds nothing to the event of another organisation beside orders of their own event, in whatever order', async () => {
    const add = "insert into public.orders (event_id, name, email) select unnest($1::uuid[]), 'Ada', 'ada@example.com'"
    await actAs('authenticated', a.owner, async ({ touched, attempt }) => {
      for (const events of [
        [a.event.id, b.event.id],
        [b.event.id, a.event.id],
        [a.event.id, a.event.id, b.event.id],
      ]) {
        expect(await attempt(add, [events])).toBe('PT404')
      }
      expect(await touched(add, [[a.event.id, a.event.id]])).toBe(2)
      expect(await attempt(add, [[b.event.id]])).toBe('PT404')
    })
  })

  test('manages keys, members and the organisation as its owner', async () => {
    const newcomer = await signUp()
    await actAs('authenticated', a.owner, async ({ touched }) => {
      expect(await touched('update public.api_keys set revoked_at = now() where id = $1', [a.keyId])).toBe(1)
      expect(await touched("update public.organisations set name = 'Renamed'")).toBe(1)
      const join = 'insert into public.organisation_members (organisation_id, user_id) values ($1, $2)'
      expect(await touched(join, [a.id, newcomer.sub])).toBe(1)
      const promote = "update public.organisation_members set role = 'owner' where user_id = $1"
      expect(await touched(promote, [newcomer.sub])).toBe(1)
      expect(await touched('delete from public.organisation_members where user_id = $1', [newcomer.sub])).toBe(1)
    })
  })

  const outsiders = [
    ['a member', () => a.member],
    ["another organisation's owner", () => b.owner],
    ['a stranger', () => stranger],
  ] as const

  test.each(outsiders)('manages none of that as %s', async (_who, claims) => {
    const { id, keyId, owner: boss } = a
    const newcomer = await signUp()
    await actAs('authenticated', claims(), async ({ touched, refusal }) => {
      expect(await touched('update public.api_keys set revoked_at = now() where id = $1', [keyId])).toBe(0)
      expect(await touched("update public.organisations set name = 'Renamed' where id = $1", [id])).toBe(0)
      const add = 'insert into public.organisation_members (organisation_id, user_id, role) values ($1, $2, $3)'
      expect(await refusal(add, [id, newcomer.sub, 'manager'])).toEqual({ sqlstate: '42501' })
      const self = claims().sub
      const promote =
        "update public.organisation_members set role = 'owner' where organisation_id = $1 and user_id = $2"
      expect(await touched(promote, [id, self])).toBe(0)
      const remove = 'delete from public.organisation_members where organisation_id = $1 and user_id = $2'
      expect(await touched(remove, [id, boss.sub])).toBe(0)
      expect(await touched(remove, [id, self])).toBe(0)
    })
  })

  test('is told why when a rule refuses, and not only that it may not', async () => {
    await actAs('authenticated', a.owner, async ({ touched, refusal }) => {
      await touched('update public.api_keys set revoked_at = now() where id = $1', [a.keyId])
      const revive = 'update public.api_keys set revoked_at = null where id = $1'
      expect(await refusal(revive, [a.keyId])).toMatchObject({ sqlstate: 'PT409', code: 'api_key_revoked' })

      const undo = 'update public.check_ins set undone_at = now() where id = $1'
      await touched(undo, [a.checkInId])
      const redo = 'update public.check_ins set undone_at = null where id = $1'
      expect(await refusal(redo, [a.checkInId])).toMatchObject({ sqlstate: 'PT409', code: 'check_in_already_undone' })

      const reopen = "update public.events set status = 'draft' where id = $1"
      expect(await refusal(reopen, [a.event.id])).toMatchObject({ sqlstate: 'PT409', code: 'event_has_orders' })

      const revert = "update public.orders set status = 'pending' where id = $1"
      expect(await refusal(revert, [a.orderId])).toMatchObject({ sqlstate: 'PT409', code: 'invalid_transition' })
      const wait = "update public.attendees set status = 'awaiting_payment' where id = $1"
      expect(await refusal(wait, [a.attendeeId])).toMatchObject({ sqlstate: 'PT409', code: 'invalid_transition' })
    })
  })

  test('moves nothing to another organisation, though they belong to both', async () => {
    await actAs('authenticated', memberOfBoth, async ({ refusal }) => {
      for (const table of ['events', 'ticket_types', 'orders', 'attendees', 'check_ins', 'api_keys']) {
        const move = `update public.${table} set organisation_id = $1`
        expect(await refusal(move, [b.id])).toEqual({ sqlstate: '42501' })
      }
    })
  })
})
