// The invariants themselves: they hold for a correct event, and each rule is seen to fail.

import type { PoolClient } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { during, row, studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { addOrder, pay } from '../support/studio.ts'
import { brokenRules, brokenRulesOf, type Rule, ruleNames } from './invariants.ts'

/** What the triggers would never let happen to the copies of the rows, and which rules ought to notice. */
const wrongs: [sql: string, ...rules: Rule[]][] = [
  ['update ticket_types set quantity_sold = quantity_sold + 1', 'quantity_sold is how many hold a ticket'],
  ['update ticket_types set quantity_held = quantity_held + 1', 'quantity_held is how many offers stand'],
  [
    'update ticket_types set quantity = quantity_sold + quantity_held - 1',
    'no more tickets and offers than there are of a type',
  ],
  ['update events set capacity = 3', 'no more tickets and offers than the event has places'],
  ["update ticket_types set quantity = 4 where name = 'Full'", 'nobody waits for a place that is free'],
  [
    "update waiting_list_entries set status = 'waiting' where status = 'accepted'",
    'whoever waits joined after everybody who was offered the same',
    'an offer that was accepted has one attendee, and no other has any',
  ],
  [
    "update waiting_list_entries set status = 'cancelled' where status = 'accepted'",
    'an offer that was accepted has one attendee, and no other has any',
  ],
  ['update promo_codes set times_redeemed = times_redeemed - 1', 'times_redeemed is how many tickets have the code'],
  ['update promo_codes set max_redemptions = 0', 'no more uses of a code than it allows'],
  [
    "update orders set subtotal = subtotal + 1 where status = 'pending'",
    'totals are the sums of the tickets that stand',
  ],
  [
    "update orders set discount_total = discount_total + 1 where status = 'completed'",
    'totals are the sums of the tickets that stand',
  ],
  [
    "update orders set total = total + 1 where status = 'completed' and total = 0",
    'totals are the sums of the tickets that stand',
    'an order is completed when nothing is due, and not before',
    'payment_status follows from status and amounts',
  ],
  [
    "update orders set subtotal = 0, discount_total = 0, total = 0 where status = 'cancelled'",
    'totals of a cancelled order are those it had',
  ],
  [
    'update attendees set price = 1 where order_id in (select id from orders where payment_method is null)',
    'complimentary tickets cost nothing',
    'totals are the sums of the tickets that stand',
  ],
  [
    'update attendees set discount = price + 1 where promo_code_id is not null',
    'a discount is of a code and at most the price',
    'totals are the sums of the tickets that stand',
    'totals of a cancelled order are those it had',
    'nobody paid more than the order ever cost',
  ],
  ['update promo_codes set percent_off = null, amount_off = 1', 'an order has at most the amount off of its code'],
  [
    "update orders set amount_refunded = 1 where status = 'completed'",
    'amount_refunded is the sum of the refunds, and at most what was paid',
    'payment_status follows from status and amounts',
  ],
  ['delete from payments', 'amount_paid is the sum of the payments that are not voided, and the rest is amount_voided'],
  [
    "update attendees set price = 0, discount = 0 where order_id in (select id from orders where status = 'cancelled')",
    'nobody paid more than the order ever cost',
    'totals of a cancelled order are those it had',
  ],
  [
    "update orders set amount_paid = total, payment_status = 'paid' where status = 'pending'",
    'an order is completed when nothing is due, and not before',
    'amount_paid is the sum of the payments that are not voided, and the rest is amount_voided',
    'payment_status follows from status and amounts',
  ],
  [
    "update orders set payment_status = 'paid' where status = 'cancelled'",
    'payment_status follows from status and amounts',
  ],
  [
    "update orders set payment_status = 'paid' where amount_paid > total",
    'payment_status follows from status and amounts',
  ],
  ["update orders set completed_at = null where status = 'completed'", 'an order has the moments of its status'],
  [
    "update orders set cancellation_reason = null where status = 'cancelled'",
    'a cancelled order says why, and one that expired had a deadline, which was over',
  ],
  [
    "update orders set cancellation_reason = 'expired' where status = 'cancelled'",
    'a cancelled order says why, and one that expired had a deadline, which was over',
    'the buyer of an order that expired is told so once',
  ],
  [
    "update orders set payment_check_at = now() where status = 'completed'",
    'the courier looks at each deadline of what is due, and at no other',
  ],
  [
    "update orders set payment_remind_at = now() where status = 'completed'",
    'Usher reminds of a deadline before it, and not within a day of a reminder',
  ],
  ["update attendees set status = 'active' where status = 'awaiting_payment'", 'tickets of a pending order wait'],
  ["update attendees set status = 'awaiting_payment' where status = 'active'", 'tickets of a completed order are good'],
  [
    "update attendees set status = 'active' where order_id in (select id from orders where status = 'cancelled')",
    'tickets of a cancelled order are cancelled',
    'quantity_sold is how many hold a ticket',
    'times_redeemed is how many tickets have the code',
  ],
  [
    "update attendees set status = 'cancelled' where order_id in (select id from orders where payment_method is null)",
    'an order that stands has a ticket that does',
    'quantity_sold is how many hold a ticket',
    'nobody waits for a place that is free',
  ],
  [
    "update events set status = 'cancelled'",
    'a cancelled event has no order that stands',
    'nobody waits for an event that is cancelled',
  ],
  ['update attendees set checked_in_at = null', 'checked_in_at is the first entry that stands'],
  ['update attendees set checked_in_at = now()', 'checked_in_at is the first entry that stands'],
  [
    'insert into check_ins select * from check_ins',
    'nobody came in twice at one point, on one day, without leaving where that lets in again',
  ],
  ['update check_ins set exited_at = now()', 'who left has an exit that stands, and who is inside has none'],
  ["update attendees set ticket_code = 'A'", 'no two tickets have one code'],
]

const tables = [
  'events',
  'ticket_types',
  'promo_codes',
  'orders',
  'attendees',
  'payments',
  'check_ins',
  'check_in_points',
  'waiting_list_entries',
]

let eventId: string

/** An event with an order in each state, one of them paid twice over. */
beforeAll(async () => {
  const event = await (await createOrganisation()).event({ quantity: 20, capacity: 20 })
  eventId = event.id
  const free = await event.ticketType()
  const guest = await event.guest({ ticketTypeId: free })
  await studio.query('insert into public.check_ins (event_id, code) values ($1, $2)', [event.id, guest.code])

  const priced = [event.ticketTypeId, event.ticketTypeId]
  const pending = await addOrder(event, { subtotal: 4999, ticketTypeIds: priced })
  await pay(pending.id, 700)
  const overpaid = await addOrder(event, { subtotal: 5000, discount: 500, ticketTypeIds: priced })
  await pay(overpaid.id, 10_000 - 1000)
  await studio.query("update public.attendees set status = 'cancelled' where id = $1", [overpaid.attendeeIds[0]])
  const cancelled = await addOrder(event, { subtotal: 3333, discount: 333, ticketTypeIds: priced })
  await pay(cancelled.id, 1000)
  await studio.query("update public.attendees set status = 'cancelled' where id = $1", [cancelled.attendeeIds[0]])
  await studio.query("update public.orders set status = 'cancelled' where id = $1", [cancelled.id])

  // Three places: one is taken from the waiting list, one is offered, and somebody waits.
  const full = await event.ticketType({ name: 'Full', quantity: 0 })
  const entries: string[] = []
  for (const name of ['accepts', 'is offered', 'waits']) {
    const entry = await row<{ id: string }>(
      `insert into public.waiting_list_entries (event_id, ticket_type_id, name, email) values ($1, $2, $3, $4) returning id`,
      [event.id, full, name, `${name.replace(' ', '-')}@example.com`],
    )
    entries.push(entry.id)
  }
  await studio.query('update public.ticket_types set quantity = 2 where id = $1', [full])
  await studio.query(
    `insert into public.attendees (order_id, ticket_type_id, waiting_list_entry_id, name, email)
     select a.order_id, $2, $3, 'accepts', 'accepts@example.com' from public.attendees a where a.id = $1`,
    [guest.attendeeId, full, entries[0]],
  )
})

test('an event that is right breaks no rule', async () => {
  expect(await brokenRules(eventId)).toEqual([])
})

describe('what would be wrong is found:', () => {
  let client: PoolClient
  beforeAll(async () => {
    client = await studio.connect()
    await client.query('begin')
    await copyTables(client)
    await client.query('savepoint copied')
  })
  afterAll(async () => {
    await client.query('rollback')
    client.release()
  })

  test.each(wrongs)('%s', async (sql, ...rules) => {
    try {
      await client.query(sql)
      const broken = await brokenRulesOf(eventId, client, 'broken rules of copies')
      expect([...new Set(broken.map(({ rule }) => rule))].sort()).toEqual(rules.toSorted())
    } finally {
      await client.query('rollback to copied')
    }
  })
})

test('every rule is seen to fail', () => {
  expect([...new Set(wrongs.flatMap(([, ...rules]) => rules))].sort()).toEqual(ruleNames.toSorted())
})

/** Temporary tables stand before those of the same name in any schema, and have neither triggers nor constraints. */
async function copyTables(client: PoolClient): Promise<void> {
  for (const table of tables) {
    const column = table === 'events' ? 'id' : 'event_id'
    await client.query(
      `create temporary table ${table} on commit drop as select * from public.${table} where ${column} = '${eventId}'`,
    )
  }
}

test('a second entry that nothing judged is refused by the index, and without the index it is found here', async () => {
  const second = `insert into check_ins
    select (jsonb_populate_record(c, jsonb_build_object('id', gen_random_uuid()))).* from public.check_ins c
    where c.event_id = $1 and c.admission_key is not null`
  const broken = await during(async (client) => {
    await copyTables(client)
    // With the indexes of the table, and no trigger.
    await client.query('drop table pg_temp.check_ins')
    await client.query('create temporary table check_ins (like public.check_ins including indexes) on commit drop')
    await client.query('insert into check_ins select * from public.check_ins where event_id = $1', [eventId])
    await client.query('savepoint before')
    await expect(client.query(second, [eventId])).rejects.toMatchObject({ code: '23505' })
    await client.query('rollback to before')
    const { rows } = await client.query<{ name: string }>(
      `select indexrelid::regclass::text as name from pg_index
       where indrelid = 'pg_temp.check_ins'::regclass and pg_get_indexdef(indexrelid) like '%(attendee_id, admission_key)%'`,
    )
    await client.query(`drop index ${rows[0]?.name}`)
    await client.query(second, [eventId])
    return brokenRulesOf(eventId, client)
  })
  expect(broken).toMatchObject([
    { rule: 'nobody came in twice at one point, on one day, without leaving where that lets in again' },
  ])
})
