// Builds that are broken on purpose: what the proof must notice. Each changes functions or triggers of the database, as a mistake in
// supabase/schemas would, or the text of a file of src/.

import type pg from 'pg'
import type { Aim } from './faults.ts'
import type { Patch } from './patched-tree.ts'

export type Mutate = (database: pg.Client) => Promise<void>

export type Mutant = {
  database?: Mutate
  source?: Patch[]
  /** What the faults of connections are, where chance seldom hits upon it. */
  aim?: Aim
}

export const run =
  (sql: string): Mutate =>
  async (database) =>
    void (await database.query(sql))

const both =
  (...all: Mutate[]): Mutate =>
  async (database) => {
    for (const mutate of all) await mutate(database)
  }

/** Replaces a part of the body of a function; of several parts, all of them. */
export const patch =
  (name: string, ...parts: [from: string | RegExp, to: string][]): Mutate =>
  async (database) => {
    const { rows } = await database.query<{ text: string }>(
      'select pg_get_functiondef(p.oid) as text from pg_proc p where p.oid = to_regproc($1)',
      [name],
    )
    let text = rows[0]?.text ?? ''
    for (const [from, to] of parts) {
      const next = text.replace(from, to)
      if (next === text) throw new Error(`${name} has no ${from}: it was changed since, so change the mutant.`)
      text = next
    }
    await database.query(text)
  }

const inDatabase: Record<string, Mutate> = {
  // Behind the function stands a check: both are gone.
  'nothing holds the quantity of a ticket type': both(
    patch('private.move_places', [/and \(places \+ held <= 0[^)]*\)/, '']),
    run('alter table public.ticket_types drop constraint ticket_types_quantity_sold_and_held_fit'),
  ),
  'nothing holds the capacity of an event': patch('private.move_places_of_events', [
    'if v_taken > v_event.capacity then',
    'if false then',
  ]),
  'a place is counted from what was read before the lock': both(
    patch('private.lock_event_capacity', ['perform pg_advisory_xact_lock(2, hashtext(event_id::text))', 'return']),
    patch('private.move_places', [
      'update public.ticket_types t set quantity_sold = t.quantity_sold + places',
      `select t.* into v_ticket_type from public.ticket_types t where t.id = move_places.ticket_type_id;
       perform pg_sleep(0.02);
       update public.ticket_types t set quantity_sold = v_ticket_type.quantity_sold + places`,
    ]),
  ),
  'an order is made without its notification': run(
    'alter table public.attendees disable trigger attendees_350_announce',
  ),
  'a notification is not queued for its endpoints': run(
    'alter table public.notifications disable trigger notifications_500_queue',
  ),
  'row level security is off on orders and attendees': run(
    'alter table public.orders disable row level security; alter table public.attendees disable row level security',
  ),
  'an e-mail is not queued': run(
    'alter table public.attendees disable trigger attendees_340_queue_ticket_email_insert, disable trigger attendees_340_queue_ticket_email_update',
  ),
  'a refund forgets the order': patch('private.tg_refunds__return', [
    'set amount_refunded = o.amount_refunded + new.amount',
    'set amount_refunded = o.amount_refunded',
  ]),
  'a void forgets what was paid': patch('private.tg_payment_voids__take_back', [
    'set amount_paid = o.amount_paid - v_amount, amount_voided = o.amount_voided + v_amount',
    'set amount_voided = o.amount_voided',
  ]),
  'an offer does not hold its place': patch('private.offer_places', [
    'set quantity_held = t.quantity_held + o.places',
    'set quantity_held = t.quantity_held',
  ]),
  'a link outlives the ticket that it was for': patch('private.guest_token', [
    ', attendee.email_lower, attendee.ticket_token',
    '',
  ]),
  'a form is not held against the ticket under its lock': patch('api.act_as_guest', [
    '  v_attendee := private.attendee_of_link(token);',
    '',
  ]),
  'a ticket that is given back stays': patch('api.act_as_guest', ['(v_attendee.id, dry_run,', '(v_attendee.id, true,']),
  'a page sells hidden ticket types without a code': both(
    patch('private.ticket_types_of_page', ["t.visibility = 'public'", 'true']),
    patch('private.assert_page_takes_orders', ['c.unlocks is not true', 'false']),
  ),
  'an erasure misses the notifications': patch(
    'private.erase_notifications',
    ['where n.id = t.id and t.erased <> t.data', 'where false'],
    ['where t.erased <> t.data or', 'where'],
  ),
  'a payment leaves no trail': run('alter table public.payments disable trigger payments_700_audit_insert'),
  'an entry does not show on the ticket': run('alter table public.check_ins disable trigger check_ins_500_admit'),
  'a batch has no savepoint': patch(
    'private.answer_calls',
    ['v_size integer := cardinality(calls)', 'v_size integer := 1'],
    ['while cardinality(v_answers)', 'begin while cardinality(v_answers)'],
    [
      /exception\s+when serialization_failure[\s\S]*end loop;/,
      `end;
      end loop;
      exception when others then
        get stacked diagnostics v_message = message_text, v_detail = pg_exception_detail, v_hint = pg_exception_hint;
        while cardinality(v_answers) < cardinality(calls) loop
          v_answers := v_answers || json_build_object('error', json_build_object(
            'code', sqlstate, 'message', v_message, 'details', v_detail, 'hint', v_hint
          ));
        end loop;
      end;`,
    ],
  ),
  'a key is good for as long as it is cached': patch(
    'private.check_request',
    ['if v_is_usable is not true then', 'if false then'],
    ['if v_scope <> all (v_scopes) then', 'if false then'],
  ),
}

