// The invariants themselves: they hold for a correct database, and each check is seen to fail. In a database of its own, whose triggers and
// checks are off while something is broken.

import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Disagreement, disagreementsSql, invariants } from '../../src/local/invariants.ts'
import { type OwnDatabase, startOwnDatabase } from '../support/own-database.ts'

const expired = `status = 'cancelled', cancelled_at = now(), cancellation_reason = 'expired', payment_due_at = now()`
const person = "(select id from attendees where name = 'Erased')"
const buyer = "(select id from orders where name = 'Erased')"
const waited = "(select id from waiting_list_entries where name = 'Erased')"
/** Of the ticket that somebody had who was erased. */
const passedOn = "(select order_id from attendees where name = 'gil')"

/** What the triggers would never let happen, and which checks ought to notice. */
const wrongs: [sql: string, ...checks: string[]][] = [
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
    "update attendees set waiting_list_entry_id = null where name = 'accepts'",
    'an offer that was accepted has one attendee, and no other has any',
  ],
  ['update promo_codes set times_redeemed = times_redeemed - 1', 'times_redeemed is how many tickets have the code'],
  ['update promo_codes set max_redemptions = 0', 'no more uses of a code than it allows'],
  [
    "update orders set subtotal = subtotal + 1 where status = 'pending'",
    'totals are the sums of the tickets that stand',
  ],
  [
    "update orders set discount_total = discount_total - 1 where status = 'completed' and discount_total > 0",
    'totals are the sums of the tickets that stand',
  ],
  [
    "update orders set subtotal = 0, discount_total = 0 where status = 'cancelled'",
    'totals of a cancelled order are those it had',
  ],
  [
    'update attendees set price = 1 where order_id in (select id from orders where payment_method is null)',
    'complimentary tickets cost nothing',
    'totals are the sums of the tickets that stand',
  ],
  [
    `update audit_entries set api_key_id = (select id from api_keys where event_id is not null);
     update orders set source = 'page';
     update api_keys set event_id = gen_random_uuid()`,
    'a page registers for its own event alone',
  ],
  [
    `insert into messages (organisation_id, event_id, subject, message) select organisation_id, id, 'Doors', 'At six.' from events limit 1;
     insert into emails (organisation_id, kind, attendee_id, organiser_message_id, status, sent_to, sent_at, next_attempt_at)
     select a.organisation_id, 'organiser_message', a.id, m.id, 'sent', a.email, now(), null
     from (select * from attendees where status = 'active' limit 1) a, messages m, generate_series(1, 2)`,
    'no address is sent a message twice',
  ],
  [
    'update attendees set promo_code_id = null where discount > 0',
    'a discount is of a code and at most the price',
    'times_redeemed is how many tickets have the code',
  ],
  ['update promo_codes set percent_off = null, amount_off = 1', 'an order has at most the amount off of its code'],
  [
    "update orders set amount_refunded = 1 where status = 'completed' and amount_paid > total",
    'amount_refunded is the sum of the refunds, and at most what was paid',
  ],
  [
    "update orders set amount_retained = 1 where status = 'pending'",
    'an order retains at most what it would have to refund',
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
  ["update orders set completed_at = null where status = 'completed'", 'an order has the moments of its status'],
  [
    "update orders set cancellation_reason = null where status = 'cancelled'",
    'a cancelled order says why, and one that expired had a deadline, which was over',
  ],
  [
    `update orders set ${expired} where status = 'cancelled' and send_email`,
    'the buyer of an order that expired is told so once',
    'totals of a cancelled order are those it had',
    'what happened has its notification',
  ],
  [
    "update orders set payment_check_at = now() where status = 'completed'",
    'the courier looks at each deadline of what is due, and at no other',
  ],
  [
    "update orders set payment_remind_at = now() where status = 'completed'",
    'Usher reminds of a deadline before it, and not within a day of a reminder',
  ],
  [
    "update attendees set status = 'active' where status = 'awaiting_payment'",
    'tickets of a pending order wait',
    'a ticket that is to be e-mailed is queued',
  ],
  ["update attendees set status = 'awaiting_payment' where status = 'active'", 'tickets of a completed order are good'],
  [
    "update attendees set status = 'active', cancelled_at = null where status = 'cancelled' and order_id in (select id from orders where status = 'cancelled')",
    'tickets of a cancelled order are cancelled',
    'quantity_sold is how many hold a ticket',
    'times_redeemed is how many tickets have the code',
    'totals of a cancelled order are those it had',
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
  ['update attendees set inside = not inside', 'inside is an entry that nobody left'],
  [
    `drop index check_ins_one_acceptance_idx;
     insert into check_ins select (jsonb_populate_record(c, jsonb_build_object('id', private.uuid_v7()))).* from check_ins c
     where admission_key is not null`,
    'nobody came in twice at one point, on one day, without leaving where that lets in again',
    'what happened has its notification',
  ],
  [
    'update check_ins set exited_at = now()',
    'who left has an exit that stands, and who is inside has none',
    'inside is an entry that nobody left',
  ],
  [
    `alter table attendees drop constraint attendees_ticket_code_organisation_id_key;
     update attendees set ticket_code = 'A'`,
    'no two tickets have one code',
  ],
  ["delete from notifications where type = 'order.created'", 'what happened has its notification'],
  ["delete from notifications where type = 'payment.recorded'", 'what happened has its notification'],
  ["delete from notifications where type = 'attendee.checked_in'", 'what happened has its notification'],
  ["delete from notifications where type = 'waiting_list_entry.offered'", 'what happened has its notification'],
  ["update notifications set subject_id = null where type = 'order.completed'", 'what happened has its notification'],
  [
    "update notifications set type = 'attendee.updated', subject_id = id where type = 'order.completed'",
    'what happened has its notification',
    'a notification is found by its subject',
  ],
  [
    `update webhook_endpoints set updated_at = now() - interval '1 day'; delete from webhook_deliveries`,
    'a notification has a delivery for each endpoint that was subscribed',
  ],
  ["delete from emails where kind = 'ticket'", 'a ticket that is to be e-mailed is queued'],
  ["delete from audit_entries where object_type = 'payment'", 'what somebody did is in the audit trail'],
  ["delete from audit_entries where object_type = 'order'", 'what somebody did is in the audit trail'],
  [`update attendees set company = 'Acme' where id = ${person}`, 'an erased person is gone from their rows'],
  [
    `update emails set sent_to = 'eve@example.com' where attendee_id = ${person}`,
    'an erased person is gone from their rows',
  ],
  [
    `update notifications set data = replace(data::text, '"Erased"', '"Eve"')::json where type = 'order.created'`,
    'an erased person is gone from notifications',
  ],
  [
    `update webhook_deliveries set last_response_body = 'Eve', last_attempt_at = now() - interval '1 hour'`,
    'an erased person is gone from responses to webhooks',
  ],
  [
    `insert into audit_entries (organisation_id, action, object_type, object_id, actor, source, changes)
     select organisation_id, 'updated', 'attendee', id, 'studio', 'studio', '{"name": {"from": "Eve", "to": "Eva"}}' from attendees where id = ${person}`,
    'an erased person is gone from the audit trail',
  ],
  [
    `insert into private.idempotency_records (organisation_id, family_id, idempotency_key, request_fingerprint, outcome)
     select organisation_id, id, 'k', 'f', json_build_object('data', json_build_object('object', 'attendee', 'id', id, 'order_id', order_id, 'name', 'Eve'))
     from attendees where id = ${person}`,
    'an erased person is gone from answers that are replayed',
  ],
  [
    `insert into private.idempotency_records (organisation_id, family_id, idempotency_key, request_fingerprint, outcome)
     select organisation_id, id, 'k', 'f', json_build_object('data', json_build_object('object', 'attendee_import', 'results',
       json_build_array(json_build_object('result', 'created', 'attendee_id', id, 'external_id', 'eve-1'))))
     from attendees where id = ${person}`,
    'an erased person is gone from answers that are replayed',
  ],
  [
    `update emails set sent_to = 'hal@example.com' where order_id = ${buyer}`,
    'an erased person is gone from the addresses of what was sent',
  ],
  [
    `insert into emails (organisation_id, kind, status, next_attempt_at, waiting_list_entry_id, sent_to)
     select organisation_id, 'waiting_list_offer', 'sent', null, id, 'ida@example.com' from waiting_list_entries where id = ${waited}`,
    'an erased person is gone from the addresses of what was sent',
  ],
  [
    `update notifications set data = replace(data::text, '"Erased"', '"Hal"')::json where subject_id = ${buyer}`,
    'an erased person is gone from notifications',
  ],
  [
    `update notifications set data = replace(data::text, '"Erased"', '"Ida"')::json where subject_id = ${waited}`,
    'an erased person is gone from notifications',
  ],
  [
    `insert into audit_entries (organisation_id, action, object_type, object_id, actor, source, changes)
     select organisation_id, 'updated', 'order', id, 'studio', 'studio', '{"email": {"from": "hal@example.com", "to": "h@example.com"}}'
     from orders where id = ${buyer}`,
    'an erased person is gone from the audit trail',
  ],
  [
    `insert into private.idempotency_records (organisation_id, family_id, idempotency_key, request_fingerprint, outcome)
     select organisation_id, id, 'k', 'f', json_build_object('data', json_build_object('object', 'order', 'id', id, 'name', 'Hal'))
     from orders where id = ${buyer}`,
    'an erased person is gone from answers that are replayed',
  ],
  [
    `update audit_entries set changes = jsonb_set(changes, '{name,from}', '"fay"') where object_id = (select id from attendees where name = 'gil')
     and changes ? 'email'`,
    'a former holder who was erased is gone from all sides of a change',
  ],
  [
    `update notifications set data = replace(data::text, '"Erased"', '"fay"')::json, created_at = created_at - interval '1 hour'
     where subject_id = ${passedOn}`,
    'a former holder who was erased is gone from notifications',
  ],
  [
    `insert into emails (organisation_id, kind, attendee_id, created_at)
     select organisation_id, 'event_changed', id, now() + interval '1 hour' from attendees where name = 'ann'`,
    'whoever switched off the messages of an event is queued none after that',
  ],
  [
    `update attendees set answers = '{"allergy": "nuts"}' where name = 'ann'`,
    'an answer is of a question of the event, and a sensitive one is apart',
  ],
  ["delete from questions where key = 'diet'", 'an answer is of a question of the event, and a sensitive one is apart'],
  [
    `update notifications set data = regexp_replace(data::text, '"answers" *: *{[^}]*}', '"answers": {"allergy": "nuts"}')::json
     where type = 'order.created' and data::text like '%"ann"%'`,
    'a sensitive answer is in no notification',
  ],
  [
    `update audit_entries set changes = changes || '{"sensitive_answers": {"to": {"allergy": "nuts"}}}'
     where changes ? 'sensitive_answers'`,
    'a sensitive answer is in no audit entry',
  ],
  [
    `insert into email_opt_outs (email, event_id, organisation_id) select 'zoe@example.com', id, organisation_id from events`,
    'whoever switched off the messages of an event has a ticket of it',
  ],
]

let own: OwnDatabase
let client: pg.Client
beforeAll(async () => {
  own = await startOwnDatabase()
  client = new pg.Client({ connectionString: own.superuserUrl })
  await client.connect()
  await client.query('set search_path = public')
  await fill()
})
afterAll(async () => {
  await client?.end()
  await own?.remove()
})

const one = async (sql: string, values: unknown[] = []) =>
  (await client.query<{ id: string }>(sql, values)).rows[0]?.id ?? ''

/**
 * An event with an order in each state, one of them paid twice over, a waiting list, somebody who wants no e-mails of changes, and people who
 * were erased: a guest, a buyer, one who waited, and one who had a ticket before.
 */
async function fill(): Promise<void> {
  const organisation = await one("insert into organisations (name, slug) values ('Own', 'own') returning id")
  const event = await one(
    `insert into events (organisation_id, name, slug, starts_at, ends_at, capacity)
     values ($1, 'Own', 'own', now() + interval '1 day', now() + interval '2 days', 20) returning id`,
    [organisation],
  )
  const type = (name: string, price: number, quantity: number | null) =>
    one('insert into ticket_types (event_id, name, price, quantity) values ($1, $2, $3, $4) returning id', [
      event,
      name,
      price,
      quantity,
    ])
  const [free, priced, full] = [await type('Free', 0, 20), await type('Priced', 2500, 20), await type('Full', 0, 0)]
  await one("insert into promo_codes (event_id, code, percent_off) values ($1, 'HALF', 50)", [event])
  await one("update events set status = 'published', registration_page = 'by_link' where id = $1", [event])
  const endpoint =
    "insert into webhook_endpoints (organisation_id, url, types) values ($1, 'https://example.com', '{order.created}')"
  await one(endpoint, [organisation])

  const order = async (method: string | null, code: string | null, names: string[], email = 'buyer@example.com') => {
    const id = await one(
      'insert into orders (event_id, name, email, payment_method, promo_code) values ($1, $2, $3, $4, $5) returning id',
      [event, `Buyer of ${names[0]}`, email, method, code],
    )
    for (const name of names) {
      await one('insert into attendees (order_id, ticket_type_id, name, email) values ($1, $2, $3, $4)', [
        id,
        method === null ? free : priced,
        name,
        `${name}@example.com`,
      ])
    }
    return id
  }
  const pay = (id: string, amount: number) =>
    one('insert into payments (order_id, amount) values ($1, $2)', [id, amount])
  const cancel = (name: string) => one("update attendees set status = 'cancelled' where name = $1", [name])

  const guest = await order(null, null, ['ann'])
  await one(
    `insert into questions (event_id, key, label, sensitive, delete_after_days)
     values ($1, 'diet', 'Diet?', false, null), ($1, 'allergy', 'Allergies?', true, 30)`,
    [event],
  )
  await one(`update attendees set answers = '{"diet": "vegan", "allergy": "nuts"}' where name = 'ann'`)
  await one('insert into check_ins (event_id, code) select event_id, ticket_code from attendees where name = $1', [
    'ann',
  ])
  await pay(await order('invoice', null, ['ben', 'bob']), 700)
  await pay(await order('invoice', 'HALF', ['cat', 'col']), 2500)
  await cancel('cat')
  const cancelled = await order('invoice', 'HALF', ['dan', 'dot'])
  await pay(cancelled, 1000)
  await cancel('dan')
  await one("update orders set status = 'cancelled' where id = $1", [cancelled])

  const entry = (name: string) =>
    one(
      'insert into waiting_list_entries (event_id, ticket_type_id, name, email) values ($1, $2, $3, $4) returning id',
      [event, full, name, `${name}@example.com`],
    )
  const accepting = await entry('accepts')
  await entry('offered')
  await entry('waits')
  await one('update ticket_types set quantity = 2 where id = $1', [full])
  await one(
    `insert into attendees (order_id, ticket_type_id, waiting_list_entry_id, name, email) values ($1, $2, $3, 'accepts', 'accepts@example.com')`,
    [guest, full, accepting],
  )

  await one("insert into email_opt_outs (event_id, email) values ($1, 'ann@example.com')", [event])
  await order('invoice', null, ['hugh'], 'hal@example.com')
  await entry('ida')
  await order(null, null, ['fay'])
  await one("update attendees set name = 'gil', email = 'gil@example.com' where name = 'fay'")
  for (const name of ['hal', 'ida', 'fay']) await one('select erase_person($1)', [`${name}@example.com`])

  await order(null, null, ['eve'])
  await one("select erase_attendee(id) from attendees where name = 'eve'")
  await one('select private.enqueue_deliveries()')
  await one(
    `update webhook_deliveries set status = 'delivered'
     where notification_id = (
       select n.id from notifications n
       where n.type = 'order.created' and n.subject_id = (select order_id from attendees where id = ${person})
     )`,
  )
  // What is broken below they would refuse.
  await client.query(`
    do $$
    declare
      v_check record;
    begin
      for v_check in
        select c.conrelid::regclass as "table", c.conname from pg_constraint c where c.contype = 'c' and c.connamespace = 'public'::regnamespace
      loop
        execute format('alter table %s drop constraint %I', v_check."table", v_check.conname);
      end loop;
    end
    $$`)
}

const broken = async (eventId: string | null = null) =>
  (await client.query<Disagreement>(disagreementsSql, [eventId])).rows

test('a database that is right breaks no rule, nor does an event', async () => {
  expect(await broken()).toEqual([])
  expect(await broken(await one('select id from events'))).toEqual([])
})

describe('what would be wrong is found:', () => {
  test.each(wrongs)('%s', async (sql, ...checks) => {
    await client.query('begin')
    try {
      await client.query('set local session_replication_role = replica')
      await client.query(sql)
      expect([...new Set((await broken()).map(({ check }) => check))].sort()).toEqual(checks.toSorted())
      const ofEvent = await broken(await one('select id from events'))
      expect([...new Set(ofEvent.map(({ check }) => check))].sort()).toEqual(checks.toSorted())
    } finally {
      await client.query('rollback')
    }
  })
})

test('every check is seen to fail', () => {
  const sentences = invariants.flatMap((query) =>
    [...query.matchAll(/'((?:[A-Za-z_]+,? ){4,}[a-z]+(?:, [a-z ]+)*)'/g)].map(([, sentence]) => sentence ?? ''),
  )
  const seen = new Set(wrongs.flatMap(([, ...checks]) => checks))
  expect(new Set(sentences).size).toBeGreaterThan(30)
  expect(sentences.filter((sentence) => !seen.has(sentence))).toEqual([])
})
