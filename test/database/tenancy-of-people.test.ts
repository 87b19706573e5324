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

  test('moves nothing to another organisation, though they belong to both', async () => {
    await actAs('authenticated', memberOfBoth, async ({ refusal }) => {
      for (const table of ['events', 'ticket_types', 'orders', 'attendees', 'check_ins', 'api_keys']) {
        const move = `update public.${table} set organisation_id = $1`
        expect(await refusal(move, [b.id])).toEqual({ sqlstate: '42501' })
      }
    })
  })
})