const inSource: Record<string, Mutant> = {
  'a webhook is settled before it is sent': {
    source: [
      [
        'src/courier/webhooks.ts',
        'const result = await sender.send(withExample(pending))',
        `await record({ id, claim, url, milliseconds: 0, response_status: 204, response_body: '' })
         const result = await sender.send(withExample(pending))`,
      ],
    ],
  },
  'an e-mail is settled before it is sent': {
    source: [
      [
        'src/courier/emails/queue.ts',
        'const outcome = await send(pending)',
        `await record({ email_id: pending.id, claim: pending.claim, message_id: 'early' })
         const outcome = await send(pending)`,
      ],
    ],
  },
  'an e-mail of a test organisation is sent': {
    source: [['src/courier/emails/queue.ts', 'if (pending.organisation.is_test)', 'if (false)']],
  },
  'a form of a page is not sent with its key': {
    source: [['src/apps/events/event-page.ts', 'input, textOf(form.key))', 'input, undefined)']],
  },
  'a page gives away what has a price': {
    database: patch('private.assert_page_takes_orders', ['v_guest.price > 0', 'false']),
    source: [
      ['src/apps/events/event-page.ts', '((isPaid || isCoded)', '(isCoded'],
      ['src/apps/events/event-page.ts', 'expected_total: Number(form.total),', ''],
    ],
  },
  'a call whose answer was lost is sent again without its key': {
    source: [
      [
        'src/gateway/data-api.ts',
        'if (error !== null && lostRace(error)) {',
        `if (error !== null && (lostRace(error) || status === 0)) {
           for (const call of [args, ...(args.calls ?? [])]) delete call.idempotency_key`,
      ],
    ],
    aim: { target: 'API–PostgREST', how: 'truncate' },
  },
}

export const mutants: Record<string, Mutant> = {
  ...Object.fromEntries(Object.entries(inDatabase).map(([name, database]) => [name, { database }])),
  // Noticed where an answer is lost and the call repeated.
  'the idempotency record is not kept': {
    database: patch('private.record_outcome', ['if idempotency_key is not null', 'if false']),
    aim: { target: 'API–PostgREST', how: 'truncate' },
  },
  ...inSource,
}
