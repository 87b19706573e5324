// The SQL that organisers paste: supabase/snippets, and what docs/organisers.md shows. Each runs against the demo data and shows what it did;
// with what is mistyped it says so, in a sentence, and changes nothing.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OwnDatabase, startOwnDatabase } from '../support/own-database.ts'

const root = join(import.meta.dirname, '../..')
const snippets = join(root, 'supabase/snippets')
const files = readdirSync(snippets).map((file) => [file, readFileSync(join(snippets, file), 'utf8')] as const)
const documented = [
  ...readFileSync(join(root, 'docs/organisers.md'), 'utf8').matchAll(
    /^ {4}(?:select|insert|update|delete) [^;]+;(?:\n(?: {4}.*;)?)*|`(select [^`]+\))`/gm,
  ),
].map(([text, inline]) => (inline ?? text).trim())
// Calls whose arguments are data of their own, and not the name of something that is there.
const ofNothing = /create_api_key|rotate_api_key|revoke_api_key|invite_member|create_organisation/

let database: OwnDatabase
let client: pg.Client
let unpaid: string
let paid: string
let expired: string
const adasAccount = '00000000-0000-4000-8000-0000000000ad'

beforeAll(async () => {
  database = await startOwnDatabase()
  client = new pg.Client({ connectionString: database.databaseUrl, options: '-c search_path=public' })
  await client.connect()
  await client.query(readFileSync(join(root, 'supabase/seed.sql'), 'utf8'))
  unpaid = (await addOrder()).reference
  const overdue = await addOrder()
  expired = overdue.reference
  await client.query('update orders set payment_due_at = now() where id = $1', [overdue.order_id])
  await client.query('select api.enforce_payment_deadlines()')
  const order = await addOrder()
  paid = order.reference
  await client.query("update ticket_types set quantity = 2 where name = 'Front row'")
  await client.query(
    `insert into waiting_list_entries (event_id, ticket_type_id, name, email)
     values (the_event('lantern-conference'), the_ticket_type('lantern-conference', 'Front row'), 'Ada Lovelace', 'ada@example.com')`,
  )
  await client.query("update ticket_types set quantity = 3 where name = 'Front row'")
  await client.query(
    `insert into webhook_endpoints (organisation_id, url, types) select id, 'https://crm.example.com/usher', '{order.created}'
     from organisations`,
  )
  await client.query(
    `insert into auth.users (id, email) values ('${adasAccount}', 'ada@example.com');
     insert into organisation_members (organisation_id, user_id, role) select id, '${adasAccount}', 'owner' from organisations`,
  )
  await client.query('begin')
  await client.query("select set_config('request.jwt.claims', $1, true), set_config('role', 'authenticated', true)", [
    JSON.stringify({ role: 'authenticated', sub: adasAccount }),
  ])
  await client.query("select create_api_key('Made by Ada', '{events:read}')")
  await client.query('commit')
  await client.query(
    `insert into promo_codes (event_id, code, percent_off) values (the_event('lantern-conference'), 'FRIENDS', 10);
     insert into registrations (event_id, ticket_type_id, name, email, payment_method, promo_code)
     select the_event('lantern-conference'), the_ticket_type('lantern-conference', 'professional'), 'Grace', 'grace@example.com', 'invoice',
       'FRIENDS'
     from generate_series(1, 2);
     update orders set status = 'cancelled' where reference = (select max(reference) from orders where name = 'Grace')`,
  )
  for (const amount of [10000, 4900]) {
    await client.query('insert into payments (order_id, amount) values ($1, $2)', [order.order_id, amount])
  }
})

async function addOrder(): Promise<{ reference: string; order_id: string }> {
  const { rows } = await client.query(
    `insert into registrations (event_id, ticket_type_id, name, email, payment_method)
     values (the_event('lantern-conference'), the_ticket_type('lantern-conference', 'professional'), 'Mary', 'mary@example.com', 'invoice')
     returning reference, order_id`,
  )
  return rows[0]
}

afterAll(async () => {
  await client?.end()
  await database?.remove()
})

/** The rows that it shows; nothing of it is kept. */
async function paste(sql: string): Promise<unknown[]> {
  await client.query('begin')
  try {
    const results = [await client.query(sql)].flat()
    return results.flatMap(({ rows }) => rows)
  } finally {
    await client.query('rollback')
  }
}

const placeholders = /'(XXXXXXXX|my-event|My ticket type|who@example\.com|https:\/\/hooks\.example\.com)'/
const orderFor = (sql: string) =>
  /into payments|send_payment_reminder/.test(sql) ? unpaid : sql.includes('reopen_order') ? expired : paid
const filledIn = (sql: string) =>
  sql
    .replaceAll('XXXXXXXX', orderFor(sql).toLowerCase())
    .replaceAll('my-event', 'lantern-conference')
    .replaceAll('My ticket type', 'Community')
    .replaceAll('who@example.com', 'Ada@example.com')
    .replaceAll('https://hooks.example.com', 'https://crm.example.com/usher')

const all = [...files, ...documented.map((sql) => [sql.split('\n')[0] as string, sql] as const)].filter(
  ([, sql]) => !ofNothing.test(sql) || !sql.startsWith('select'),
)
const naming = all.filter(([, sql]) => placeholders.test(sql.replace(/^--.*$/gm, '')))

test('there are as many as there ought to be', () => {
  expect([files.length, documented.length, naming.length].map((count) => count >= 8)).toEqual([true, true, true])
})

describe('with names that are there', () => {
  test.each(naming)('%s shows what it did', async (_, sql) => {
    expect((await paste(filledIn(sql))).length).toBeGreaterThan(/bounced/.test(sql) ? -1 : 0)
  })
})

describe('with a name that is mistyped', () => {
  // Whom it finds it answers, and so nobody.
  const acting = naming.filter(([, sql]) => !sql.startsWith('select find_person'))
  test.each(acting)('%s says so', async (_, sql) => {
    for (const [, placeholder = ''] of sql.matchAll(new RegExp(placeholders, 'g'))) {
      const mistyped = filledIn(sql.replaceAll(`'${placeholder}'`, "'no such'"))
      await expect(paste(mistyped), mistyped).rejects.toMatchObject({
        code: 'PT404',
        message: expect.stringMatching(/^(There is no|This event has no|Nobody) .+\.$/),
      })
    }
  })

  test('a payment of another amount is not voided', async () => {
    const sql = filledIn(readFileSync(join(snippets, 'correct_a_payment.sql'), 'utf8')).replace('4900', '4901')
    await expect(paste(sql)).rejects.toMatchObject({
      code: 'PT404',
      message: 'This order has no such payment that counts.',
    })
  })

  test('an e-mail address of several attendees is refused', async () => {
    await client.query(
      `insert into registrations (event_id, ticket_type_id, name, email)
       select the_event('lantern-conference'), the_ticket_type('lantern-conference', 'Community'), 'Twin', 'twin@example.com'
       from generate_series(1, 2)`,
    )
    const sql = readFileSync(join(snippets, 'resend_a_ticket.sql'), 'utf8')
    await expect(paste(filledIn(sql.replace('who@example.com', 'twin@example.com')))).rejects.toMatchObject({
      code: 'PT422',
      message: 'Several attendees have this e-mail address.',
    })
  })
})

test('whoever cancelled and registered again is the one whose ticket stands', async () => {
  const register = async () =>
    (
      await client.query(
        `insert into registrations (event_id, ticket_type_id, name, email)
         values (the_event('lantern-conference'), the_ticket_type('lantern-conference', 'Community'), 'Ida', 'ida@example.com')
         returning attendee_id as id`,
      )
    ).rows[0].id
  const first = await register()
  await client.query("update attendees set status = 'cancelled' where id = $1", [first])
  const found = async () => (await client.query("select the_attendee('ida@example.com') as id")).rows[0].id
  expect(await found()).toBe(first)
  const second = await register()
  expect(await found()).toBe(second)
  await client.query("update attendees set status = 'cancelled' where id = $1", [second])
  await expect(found()).rejects.toMatchObject({ code: 'PT422' })
})

test('an event is found however its slug is typed', async () => {
  const { rows } = await client.query(
    "select the_event(' Lantern-Conference ') = the_event('lantern-conference') as found",
  )
  expect(rows).toEqual([{ found: true }])
})

test('name badges are in the order of last names, with Ö beside O', async () => {
  await client.query('begin')
  try {
    await client.query(
      `insert into registrations (event_id, ticket_type_id, name, email, metadata)
       select the_event('lantern-conference'), the_ticket_type('lantern-conference', 'Community'), n.name, 'badge@example.com', n.metadata::jsonb
       from (values
         ('Zora Otto', '{}'), ('Anton Österle', '{}'), ('Bea Pauli', '{}'), ('Cora van Ode', '{"last_name": "van Ode"}'), ('Dora Vogel', '{}')
       ) n (name, metadata)`,
    )
    const badges = documented.find((sql) => sql.includes('und-x-icu')) ?? ''
    const { rows } = await client.query(filledIn(badges))
    const names = ['Anton Österle', 'Zora Otto', 'Bea Pauli', 'Cora van Ode', 'Dora Vogel']
    expect(rows.map(({ name }) => name).filter((name) => names.includes(name))).toEqual(names)
  } finally {
    await client.query('rollback')
  }
})

test('whoever leaves takes the keys that they made along, and no others', async () => {
  const leaving = documented.find((sql) => sql.includes('delete from organisation_members'))
  await client.query("select create_api_key('Of the editor', '{events:read}')")
  expect(await paste(filledIn(leaving as string))).toEqual([
    { name: 'Made by Ada', prefix: expect.stringMatching(/^usher_live_/), last_used_at: null },
    { role: 'owner' },
  ])
  const keys = documented.find((sql) => sql.includes('made_by'))
  expect(await paste(keys as string)).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ name: 'Made by Ada', actor: 'member', made_by: 'ada@example.com' }),
      expect.objectContaining({ name: 'Of the editor', actor: 'studio', made_by: null }),
    ]),
  )
})

test('what a promo code cost leaves out what was cancelled', async () => {
  const sql = filledIn(documented.find((text) => text.includes('sum(a.discount)')) as string)
  const { rows } = await client.query(
    "select sum(discount)::text as discount, count(*)::text as all from attendees where promo_code_id is not null and status <> 'cancelled'",
  )
  expect(rows).toEqual([{ discount: expect.stringMatching(/^[1-9]/), all: '1' }])
  expect(await paste(sql)).toEqual([{ code: 'FRIENDS', tickets: '1', discount: rows[0].discount, currency: 'EUR' }])
})

test('a member names what is theirs, and nothing else', async () => {
  await client.query('begin')
  try {
    await client.query(
      `insert into organisations (name, slug) values ('Others', 'others');
       insert into auth.users (id) values ('00000000-0000-4000-8000-000000000001');
       insert into organisation_members (organisation_id, user_id, role)
       select id, '00000000-0000-4000-8000-000000000001', 'manager' from organisations where slug = 'others';
       insert into events (organisation_id, name, slug) select id, 'Theirs', 'theirs' from organisations where slug = 'others'`,
    )
    await client.query("select set_config('request.jwt.claims', $1, true), set_config('role', 'authenticated', true)", [
      '{"role": "authenticated", "sub": "00000000-0000-4000-8000-000000000001"}',
    ])
    expect((await client.query("select the_event('theirs') is not null as found")).rows).toEqual([{ found: true }])
    for (const name of [
      "the_event('lantern-conference')",
      `the_order('${paid}')`,
      `the_payment('${paid}', 4900)`,
      "the_ticket_type('theirs', 'Community')",
      "the_attendee('ada@example.com')",
      "the_waiting_list_entry('ada@example.com')",
      "the_webhook_endpoint('https://crm.example.com/usher')",
      "the_member('ada@example.com')",
    ]) {
      await client.query('savepoint one')
      await expect(client.query(`select ${name}`), name).rejects.toMatchObject({ code: 'PT404' })
      await client.query('rollback to one')
    }
  } finally {
    await client.query('rollback')
  }
})

describe('what names nothing', () => {
  test.each(all.filter((one) => !naming.includes(one)))('%s runs', async (_, sql) => {
    await paste(sql)
  })
})

// What it looks for itself, and does not find, it would change in silence.
test('whatever acts on a row names it by a function that refuses what is not there', () => {
  const acts = all.filter(
    ([, sql]) => !ofNothing.test(sql) && /^\s*(insert|update|delete)\b|^\s*select \w+\((?!\*)/m.test(sql),
  )
  expect(acts.length).toBeGreaterThan(8)
  expect(acts.filter((one) => !naming.includes(one) || /^\s*select \w+\(.*\bfrom\b/m.test(one[1]))).toEqual([])
})

test('no snippet changes rows without showing them', () => {
  for (const [name, sql] of [...files, ...documented.map((text) => [text, text] as const)]) {
    const writes = sql.replace(/^--.*$/gm, '').match(/\b(insert into|update|delete from) [a-z_]+/g) ?? []
    expect([name, sql.match(/\breturning\b/g)?.length ?? 0]).toEqual([name, writes.length])
  }
})
