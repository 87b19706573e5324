// What a page of a list costs does not grow with the rows there are, whatever is filtered: counted in pages of 8 kB that Postgres reads,
// on tables that were never analysed, by sessions whose plans were made while they were empty.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { withClient } from '../../src/local/client.ts'
import { asPurge } from '../support/database.ts'
import { type OwnDatabase, startOwnDatabase } from '../support/own-database.ts'

const organisationId = '01900000-0000-7000-8000-000000000001'
let database: OwnDatabase
let client: pg.Client

const lists = {
  list_attendees: 'scope_attendees_read',
  list_orders: 'scope_orders_read',
  find_attendees: 'scope_checkin_write',
  list_check_ins: 'scope_attendees_read',
  list_events: 'scope_events_read',
  list_notifications: 'scope_events_write',
  list_audit_entries: 'scope_events_write',
  list_webhook_deliveries: 'scope_events_write',
  list_emails: 'scope_attendees_read',
  list_payments: 'scope_orders_read',
} as const

type List = keyof typeof lists
type Filters = Record<string, unknown>

/** Pages of 8 kB that a call reads as this role, and what it answers; what it did is undone. */
async function costAs<T>(role: string, call: string, prepare: string[] = []): Promise<{ pages: number; answer: T }> {
  await client.query('begin')
  try {
    for (const sql of prepare) await client.query(sql)
    await client.query("select set_config('role', $1, true), set_config('request.jwt.claims', $2, true)", [
      role,
      JSON.stringify({ organisation_id: organisationId, api_key_id: organisationId, role }),
    ])
    await client.query('savepoint before')
    const { rows: answers } = await client.query(`select ${call} as answer`)
    await client.query('rollback to before')
    const { rows } = await client.query(`explain (analyze, buffers, format json) select ${call}`)
    const { Plan: plan } = rows[0]['QUERY PLAN'][0]
    return { pages: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'], answer: answers[0].answer }
  } finally {
    await client.query('rollback')
  }
}

async function costOf(list: List, filters: Filters, prepare: string[] = []): Promise<{ pages: number; items: number }> {
  const named = Object.entries(filters).map(([name, value]) => `"${name}" => ${pg.escapeLiteral(String(value))}`)
  const call = `api.${list}(${named})`
  const { pages, answer } = await costAs<{ data: unknown[] }>(lists[list], call, prepare)
  return { pages, items: answer.data.length }
}

beforeAll(async () => {
  database = await startOwnDatabase()
  client = new pg.Client({ connectionString: database.databaseUrl })
  await client.connect()
  // Plans of every list are kept, as those of sessions that were open when the first rows came.
  // What asks for an object that is not there yet is refused.
  for (const [list, filters] of cases) {
    if (!('after' in filters) && list !== 'find_attendees') await costOf(list, filters)
  }
  const manyRows = readFileSync(join(import.meta.dirname, 'many-rows.sql'), 'utf8')
  await withClient(database.superuserUrl, (superuser) => superuser.query(manyRows))
})

afterAll(async () => {
  await client?.end()
  await database?.remove()
})

const id = (kind: number) => `0190000${kind}-0000-7000-8000-000000000001`
const cursor = (kind: number, i: number) =>
  Buffer.from(`0190000${kind}00007000800${i.toString(16).padStart(13, '0')}`, 'hex').toString('base64url')
const future = '2099-01-01'
const startCursor = (day: string, i: number) =>
  `${day.replaceAll('-', '')}T000000_000000Z${Buffer.from(cursor(1, i), 'base64url').toString('hex')}`
const cases: [List, Filters, number][] = [
  ['list_attendees', {}, 50],
  ['list_attendees', { cursor: cursor(4, 10_000) }, 50],
  ['list_attendees', { event_id: id(1) }, 50],
  ['list_attendees', { ticket_type_id: id(2) }, 50],
  ['list_attendees', { order_id: id(3) }, 1],
  ['list_attendees', { reference: '00000001' }, 1],
  ['list_attendees', { external_id: 'crm-1' }, 1],
  ['list_attendees', { email: 'guest1@example.com' }, 1],
  ['list_attendees', { status: 'cancelled' }, 0],
  ['list_attendees', { checked_in: true }, 0],
  ['list_attendees', { inside: true }, 0],
  ['list_attendees', { search: 'example.com', inside: true }, 0],
  ['list_attendees', { ticket_email_status: 'failed' }, 0],
  ['list_attendees', { event_id: id(1), ticket_type_id: id(2), checked_in: true, status: 'active' }, 0],
  ['list_attendees', { event_id: id(1), ticket_email_status: 'bounced' }, 0],
  ['list_attendees', { updated_after: '2000-01-01' }, 50],
  ['list_attendees', { event_id: id(1), updated_after: future }, 0],
  ['list_attendees', { search: 'nobody' }, 0],
  ['list_attendees', { search: 'MÜLLER guest' }, 3],
  ['list_attendees', { search: 'ae'.repeat(50) }, 0],
  ['list_attendees', { search: 'example.com' }, 50],
  ['list_attendees', { search: 'muller', event_id: id(1), ticket_email_status: 'sent' }, 3],
  ['list_orders', { search: 'muller' }, 3],
  ['list_orders', { search: 'example.com' }, 50],
  ['find_attendees', { search: 'MÜLLER guest', event_id: id(1) }, 3],
  ['find_attendees', { search: 'example.com', event_id: id(1) }, 0],
  ['list_orders', {}, 50],
  ['list_orders', { cursor: cursor(3, 10_000) }, 50],
  ['list_orders', { event_id: id(1) }, 50],
  ['list_orders', { status: 'pending' }, 0],
  ['list_orders', { payment_status: '{awaiting_payment,partially_paid}' }, 0],
  ['list_orders', { event_id: id(1), payment_status: '{not_required,paid}' }, 50],
  ['list_orders', { overdue: true }, 0],
  ['list_orders', { due_after: '2000-01-01', due_before: future, event_id: id(1) }, 0],
  ['list_orders', { due_before: future, email: 'guest1@example.com' }, 0],
  ['list_orders', { reference: '00000001' }, 1],
  ['list_orders', { external_id: 'crm-1' }, 1],
  ['list_orders', { email: 'guest1@example.com' }, 1],
  ['list_orders', { updated_after: future }, 0],
  ['list_payments', {}, 50],
  ['list_payments', { cursor: startCursor('2026-01-02', 10_000) }, 50],
  ['list_payments', { event_id: id(1) }, 50],
  ['list_payments', { order_id: id(3) }, 1],
  ['list_payments', { received_after: '2025-01-01', received_before: '2026-01-01' }, 0],
  ['list_check_ins', {}, 50],
  ['list_check_ins', { event_id: id(1), result: 'rejected' }, 0],
  ['list_check_ins', { attendee_id: id(4) }, 1],
  ['list_events', {}, 50],
  ['list_events', { status: 'cancelled' }, 0],
  ['list_events', { sort: 'starts_at' }, 50],
  ['list_events', { sort: 'starts_at', cursor: startCursor('2098-12-31', 10_000) }, 50],
  ['list_events', { external_id: 'crm-1' }, 1],
  ['list_notifications', {}, 50],
  ['list_notifications', { type: 'order.cancelled' }, 0],
  ['list_notifications', { after: id(6) }, 50],
  ['list_notifications', { created_after: '2000-01-01' }, 50],
  ['list_notifications', { created_after: future, type: 'order.completed' }, 0],
  ['list_audit_entries', {}, 50],
  ['list_audit_entries', { object_type: 'order' }, 0],
  ['list_audit_entries', { created_after: future }, 0],
  ['list_webhook_deliveries', {}, 50],
  ['list_webhook_deliveries', { status: 'failed' }, 0],
  ['list_webhook_deliveries', { type: 'event.cancelled' }, 0],
  ['list_webhook_deliveries', { webhook_endpoint_id: id(5), status: 'pending' }, 0],
  ['list_webhook_deliveries', { notification_id: id(6) }, 1],
  ['list_emails', { kind: 'ticket', status: 'sent' }, 50],
  ['list_emails', { attendee_id: id(4) }, 1],
]

// Reading 30,000 rows by an index reads at least 200 pages, and 30,000 more where the rows are looked at. A page of 50 items reads
// up to 650, an empty one three for each of up to 48 states; a list of what was updated since a time, or of what a search matches, looks at the newest thousand rows first.
test.each(cases)('%s %j is found by key', async (list, filters, expected) => {
  const { pages, items } = await costOf(list, filters)
  expect(items).toBe(expected)
  expect(pages).toBeLessThan('updated_after' in filters || 'search' in filters ? 4500 : items < 2 ? 180 : 800)
})

test.each([
  ['external_id', { external_id: 'crm-1' }, id(4)],
  ['e-mail address and name', { email: 'Guest1@example.com', name: 'guest' }, id(4)],
  ['an address that nobody has', { email: 'nobody@example.com', name: 'Guest' }, null],
  ['an external_id that is new', { external_id: 'new', email: 'nobody@example.com', name: 'Guest' }, null],
])('an import finds its guest by key: %s', async (_by, guest, expected) => {
  const call = `(private.attendee_of_guest('${id(1)}', null, '${JSON.stringify(guest)}')).id`
  const { pages, answer } = await costAs('scope_attendees_write', call)
  expect(answer).toBe(expected)
  expect(pages).toBeLessThan(50)
})

const everything = '{events:read,orders:read,attendees:read,events:write,attendees:write,checkin:write,orders:write}'

// A name that thousands have costs what a search for it does.
const names: [kind: string, name: string, event: string | null, found: number, most: number][] = [
  ['event', 'Event', null, 11, 300],
  ['event', 'CRM-77', null, 0, 300],
  ['ticket_type', 'type', id(1), 1, 300],
  ['webhook_endpoint', 'https://example.com', null, 1, 300],
  ['order', '00000007', null, 1, 600],
  ['order', 'guest7@example.com', null, 1, 600],
  ['order', 'nobody', null, 0, 600],
  ['order', 'Guest', null, 11, 4500],
  ['attendee', 'crm-7', id(1), 1, 300],
  ['attendee', 'nobody', null, 0, 300],
  ['attendee', 'guest', id(1), 11, 800],
]

async function holdCostOfName([kind, name, event, found, most]: (typeof names)[number]): Promise<void> {
  const values = [kind, name, organisationId, event, everything]
  const literals = values.map((value) => (value === null ? 'null' : pg.escapeLiteral(value)))
  const call = `(select count(*)::integer from private.objects_called(${literals.join()}))`
  const { pages, answer } = await costAs('postgres', call)
  expect([kind, name, answer]).toEqual([kind, name, found])
  expect(pages, `${kind} ${name}`).toBeLessThan(most)
}

test.each(names)('what the %s %j is in %j is found by key', (...of) => holdCostOfName(of))

test('the courier finds what is due by key, among orders whose deadline is to come', async () => {
  const { pages, answer } = await costAs('postgres', 'api.enforce_payment_deadlines()', [
    `update public.orders set status = 'pending', payment_due_at = '2099-01-01', payment_check_at = '2099-01-01'
     where reference < '00005000'`,
  ])
  expect(answer).toEqual({ expired: 0, reminded: 0, has_more: false })
  expect(pages).toBeLessThan(150)
})

test.each<[Filters, number]>([
  [{ overdue: true, status: 'cancelled' }, 50],
  [{ overdue: true, status: 'pending', event_id: id(1) }, 50],
  [{ due_after: '2021-01-01', payment_status: '{awaiting_payment,partially_paid}' }, 50],
  [{ overdue: true, cursor: startCursor('2021-01-01', 1), event_id: id(1) }, 50],
  [{ due_before: '2099-01-01', payment_status: '{paid,refunded}' }, 0],
  [{ overdue: true, email: 'guest3@example.com' }, 1],
])('orders are found by their deadline by key, among thousands that expired or are to be paid: %j', async (...of) => {
  const [filters, expected] = of
  const { pages, items } = await costOf('list_orders', filters, [
    `update public.orders set
       status = (array['cancelled', 'pending', 'completed']::public.order_status[])[1 + reference::integer % 3],
       cancellation_reason = case reference::integer % 3 when 0 then 'expired'::public.cancellation_reason end,
       payment_status = (array['not_required', 'awaiting_payment', 'paid']::public.payment_status[])[1 + reference::integer % 3],
       payment_due_at = timestamptz '2020-01-01' + reference::integer * interval '10 hours'
     where reference < '00003000'`,
  ])
  expect(items).toBe(expected)
  // Each order has two versions in its indexes here.
  expect(pages).toBeLessThan(items < 2 ? 150 : 1200)
})

test('what the logs hold of a person is found by key', async () => {
  const { pages, answer } = await costAs('scope_attendees_write', `api.erase_attendee('${id(4)}')`)
  expect(answer).toMatchObject({
    data: { notifications: 1, webhook_deliveries: 0, ticket_emails: 1, audit_entries: 1, idempotency_records: 1 },
  })
  expect(pages).toBeLessThan(400)
  const emails = (await client.query('select min(id::text) as id from public.emails')).rows[0].id
  expect((await costAs('courier', `api.erased_emails('{${emails}}')`)).pages).toBeLessThan(150)
})

test('whoever stands under an address is found, and erased, by key', async () => {
  const found = await costAs('scope_attendees_read', "api.find_person('GUEST7@example.com')")
  expect(found.answer).toMatchObject({ people: [{ name: 'Guest', attendees: 1 }], hidden: 0 })
  expect(found.pages).toBeLessThan(150)
  const erased = await costAs('scope_attendees_write', "api.erase_person('GUEST7@example.com')")
  expect(erased.answer).toMatchObject({
    data: { attendees: 1, orders: 1, notifications: 1, emails: 1, audit_entries: 1, idempotency_records: 1 },
  })
  expect(erased.pages).toBeLessThan(600)
})

test('a purge reads what is old, by its time', async () => {
  const old = ['public.webhook_deliveries', 'public.notifications', 'public.emails', 'public.audit_entries'].map(
    (table) =>
      `update ${table} set created_at = now() - interval '400 days' from ${asPurge}
       where id in (select id from ${table} order by id limit 20)`,
  )
  const { pages, answer } = await costAs('courier', 'api.purge(30, 1000)', old)
  expect(answer).toBe(80)
  expect(pages).toBeLessThan(2500)
})

// The last one: every other test is about tables without statistics.
test('what is found by name is found by key once there are statistics, too, in plans that know them', async () => {
  await withClient(database.superuserUrl, (superuser) => superuser.query('analyze'))
  await client.query('discard plans')
  for (const of of names) await holdCostOfName(of)
})
