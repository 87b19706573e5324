// What organisers do with a two-day conference, in their own words and in the order in which it comes, each with the statement that
// docs/guides/studio.md gives for it, and with all that follows. errands.test.ts runs them.
//
// In texts, ORG is the organisation, and {table.column name} what a person copies from the row of that name: {orders.reference Ada}.

import { expect } from 'vitest'

export type Errand = {
  said: string
  /** Signed in, over the Data API. Else in Studio: its SQL editor, or its grid. */
  by?: 'owner' | 'door'
  /** What happens by itself before. */
  meanwhile?: string | 'webhooks are sent'
  sql?: string
  add?: [table: string, ...rows: object[]]
  /** The row of a name, and what is typed into its cells. */
  edit?: [table: string, name: string, changes: object]
  call?: [name: string, args: object]
  /** What is answered: rows, or what the function returns. */
  answer?: unknown
  /** A look at what it did. */
  shows?: [sql: string, ...rows: unknown[]]
  /** What other systems are told of, and which e-mails are queued. */
  told?: string[]
  mailed?: string[]
}

const event_id = '{events.id Data Days}'

export const errands: Errand[] = [
  {
    said: 'Data Days are in Cologne again, two days in May. Invoices are due after two weeks.',
    add: [
      'events',
      {
        organisation_id: 'ORG',
        name: 'Data Days',
        slug: 'data-days',
        starts_at: '2040-05-02 09:00 Europe/Berlin',
        ends_at: '2040-05-03 17:00 Europe/Berlin',
        timezone: 'Europe/Berlin',
        locale: 'de',
        venue_name: 'Gürzenich',
        venue_city: 'Köln',
        venue_country: 'DE',
        payment_due_days: 14,
      },
    ],
    answer: [{ name: 'Data Days', status: 'draft' }],
  },
  {
    said: 'Early birds pay 390 euros until the end of March, a hundred of them. Then it is 490.',
    add: [
      'ticket_types',
      { event_id, name: 'Early bird', price: 39000, quantity: 100, sales_end_at: '2040-04-01 00:00 Europe/Berlin' },
      { event_id, name: 'Regular', price: 49000, sales_start_at: '2040-04-01 00:00 Europe/Berlin' },
    ],
    shows: [
      "select ticket_type, price, available::text from event_sales where event_id = the_event('data-days') order by price",
      { ticket_type: 'Early bird', price: 'EUR 390.00', available: '100' },
      { ticket_type: 'Regular', price: 'EUR 490.00', available: null },
    ],
  },
  {
    said: 'The workshop on maps has two places, and is for free.',
    add: ['ticket_types', { event_id, name: 'Maps', quantity: 2 }],
    answer: [{ name: 'Maps', price: '0', quantity: 2, quantity_sold: 0 }],
  },
  {
    said: 'The association gets 20 per cent off with FRIENDS, fifty tickets at most.',
    add: ['promo_codes', { event_id, code: 'FRIENDS', percent_off: 20, max_redemptions: 50 }],
    answer: [{ code: 'FRIENDS', times_redeemed: 0 }],
  },
  {
    said: 'We can be seen now.',
    edit: ['events', 'Data Days', { status: 'published' }],
    answer: [{ status: 'published' }],
    told: ['event.published'],
  },
  {
    said: 'Grace helps us now. She may do everything but money and keys, and signs in with her telephone.',
    add: ['organisation_members', { organisation_id: 'ORG', user_id: 'GRACE', role: 'manager', name: 'Grace Hopper' }],
    shows: [
      "select name, role from members where organisation_id = 'ORG' order by role, name",
      { name: 'Dorothy Vaughan', role: 'owner' },
      { name: 'Grace Hopper', role: 'manager' },
      { name: 'Hedy Lamarr', role: 'door' },
    ],
  },
  {
    said: 'Ada comes, and her company pays by invoice.',
    sql: `insert into registrations (event_id, ticket_type_id, name, email, company, payment_method)
          values (the_event('data-days'), the_ticket_type('data-days', 'Early bird'), 'Ada Lovelase', 'ada@example.con', 'Engines', 'invoice')
          returning name, status`,
    answer: [{ name: 'Ada Lovelase', status: 'awaiting_payment' }],
    told: ['order.created'],
    mailed: ['order_confirmation'],
  },
  {
    said: 'It is Lovelace, and .com.',
    edit: ['attendees', 'Ada Lovelase', { name: 'Ada Lovelace', email: 'ada@example.com' }],
    answer: [{ name: 'Ada Lovelace', email: expect.stringMatching(/^ada@/) }],
    told: ['attendee.updated'],
  },
  {
    said: 'The invoice goes to Analytical Engines, not to Engines, and to her new address.',
    by: 'owner',
    edit: ['orders', 'Ada Lovelase', { name: 'Ada Lovelace', email: 'ada@example.com', company: 'Analytical Engines' }],
    answer: [{ company: 'Analytical Engines' }],
  },
  {
    said: 'Send her the confirmation once more.',
    sql: `update emails set status = 'queued' where kind = 'order_confirmation' and order_id = the_order('{orders.reference Ada Lovelace}')
          returning status`,
    answer: [{ status: 'queued' }],
    mailed: ['order_confirmation'],
  },
  {
    said: 'Two hundred of it are here.',
    add: ['payments', { order_id: '{orders.id Ada Lovelace}', amount: 20000, external_reference: 'statement 12' }],
    shows: [
      "select paid, due from unpaid_orders where reference = '{orders.reference Ada Lovelace}'",
      { paid: 'EUR 200.00', due: 'EUR 190.00' },
    ],
    told: ['payment.recorded'],
    mailed: ['payment_received'],
  },
  {
    said: 'And the rest.',
    sql: `insert into payments (order_id, amount) values (the_order('{orders.reference Ada Lovelace}'), 19000) returning amount, currency`,
    answer: [{ amount: '19000', currency: 'EUR' }],
    shows: [
      "select status, payment_status from orders where id = the_order('{orders.reference Ada Lovelace}')",
      { status: 'completed', payment_status: 'paid' },
    ],
    told: ['attendee.updated', 'order.completed', 'payment.recorded'],
    mailed: ['payment_received', 'ticket'],
  },
  {
    said: 'No, that was for somebody else. Take it back.',
    sql: `insert into payment_voids (payment_id, reason) values (the_payment('{orders.reference Ada Lovelace}', 19000), 'Of another')
          returning reason`,
    answer: [{ reason: 'Of another' }],
    told: ['payment.voided'],
    mailed: ['payment_voided'],
  },
  {
    said: 'Margaret speaks: she comes for free.',
    sql: `insert into registrations (event_id, ticket_type_id, name, email)
          values (the_event('data-days'), the_ticket_type('data-days', 'Early bird'), 'Margaret Hamilton', 'margaret@example.com')
          returning status`,
    answer: [{ status: 'active' }],
    told: ['order.completed', 'order.created'],
    mailed: ['ticket'],
  },
  {
    said: 'She did not get her ticket.',
    sql: `update attendees set ticket_email_status = 'queued' where id = the_attendee('margaret@example.com', 'data-days')
          returning name, ticket_email_status`,
    answer: [{ name: 'Margaret Hamilton', ticket_email_status: 'queued' }],
    mailed: ['ticket'],
  },
  {
    said: 'Margaret is ill, Joan comes in her place. The old ticket must not work.',
    edit: [
      'attendees',
      'Margaret Hamilton',
      { name: 'Joan Clarke', email: 'joan@example.com', ticket_code: null, ticket_email_status: 'queued' },
    ],
    answer: [{ name: 'Joan Clarke', status: 'active' }],
    told: ['attendee.updated'],
    mailed: ['ticket'],
  },
  {
    said: 'Linus has the code of the association.',
    sql: `insert into registrations (event_id, ticket_type_id, name, email, payment_method, promo_code)
          values (the_event('data-days'), the_ticket_type('data-days', 'Early bird'), 'Linus', 'linus@example.com', 'invoice', 'friends')
          returning promo_code`,
    shows: ["select total from orders where id = the_order('{orders.reference Linus}')", { total: '31200' }],
    told: ['order.created'],
    mailed: ['order_confirmation'],
  },
  {
    said: 'The office of Acme orders for two.',
    add: ['orders', { event_id, name: 'Acme', email: 'office@example.com', payment_method: 'invoice' }],
    answer: [{ status: 'pending', payment_status: 'awaiting_payment' }],
    mailed: ['order_confirmation'],
  },
  {
    said: 'They are Katherine and Annie.',
    add: [
      'attendees',
      ...['Katherine', 'Annie'].map((name) => ({
        order_id: '{orders.id Acme}',
        ticket_type_id: '{ticket_types.id Early bird}',
        name,
        email: `${name.toLowerCase()}@example.com`,
      })),
    ],
    shows: [
      "select total, payment_status from orders where id = the_order('{orders.reference Acme}')",
      { total: '78000', payment_status: 'awaiting_payment' },
    ],
    told: ['order.created'],
  },
  {
    said: 'Linus asks for his ticket. Remind him that it is to be paid.',
    sql: "select send_payment_reminder(the_order('{orders.reference Linus}')) as mailed",
    answer: [{ mailed: expect.stringMatching(/^linus@/) }],
    mailed: ['payment_reminder'],
  },
  {
    said: 'Remind everybody else who has to pay, too.',
    sql: "select name, result from send_payment_reminders(the_event('data-days'))",
    answer: [
      { name: 'Ada Lovelace', result: 'reminded' },
      { name: 'Acme', result: 'reminded' },
      { name: 'Linus', result: 'reminded_recently' },
    ],
    mailed: ['payment_reminder', 'payment_reminder'],
  },
  {
    said: 'Linus was late, and still wants to come.',
    meanwhile: `update orders set payment_due_at = now() where id = the_order('{orders.reference Linus}');
                select private.expire_orders(array[the_order('{orders.reference Linus}')])`,
    sql: "select reopen_order(the_order('{orders.reference Linus}'), '2039-05-02 18:00 Europe/Berlin', 'mailed') as tickets",
    answer: [{ tickets: 1 }],
    told: ['attendee.updated', 'order.reopened'],
    mailed: ['order_confirmation'],
  },
  {
    said: 'Two more for the workshop, from a list of the partner. No e-mails.',
    sql: `insert into registrations (event_id, ticket_type_id, name, email, send_email, external_id)
          select the_event('data-days'), the_ticket_type('data-days', 'Maps'), g.name, g.email, false, g.external_id
          from json_populate_recordset(null::registrations, '[
            {"name": "Mary", "email": "mary@example.com", "external_id": "partner-1"},
            {"name": "Dorothy", "email": "dorothy@example.com", "external_id": "partner-2"}
          ]') g
          returning name, status`,
    answer: [
      { name: 'Mary', status: 'active' },
      { name: 'Dorothy', status: 'active' },
    ],
    told: ['order.completed', 'order.completed', 'order.created', 'order.created', 'ticket_type.sold_out'],
  },
  {
    said: 'Ida and Bea would have liked to.',
    add: [
      'waiting_list_entries',
      ...['Ida', 'Bea'].map((name) => ({
        event_id,
        ticket_type_id: '{ticket_types.id Maps}',
        name,
        email: `${name.toLowerCase()}@example.com`,
      })),
    ],
    answer: [{ status: 'waiting' }, { status: 'waiting' }],
    told: ['waiting_list_entry.created', 'waiting_list_entry.created'],
  },
  {
    said: 'The room takes four.',
    edit: ['ticket_types', 'Maps', { quantity: 4 }],
    shows: [
      "select quantity, quantity_held from ticket_types where id = the_ticket_type('data-days', 'Maps')",
      { quantity: 4, quantity_held: 2 },
    ],
    told: ['waiting_list_entry.offered', 'waiting_list_entry.offered'],
    mailed: ['waiting_list_offer', 'waiting_list_offer'],
  },
  {
    said: 'Ida takes it.',
    sql: "select accept_offer(the_waiting_list_entry('ida@example.com', 'data-days')) is not null as accepted",
    answer: [{ accepted: true }],
    told: ['order.completed', 'order.created', 'waiting_list_entry.accepted'],
    mailed: ['ticket'],
  },
  {
    said: 'Bea does not want it any more.',
    sql: `update waiting_list_entries set status = 'cancelled' where id = the_waiting_list_entry('bea@example.com')
          returning name, status`,
    answer: [{ name: 'Bea', status: 'cancelled' }],
    told: ['waiting_list_entry.cancelled'],
  },
  {
    said: 'We start a week later, in another hall.',
    by: 'owner',
    edit: [
      'events',
      'Data Days',
      { starts_at: '2040-05-09T07:00:00Z', ends_at: '2040-05-10T15:00:00Z', venue_name: 'Tanzbrunnen' },
    ],
    answer: [{ venue_name: 'Tanzbrunnen' }],
    told: ['event.updated'],
  },
  {
    said: 'Tell everybody.',
    by: 'owner',
    call: ['notify_attendees', { event_id, notify: 'everybody' }],
    answer: 8,
    mailed: Array(8).fill('event_changed'),
  },
  {
    said: 'The CRM is to know who registers.',
    add: [
      'webhook_endpoints',
      {
        organisation_id: 'ORG',
        url: 'https://crm.example.com/usher',
        types: ['order.completed', 'attendee.cancelled'],
      },
    ],
    answer: [{ status: 'enabled' }],
  },
  {
    said: 'They ask for a secret.',
    sql: "select rotate_webhook_secret(the_webhook_endpoint('https://crm.example.com/usher')) ->> 'secret' ~ '^whsec_' as shown",
    answer: [{ shown: true }],
  },
  {
    said: 'Scan at the main gate, once a day.',
    add: ['check_in_points', { event_id, name: 'Main gate', admission: 'once_per_day' }],
    answer: [{ name: 'Main gate', status: 'active' }],
  },
  {
    said: 'Joan is here, and her telephone is empty.',
    by: 'door',
    add: [
      'check_ins',
      {
        event_id,
        attendee_id: '{attendees.id Joan Clarke}',
        check_in_point_id: '{check_in_points.id Main gate}',
      },
    ],
    answer: [{ result: 'accepted' }],
    told: ['attendee.checked_in'],
  },
  {
    said: 'How many came, and when?',
    sql: "select check_in_point, arrived from arrivals where event_id = the_event('data-days')",
    answer: [{ check_in_point: 'Main gate', arrived: '1' }],
  },
  {
    said: 'That was another Joan.',
    sql: `update check_ins set undone_at = now()
          where attendee_id = the_attendee('joan@example.com', 'data-days') and result = 'accepted' returning result`,
    shows: ["select arrived from arrivals where event_id = the_event('data-days')"],
    told: ['attendee.check_in_undone'],
  },
  {
    said: 'Annie does not come. Her place is free again.',
    edit: ['attendees', 'Annie', { status: 'cancelled' }],
    shows: ["select total from orders where id = the_order('{orders.reference Acme}')", { total: '39000' }],
    told: ['attendee.cancelled'],
  },
  {
    said: 'The CRM was away, send that again.',
    meanwhile: 'webhooks are sent',
    sql: `update webhook_deliveries set status = 'pending'
          where webhook_endpoint_id = the_webhook_endpoint('https://crm.example.com/usher') returning type, status`,
    answer: [{ type: 'attendee.cancelled', status: 'pending' }],
  },
  {
    said: 'It is switched off for good.',
    edit: ['webhook_endpoints', 'https://crm.example.com/usher', { status: 'disabled' }],
    answer: [{ status: 'disabled' }],
  },
  {
    said: 'Ada cancels all of it, and gets her money back.',
    sql: `update orders set status = 'cancelled' where id = the_order('{orders.reference Ada Lovelace}') returning payment_status`,
    answer: [{ payment_status: 'refund_due' }],
    told: ['attendee.cancelled', 'order.cancelled'],
  },
  {
    said: 'She is to have it in writing.',
    sql: `select notify_cancelled(the_order('{orders.reference Ada Lovelace}')) as mails`,
    answer: [{ mails: 1 }],
    mailed: ['ticket_cancelled'],
  },
  {
    said: 'We have sent it back.',
    sql: `insert into refunds (order_id, amount, external_reference) values (the_order('{orders.reference Ada Lovelace}'), 20000, 'note 7')
          returning amount`,
    shows: [
      "select payment_status from orders where id = the_order('{orders.reference Ada Lovelace}')",
      { payment_status: 'refunded' },
    ],
    told: ['refund.recorded'],
  },
  {
    said: 'And wants us to forget her.',
    sql: "select erase_person('ada@example.com', organisation_id => 'ORG') ->> 'attendees' as tickets",
    answer: [{ tickets: '1' }],
    told: ['attendee.erased'],
  },
  {
    said: 'The city closes the halls: it is off, for all.',
    edit: ['events', 'Data Days', { status: 'cancelled' }],
    answer: [{ status: 'cancelled' }],
    told: [...Array(6).fill('attendee.cancelled'), 'event.cancelled', ...Array(6).fill('order.cancelled')],
  },
  {
    said: 'Write to them.',
    sql: "select notify_attendees(the_event('data-days'), 'everybody') as mails",
    // Who ordered for others, and comes to nothing themselves, is told of the order.
    answer: [{ mails: 7 }],
    mailed: [...Array(6).fill('event_cancelled'), 'order_cancelled'],
  },
]
