// The SQL that organisers paste: supabase/snippets. Each runs against the demo data and shows what it did; with a mistyped name it says so,
// in a sentence, and changes nothing.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OwnDatabase, startOwnDatabase } from '../support/own-database.ts'

const root = join(import.meta.dirname, '../..')
const snippets = join(root, 'supabase/snippets')
const files = readdirSync(snippets).map((file) => [file, readFileSync(join(snippets, file), 'utf8')] as const)

let database: OwnDatabase
let client: pg.Client
let unpaid: string
let paid: string

beforeAll(async () => {
  database = await startOwnDatabase()
  client = new pg.Client({ connectionString: database.databaseUrl, options: '-c search_path=public' })
  await client.connect()
  await client.query(readFileSync(join(root, 'supabase/seed.sql'), 'utf8'))
  unpaid = (await addOrder()).reference
  const order = await addOrder()
  paid = order.reference
  await client.query("update ticket_types set quantity = 2 where name = 'Front row'")
  await client.query(
    `insert into waiting_list_entries (event_id, ticket_type_id, name, email)
     values (the_event('lantern-conference'), the_ticket_type('lantern-conference', 'Front row'), 'Ada Lovelace', 'ada@example.com')`,
  )
  await client.query("update ticket_types set quantity = 3 where name = 'Front row'")
  await client.query(
    `insert into webhook_endpoints (organisation_id, url, types)
     select id, 'https://crm.example.com/usher', '{order.created}' from organisations;
     insert into auth.users (id, email) values ('00000000-0000-4000-8000-0000000000ad', 'ada@example.com');
     insert into organisation_members (organisation_id, user_id, role)
     select id, '00000000-0000-4000-8000-0000000000ad', 'owner' from organisations`,
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

const placeholders = /'(XXXXXXXX|my-event|My ticket type|who@example\.com)'/
const filledIn = (sql: string) =>
  sql
    .replaceAll('XXXXXXXX', (sql.includes('into payments') ? unpaid : paid).toLowerCase())
    .replaceAll('my-event', 'lantern-conference')
    .replaceAll('My ticket type', 'Community')
    .replaceAll('who@example.com', 'Ada@example.com')

const naming = files.filter(([, sql]) => placeholders.test(sql.replace(/^--.*$/gm, '')))

test('there are as many as there ought to be', () => {
  expect([files.length, naming.length].map((count) => count >= 8)).toEqual([true, true])
})

describe('with names that are there', () => {
  test.each(naming)('%s shows what it did', async (_, sql) => {
    expect((await paste(filledIn(sql))).length).toBeGreaterThan(0)
  })
})

describe('with a name that is mistyped', () => {
  test.each(naming)('%s says so', async (_, sql) => {
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
      message: 'This order has no valid payment of this amount.',
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

test.each(files.filter((one) => !naming.includes(one)))('%s, which names nothing, runs', async (_, sql) => {
  await paste(sql)
})

// What it looks for itself, and does not find, it would change in silence.
test('whatever acts on a row names it by a function that refuses what is not there', () => {
  const acts = files.filter(
    ([name, sql]) => name !== 'create_api_key.sql' && /^\s*(insert|update|delete)\b|^\s*select \w+\((?!\*)/m.test(sql),
  )
  expect(acts.length).toBeGreaterThan(5)
  expect(acts.filter((one) => !naming.includes(one) || /^\s*select \w+\(.*\bfrom\b/m.test(one[1]))).toEqual([])
})

test('no snippet changes rows without showing them', () => {
  for (const [name, sql] of files) {
    const writes = sql.replace(/^--.*$/gm, '').match(/\b(insert into|update|delete from) [a-z_]+/g) ?? []
    expect([name, sql.match(/\breturning\b/g)?.length ?? 0]).toEqual([name, writes.length])
  }
})
