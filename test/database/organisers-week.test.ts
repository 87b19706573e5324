// An organiser's week in Studio: the edits of docs/organisers.md by hand, in the role that Studio uses, each with what the API shows
// afterwards and what was notified.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { enqueued, listenIn } from '../support/outbox.ts'
import { rest } from '../support/rest.ts'

const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs/organisers.md'), 'utf8')
const tasks = [...page.slice(0, page.indexOf('## ')).matchAll(/^\| ([a-z][^|]*?) \| .* \|$/gm)]
  .map(([, task]) => task as string)
  .filter((task) => task !== 'to')

test('every edit that docs/organisers.md tells of is made by hand, and the API shows what it did', async () => {
  const organisation = await createOrganisation()
  const key = await organisation.key()
  const send = rest(key)
  const news = await listenIn(organisation.id)
  const done: string[] = []

  const sql = async (text: string, values: unknown[] = []) =>
    (await studio.query<Record<string, string>>(text, values)).rows[0] ?? {}
  const read = async (path: string) => (await send('GET', path)).body.data
  /** Makes the edit; then the API shows it, and it was notified of. */
  async function step<T>(
    task: string,
    edit: () => Promise<T>,
    told: string[],
    shows: (made: T) => Promise<void>,
  ): Promise<T> {
    const made = await edit()
    await shows(made)
    expect([task, (await news()).map(({ type }) => type)]).toEqual([task, told])
    done.push(task)
    return made
  }

  const event = await step(
    'add an event',
    () =>
      sql("insert into public.events (organisation_id, name) values ($1, 'Lecture Evening') returning id", [
        organisation.id,
      ]),
    [],
    async ({ id }) => expect(await read(`/events/${id}`)).toMatchObject({ status: 'draft', slug: 'lecture-evening' }),
  )
  const type = await step(
    'offer tickets',
    () =>
      sql(
        "insert into public.ticket_types (event_id, name, price, quantity) values ($1, 'Seat', 4900, 3) returning id",
        [event.id],
      ),
    [],
    async ({ id }) => expect(await read(`/ticket-types/${id}`)).toMatchObject({ price: 4900, quantity_available: 3 }),
  )
  const seat = await sql(
    "insert into public.ticket_types (event_id, name, quantity) values ($1, 'Seat', 0) returning id",
    [event.id],
  )
  const lobby = await sql("insert into public.ticket_types (event_id, name) values ($1, 'Lobby') returning id", [
    event.id,
  ])
  await news()
  await step(
    'give a discount',
    () =>
      sql("insert into public.promo_codes (event_id, code, percent_off) values ($1, 'FRIENDS', 50) returning id", [
        event.id,
      ]),
    [],
    async ({ id }) => expect(await read(`/promo-codes/${id}`)).toMatchObject({ percent_off: 50, times_redeemed: 0 }),
  )
  await step(
    'publish',
    () =>
      sql(
        `update public.events set starts_at = now() + interval '1 day', ends_at = now() + interval '2 days', status = 'published'
         where id = $1 returning id`,
        [event.id],
      ),
    ['event.published'],
    async ({ id }) => expect(await read(`/events/${id}`)).toMatchObject({ status: 'published', phase: 'upcoming' }),
  )
  const register =
    (invoice: boolean, name: string, ticketTypeId = type.id, entryId?: string) =>
    async () => {
      const { order_id: id, attendee_id: attendeeId } = await sql(
        `insert into public.registrations (event_id, ticket_type_id, name, email, payment_method, promo_code, waiting_list_entry_id)
       values ($1, $2, $3, lower($3) || '@example.com', $4, $5, $6) returning order_id, attendee_id`,
        [event.id, ticketTypeId, name, invoice ? 'invoice' : null, invoice ? 'FRIENDS' : null, entryId ?? null],
      )
      const { ticket_code: code } = await sql('select ticket_code from public.attendees where id = $1', [attendeeId])
      return { id: String(id), attendeeId: String(attendeeId), code: String(code) }
    }
  const guest = await step(
    'register a guest',
    register(false, 'Ada'),
    ['order.completed', 'order.created'],
    async ({ id }) =>
      expect(await read(`/orders/${id}`)).toMatchObject({
        status: 'completed',
        total: 0,
        attendees: [{ name: 'Ada' }],
      }),
  )
  await step(
    'let unpaid orders expire',
    () => sql('update public.events set payment_due_days = 14 where id = $1', [event.id]),
    ['event.updated'],
    async () => expect(await read(`/events/${event.id}`)).toMatchObject({ payment_due_days: 14 }),
  )
  const buyer = await step('sell on invoice', register(true, 'Grace'), ['order.created'], async ({ id }) =>
    expect(await read(`/orders/${id}`)).toMatchObject({ status: 'pending', total: 2450, amount_due: 2450 }),
  )
  const pair = await step(
    'register a group, or with another buyer',
    async () => {
      const { id } = await sql(
        "insert into public.orders (event_id, name, email) values ($1, 'Office', 'office@example.com') returning id",
        [event.id],
      )
      await sql(
        `insert into public.attendees (order_id, ticket_type_id, name, email)
         values ($1, $2, 'Ida', 'i@example.com'), ($1, $2, 'Joan', 'j@example.com')`,
        [id, lobby.id],
      )
      return String(id)
    },
    ['order.completed', 'order.created'],
    async (id) => expect(await read(`/orders/${id}`)).toMatchObject({ name: 'Office', attendees: [{}, {}] }),
  )
  await sql("update public.orders set status = 'cancelled' where id = $1", [pair])
  await news()
  const entryOf = async ({ id }: Record<string, string>) => read(`/waiting-list-entries/${id}`)
  const wait = (name: string) => () =>
    sql(
      'insert into public.waiting_list_entries (event_id, ticket_type_id, name, email) values ($1, $2, $3, $4) returning id',
      [event.id, seat.id, name, `${name}@example.com`],
    )
  const ida = await step(
    'put somebody on the waiting list',
    wait('Ida'),
    ['waiting_list_entry.created'],
    async (entry) => expect(await entryOf(entry)).toMatchObject({ status: 'waiting', position: 1 }),
  )
  const bea = await wait('Bea')()
  await sql('update public.ticket_types set quantity = 1 where id = $1', [seat.id])
  await news()
  await step(
    'give somebody more time for an offer',
    () =>
      sql("update public.waiting_list_entries set offer_expires_at = '2040-01-01' where id = $1 returning id", [
        ida.id,
      ]),
    [],
    async (entry) => expect(await entryOf(entry)).toMatchObject({ offer_expires_at: '2040-01-01T00:00:00.000Z' }),
  )
  await step(
    'accept an offer for somebody',
    async () => {
      await sql('select public.accept_offer($1)', [ida.id])
      return ida
    },
    ['order.completed', 'order.created', 'waiting_list_entry.accepted'],
    async (entry) => expect(await entryOf(entry)).toMatchObject({ status: 'accepted' }),
  )
  await step(
    'take somebody off the waiting list, or decline an offer for them',
    () => sql("update public.waiting_list_entries set status = 'cancelled' where id = $1 returning id", [bea.id]),
    ['waiting_list_entry.cancelled'],
    async (entry) => expect(await entryOf(entry)).toMatchObject({ status: 'cancelled' }),
  )
  await step(
    'give an order more time, or less',
    () => sql("update public.orders set payment_due_at = '2041-05-01T00:00:00Z' where id = $1", [buyer.id]),
    [],
    async () => expect(await read(`/orders/${buyer.id}`)).toMatchObject({ payment_due_at: '2041-05-01T00:00:00.000Z' }),
  )
  await step(
    'remind a buyer of a payment',
    () => sql('select public.send_payment_reminder($1) as mailed', [buyer.id]),
    [],
    async ({ mailed }) => {
      const order = await read(`/orders/${buyer.id}`)
      expect(order).toMatchObject({ email: mailed, payment_reminded_at: expect.any(String) })
    },
  )
  await step(
    'remind everybody who has to pay',
    () =>
      sql(
        'select r.result from public.send_payment_reminders($1) r join public.orders o using (reference) where o.id = $2',
        [event.id, buyer.id],
      ),
    [],
    async ({ result }) => expect(result).toBe('reminded_recently'),
  )
  await sql('update public.orders set payment_due_at = now() where id = $1', [buyer.id])
  await sql('select private.expire_orders($1)', [[buyer.id]])
  await news()
  await step(
    'give an order that has expired another chance',
    () => sql("select public.reopen_order($1, '2041-05-01 18:00 Europe/Berlin', 'mailed') as tickets", [buyer.id]),
    ['attendee.updated', 'order.reopened'],
    async ({ tickets }) => {
      const order = await read(`/orders/${buyer.id}`)
      expect([tickets, order.status, order.payment_due_at]).toEqual([1, 'pending', '2041-05-01T16:00:00.000Z'])
    },
  )
  await step(
    'record a payment',
    () => sql('insert into public.payments (order_id, amount) values ($1, 2450) returning id', [buyer.id]),
    ['attendee.updated', 'order.completed', 'payment.recorded'],
    async () =>
      expect(await read(`/orders/${buyer.id}`)).toMatchObject({ status: 'completed', payment_status: 'paid' }),
  )
  await step(
    'take back a payment recorded by mistake',
    () =>
      sql(
        'insert into public.payment_voids (payment_id) select id from public.payments where order_id = $1 returning id',
        [buyer.id],
      ),
    ['payment.voided'],
    async () =>
      expect(await read(`/orders/${buyer.id}`)).toMatchObject({
        status: 'completed',
        payment_status: 'awaiting_payment',
        amount_due: 2450,
      }),
  )
  await sql('insert into public.payments (order_id, amount) values ($1, 2450)', [buyer.id])
  await news()
  await step(
    'transfer a ticket',
    () =>
      sql("update public.attendees set name = 'Joan', ticket_code = null where id = $1 returning ticket_code", [
        guest.attendeeId,
      ]),
    ['attendee.updated'],
    async ({ ticket_code }) => {
      expect(ticket_code).not.toBe(guest.code)
      expect(await read(`/attendees/${guest.attendeeId}`)).toMatchObject({ name: 'Joan', ticket_code })
    },
  )
  const { ticket_code: code } = await sql('select ticket_code from public.attendees where id = $1', [guest.attendeeId])
  await step(
    'set up a gate, a day or a workshop',
    () => sql("insert into public.check_in_points (event_id, name) values ($1, 'Gate') returning id", [event.id]),
    [],
    async ({ id }) => expect(await read(`/check-in-points/${id}`)).toMatchObject({ name: 'Gate', admission: 'once' }),
  )
  const scan = await step(
    'check somebody in by hand',
    () => sql('insert into public.check_ins (event_id, code) values ($1, $2) returning id, result', [event.id, code]),
    ['attendee.checked_in'],
    async ({ result }) => {
      expect(result).toBe('accepted')
      expect((await read(`/events/${event.id}/summary`)).tickets).toMatchObject({ sold: 3, checked_in: 1 })
    },
  )
  await step(
    'take a check-in back',
    () => sql('update public.check_ins set undone_at = now() where id = $1', [scan.id]),
    ['attendee.check_in_undone'],
    async () => expect(await read(`/attendees/${guest.attendeeId}`)).toMatchObject({ checked_in_at: null }),
  )
  await step(
    'cancel a ticket',
    () => sql("update public.attendees set status = 'cancelled' where id = $1", [guest.attendeeId]),
    ['attendee.cancelled', 'order.cancelled'],
    async () => expect(await read(`/ticket-types/${type.id}`)).toMatchObject({ quantity_available: 2 }),
  )
  await step(
    'cancel an order',
    () => sql("update public.orders set status = 'cancelled' where id = $1", [buyer.id]),
    ['attendee.cancelled', 'order.cancelled'],
    async () =>
      expect(await read(`/orders/${buyer.id}`)).toMatchObject({
        payment_status: 'refund_due',
        amount_refundable: 2450,
      }),
  )
  await step(
    'keep a fee of what was cancelled',
    () => sql('update public.orders set amount_retained = 450 where id = $1', [buyer.id]),
    [],
    async () =>
      expect(await read(`/orders/${buyer.id}`)).toMatchObject({ amount_retained: 450, amount_refundable: 2000 }),
  )
  await step(
    'tell guests and buyer what was cancelled',
    () => sql('select public.notify_cancelled($1) as emails', [buyer.id]),
    [],
    async ({ emails }) => expect(emails).toBe(1),
  )
  await step(
    'record a refund',
    () => sql('insert into public.refunds (order_id, amount) values ($1, 2000)', [buyer.id]),
    ['refund.recorded'],
    async () =>
      expect(await read(`/orders/${buyer.id}`)).toMatchObject({ payment_status: 'refunded', amount_refundable: 0 }),
  )
  const endpoint = await step(
    'tell another system',
    () =>
      sql(
        "insert into public.webhook_endpoints (organisation_id, url, types) values ($1, 'https://hooks.example.com', '{order.created}') returning id",
        [organisation.id],
      ),
    [],
    async ({ id }) => {
      expect(await read(`/webhook-endpoints/${id}`)).toMatchObject({ status: 'enabled', event_ids: [] })
      const { shown } = await sql('select public.rotate_webhook_secret($1) as shown', [id])
      expect(shown).toMatchObject({ webhook_endpoint_id: id, secret: expect.stringMatching(/^whsec_/) })
    },
  )
  const another = await register(false, 'Hedy')()
  await news()
  await enqueued(organisation.id)
  await step(
    'see what happened',
    () => studio.query('select type, data from public.notifications where organisation_id = $1', [organisation.id]),
    [],
    async ({ rowCount }) => expect(rowCount).toBeGreaterThan(15),
  )
  await step(
    'see who changed what',
    () =>
      studio.query('select object_type, changes from public.audit_entries where organisation_id = $1', [
        organisation.id,
      ]),
    [],
    async ({ rows }) =>
      expect(rows.map(({ object_type }) => object_type)).toEqual(expect.arrayContaining(['refund', 'payment_void'])),
  )
  await step(
    'have answers to tickets come to you',
    () =>
      sql(
        "update public.organisations set reply_to_email = 'team@example.com' where id = $1 returning reply_to_email",
        [organisation.id],
      ),
    [],
    async ({ reply_to_email }) => expect(reply_to_email).toBe('team@example.com'),
  )
  const setting = (task: string, column: string, given: string, kept = given) =>
    step(
      task,
      () =>
        sql(`update public.organisations set ${column} = $2 where id = $1 returning ${column} as value`, [
          organisation.id,
          given,
        ]),
      [],
      async ({ value }) => expect(value).toBe(kept),
    )
  await setting('have e-mails in your colour', 'accent_colour', '#8A1C3B', '#8a1c3b')
  await setting('have your logo in e-mails and on ticket pages', 'logo_url', 'https://example.com/logo.png')
  await setting(
    'tell buyers how to pay an invoice',
    'payment_instructions',
    'DE75 5121 0800 1245 1261 99\nBIC SOGEDEFF',
  )
  await step(
    'write to guests in their language',
    () => sql("update public.events set locale = 'de' where id = $1", [event.id]),
    ['event.updated'],
    async () => expect(await read(`/events/${event.id}`)).toMatchObject({ locale: 'de' }),
  )
  await step(
    'tell attendees what changed',
    async () => {
      await sql("update public.events set venue_city = 'Köln' where id = $1", [event.id])
      return sql('select public.notify_attendees($1) as emails', [event.id])
    },
    ['event.updated'],
    async ({ emails }) => expect(emails).toBe(2),
  )
  await step(
    'send a ticket once more',
    () => sql("update public.attendees set ticket_email_status = 'queued' where id = $1", [another.attendeeId]),
    [],
    async () =>
      expect(await read(`/attendees/${another.attendeeId}`)).toMatchObject({ ticket_email: { status: 'queued' } }),
  )
  const confirmation = await sql(
    `update public.emails set status = 'failed', next_attempt_at = null, attempts = 8
     where id = (select id from public.emails where organisation_id = $1 and kind = 'order_confirmation' limit 1) returning id`,
    [organisation.id],
  )
  await news()
  await step(
    'send any other e-mail once more',
    () =>
      sql(
        "update public.emails set status = 'queued' where id = $1 returning attempts, next_attempt_at is not null as due",
        [confirmation.id],
      ),
    [],
    async (email) => expect(email).toEqual({ attempts: 0, due: true }),
  )
  await step(
    'move a ticket to another type',
    () => sql('update public.attendees set ticket_type_id = $2 where id = $1', [another.attendeeId, lobby.id]),
    ['attendee.updated'],
    async () =>
      expect(await read(`/attendees/${another.attendeeId}`)).toMatchObject({
        ticket_type: { name: 'Lobby' },
        price: 0,
      }),
  )
  await step(
    'send a webhook once more',
    () =>
      sql(
        "update public.webhook_deliveries set status = 'pending' where webhook_endpoint_id = $1 returning attempts::text",
        [endpoint.id],
      ),
    [],
    async () =>
      expect(await read(`/webhook-deliveries?webhook_endpoint_id=${endpoint.id}`)).toMatchObject([
        { status: 'pending', attempts: 0 },
      ]),
  )
  const person = 'j@example.com'
  await step(
    'see what there is of a person',
    () =>
      studio.query<{ people: object[] }>("select public.find_person($1, $2) -> 'people' as people", [
        person,
        organisation.id,
      ]),
    [],
    async ({ rows }) => expect(rows).toMatchObject([{ people: [{ name: 'Joan', attendees: 1, orders: 0 }] }]),
  )
  await step(
    'erase a person',
    () => sql('select public.erase_person($1, organisation_id => $2) as receipt', [person, organisation.id]),
    ['attendee.erased'],
    async () => expect(await read(`/people?email=${person}`)).toMatchObject({ people: [] }),
  )
  await step(
    'erase the person of one ticket',
    () => sql('select public.erase_attendee($1) as receipt', [another.attendeeId]),
    ['attendee.erased'],
    async () =>
      expect(await read(`/orders/${another.id}`)).toMatchObject({ name: 'Erased', attendees: [{ name: 'Erased' }] }),
  )
  await step(
    'keep an e-mail that waits from being sent',
    () =>
      sql(
        "update public.emails set status = 'cancelled' where id = (select max(id::text)::uuid from public.emails where organisation_id = $1 and status = 'queued') returning id",
        [organisation.id],
      ),
    [],
    async ({ id }) =>
      expect((await read('/emails?status=cancelled')).map((email: { id: string }) => email.id)).toContain(id),
  )
  await step(
    'have the same event again',
    () => sql("select public.copy_event($1, '2029-05-02 09:00 Europe/Berlin', 'Lecture Morning') as id", [event.id]),
    [],
    async ({ id }) => {
      expect(await read(`/events/${id}`)).toMatchObject({ name: 'Lecture Morning', status: 'draft' })
      expect(await read(`/events/${id}/ticket-types`)).toMatchObject([
        { name: 'Seat' },
        { name: 'Seat' },
        { name: 'Lobby' },
      ])
    },
  )
  await step(
    'move an event to another day or hour',
    () => sql("select public.move_event($1, '2041-06-02 09:00 Europe/Berlin') as start", [event.id]),
    ['event.updated'],
    async ({ start }) => {
      expect(start).toBe('2041-06-02 07:00 UTC')
      expect(await read(`/events/${event.id}`)).toMatchObject({ starts_at: '2041-06-02T07:00:00.000Z' })
    },
  )
  await step(
    'cancel an event',
    () => sql("update public.events set status = 'cancelled' where id = $1", [event.id]),
    ['attendee.cancelled', 'attendee.cancelled', 'event.cancelled', 'order.cancelled', 'order.cancelled'],
    async () => expect(await read(`/events/${event.id}`)).toMatchObject({ status: 'cancelled' }),
  )
  await step(
    'stop a key',
    () => sql('update public.api_keys set revoked_at = now() where organisation_id = $1', [organisation.id]),
    [],
    async () => expect((await send('GET', '/me')).body.error.code).toBe('api_key_revoked'),
  )
  expect(done.toSorted()).toEqual(tasks.toSorted())
})
