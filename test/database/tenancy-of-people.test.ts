// Rights of people who sign in through Supabase Auth, by their role in each organisation. All tests share the same people, since nothing an
// actor does is kept.

import { beforeAll, describe, expect, test } from 'vitest'
import { studio } from '../support/database.ts'
import { whileHeld } from '../support/rows-of.ts'
import { actAs, type Claims } from './actor.ts'
import { roles, sharedTables, tables } from './expected-privileges.ts'
import {
  additions,
  deletable,
  editAll,
  editable,
  edits,
  extensible,
  held,
  readable,
  refusedAsNotFound,
  seen,
} from './tenancy.ts'
import { createTenant, join, signUp, type Tenant } from './tenant-fixture.ts'

let a: Tenant
let b: Tenant
let stranger: Claims
let newcomer: Claims
let memberOfBoth: Claims
let door: Claims
let viewer: Claims
beforeAll(async () => {
  ;[a, b] = await Promise.all([createTenant(), createTenant()])
  ;[stranger, newcomer, memberOfBoth] = await Promise.all([signUp(), signUp(), signUp()])
  ;[door, viewer] = await Promise.all([signUp(), signUp()])
  await Promise.all([join(a.id, door, 'door'), join(a.id, viewer, 'viewer')])
  // So that a move of the event moves these as well.
  await studio.query("update public.check_in_points set opens_at = '2089-01-01Z' where event_id = $1", [a.event.id])
  await studio.query("update public.ticket_types set sales_end_at = '2089-01-01Z' where id = $1", [
    a.event.ticketTypeId,
  ])
  await Promise.all([join(a.id, memberOfBoth, 'manager'), join(b.id, memberOfBoth, 'owner')])
})

/** Rights of owner, manager, door and viewer: r reads, i adds, u changes, d deletes, – nothing. */
const matrix: Record<string, string> = {
  'public.organisations': 'ru r r r',
  'public.organisation_members': 'riud r r r',
  'public.api_keys': 'ru – – –',
  'public.events': 'riu riu r r',
  'public.ticket_types': 'riu riu r r',
  'public.promo_codes': 'riu riu – r',
  'public.orders': 'riu riu – r',
  'public.attendees': 'riu riu – r',
  'public.waiting_list_entries': 'riu riu – r',
  'public.payments': 'ri ri – r',
  'public.payment_voids': 'ri ri – r',
  'public.refunds': 'ri ri – r',
  'public.check_in_points': 'riu riu r r',
  'public.questions': 'riu riu r r',
  'public.check_ins': 'riu riu riu r',
  'public.webhook_endpoints': 'riud riud – –',
  'public.webhook_deliveries': 'r r – –',
  'public.notifications': 'r r – –',
  'public.emails': 'r r – –',
  'public.email_opt_outs': 'r r – –',
  'public.messages': 'r r – –',
  'public.audit_entries': 'r – – –',
}

/** Rights of somebody on the rows of an organisation, in letters. It fails when they reach rows of another. */
async function mayDo(claims: Claims, table: string, { of }: { of: Tenant }): Promise<string> {
  const all = await held(table, of)
  expect(all, 'or this would prove nothing').toBeGreaterThan(0)
  return actAs('authenticated', claims, async (actor) => {
    const add = additions[table]
    const sees = await seen(actor, table)
    expect([{}, { [of.id]: all }]).toContainEqual(sees)
    const may = [of.id in sees ? 'r' : '']
    if (add && (await actor.attempt(...add(of, newcomer))) === 'allowed') may.push('i')
    if (editable('authenticated').includes(table)) {
      const edited = await actor.touched(editAll(table))
      expect([0, all]).toContain(edited)
      if (edited > 0) may.push('u')
    }
    if (deletable('authenticated').includes(table)) {
      // The last owner stays.
      const others = table.endsWith('_members') ? ` where user_id <> '${claims.sub}'` : ''
      const deleted = await actor.touched(`delete from ${table}${others}`)
      expect(deleted).toBeLessThanOrEqual(all)
      if (deleted > 0) may.push('d')
    }
    return may.join('') || '–'
  })
}

test('every table that anybody may read, edit or add to is tried', () => {
  const everybody = (of: (role: string) => string[]) => [...new Set(Object.keys(roles).flatMap(of))].sort()
  const ofOrganisers = Object.keys(tables).filter(
    (table) => table.startsWith('public.') && !sharedTables.includes(table),
  )
  expect(readable('authenticated')).toEqual(ofOrganisers)
  expect(Object.keys(matrix).sort()).toEqual(ofOrganisers)
  expect(everybody(readable).filter((table) => !ofOrganisers.includes(table))).toEqual(['private.requests'])
  expect(everybody(editable)).toEqual(Object.keys(edits).sort())
  expect(everybody(extensible)).toEqual(Object.keys(additions).sort())
})

describe('a person who is signed in', () => {
  const tablesOfPeople = readable('authenticated')

  test.each(tablesOfPeople)('may do with %s what their role allows, in that organisation only', async (table) => {
    const cells = matrix[table]?.split(' ') ?? []
    for (const [i, claims] of [a.owner, a.member, door, viewer, stranger].entries()) {
      expect([i, await mayDo(claims, table, { of: a })]).toEqual([i, cells[i] ?? '–'])
    }
    const [owner = '', manager = ''] = cells
    expect(await mayDo(b.owner, table, { of: b })).toBe(owner)
    const [ofA, ofB] = [await held(table, a), await held(table, b)]
    await actAs('authenticated', memberOfBoth, async (actor) => {
      const sees = { ...(manager !== '–' && { [a.id]: ofA }), ...(owner !== '–' && { [b.id]: ofB }) }
      expect(await seen(actor, table)).toEqual(sees)
      if (!editable('authenticated').includes(table)) return
      const edited = (manager.includes('u') ? ofA : 0) + (owner.includes('u') ? ofB : 0)
      expect(await actor.touched(editAll(table))).toBe(edited)
    })
  })

  test.each(tablesOfPeople)('sees nothing of %s as a stranger, or when nobody says who they are', async (table) => {
    expect(await actAs('authenticated', stranger, (actor) => seen(actor, table))).toEqual({})
    expect(await actAs('authenticated', {}, (actor) => seen(actor, table))).toEqual({})
    // The claims of an API key are worth nothing to a person.
    expect(await actAs('authenticated', a.claims, (actor) => seen(actor, table))).toEqual({})
  })

  test.each<[call: string, of: (tenant: Tenant) => string]>([
    ["public.copy_event($1, '2030-01-01Z')", ({ event }) => event.id],
    ["public.move_event($1, '2090-01-01 10:00 UTC')", ({ event }) => event.id],
    ['public.notify_attendees($1)', ({ event }) => event.id],
    ['public.notify_cancelled($1)', ({ orderId }) => orderId],
    ['public.send_payment_reminder($1)', ({ pricedOrderId }) => pricedOrderId],
    ['public.send_payment_reminders($1)', ({ event }) => event.id],
    ["public.find_person('guest@example.com', $1)", ({ id }) => id],
    ["public.erase_person('GUEST@example.com', organisation_id => $1)", ({ id }) => id],
  ])('calls %s only as an owner or a manager', async (call, of) => {
    const everybody = [a.owner, a.member, door, viewer, stranger, b.owner].map((claims) =>
      actAs('authenticated', claims, ({ attempt }) => attempt(`select ${call}`, [of(a)])),
    )
    expect(await Promise.all(everybody)).toEqual(['allowed', 'allowed', 'PT404', 'PT404', 'PT404', 'PT404'])
  })

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
