// Erasing a person while others write what is about them: what was in flight is erased, or it is a new person as a whole.

import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { expect, test } from 'vitest'
import { row, studio } from '../../support/database.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { addEndpoint, enqueued } from '../../support/outbox.ts'
import { rest } from '../../support/rest.ts'
import { tracesFromNow } from '../../support/traces.ts'
import { meanwhile } from '../meanwhile.ts'

async function arrange(payment: object = {}) {
  const tracesOf = await tracesFromNow()
  const mark = randomUUID().slice(0, 8)
  const jane = { name: `Jane ${mark}`, email: `jane-${mark}@example.com` }
  const organisation = await createOrganisation()
  const event = await organisation.event()
  await addEndpoint(organisation.id)
  const send = rest(await organisation.key())
  const ticketTypeId = await event.ticketType({ price: 4900 })
  const register = () =>
    send(
      'POST',
      `/events/${event.id}/registrations`,
      { ticket_type_id: ticketTypeId, ...jane, ...payment },
      { 'Idempotency-Key': randomUUID() },
    )
  const { body } = await register()
  const erase = () => send('POST', '/people/erase', { email: jane.email })
  const [attendee] = body.data.attendees
  await enqueued(organisation.id)
  return { mark, jane, organisation, event, send, register, erase, orderId: body.data.id as string, attendee, tracesOf }
}

/** Does `work` in a transaction that is committed once the erasure waits for it. */
const whileInFlight = async (
  erase: () => Promise<{ status: number }>,
  work: (client: pg.PoolClient) => Promise<unknown>,
) => expect((await meanwhile(work, erase)).status).toBe(200)

test('an e-mail that was claimed before or during the erasure keeps neither address nor error when it is settled', async () => {
  for (const isOpen of [false, true]) {
    const { mark, jane, erase, attendee, orderId, tracesOf } = await arrange({ payment_method: 'invoice' })
    const claim = async (client: Pick<pg.PoolClient, 'query'>) => {
      const { rows } = await client.query(
        `update public.emails
         set claim = gen_random_uuid(), claimed_until = now() + interval '1 minute', attempts = 1, sent_to = $3
         where attendee_id = $1 or order_id = $2 returning id, claim`,
        [attendee.id, orderId, jane.email],
      )
      return rows as { id: string; claim: string }[]
    }
    let claimed: { id: string; claim: string }[] = []
    if (isOpen) {
      await whileInFlight(erase, async (client) => {
        claimed = await claim(client)
      })
    } else {
      claimed = await claim(studio)
      await erase()
    }
    expect(claimed).not.toEqual([])
    const error = `550 ${jane.email} unknown`
    const results = claimed.map(({ id, claim }) => ({ email_id: id, claim, error, permanent: true }))
    await studio.query('select api.settle_emails($1)', [JSON.stringify(results)])
    for (const { id } of claimed) {
      await studio.query("select api.record_email_event('m', 'bounced', $2, $1, 1)", [id, error])
    }
    expect(await tracesOf(mark)).toEqual([])
  }
})

test('a report on an e-mail to the buyer that comes during the erasure leaves no address', async () => {
  const { mark, jane, orderId, tracesOf } = await arrange({ payment_method: 'invoice' })
  const { id } = await row<{ id: string }>(
    `update public.emails set status = 'sent', next_attempt_at = null, sent_at = now(), sent_to = $2, attempts = 1
     where order_id = $1 returning id`,
    [orderId, jane.email],
  )
  const report = "select api.record_email_event('m', 'bounced', $2, $1, 1)"
  // Reported while the erasure is not yet committed, and so waits for it.
  await meanwhile(
    (client) =>
      client.query(
        'select public.erase_person($1, organisation_id => o.organisation_id) from public.orders o where o.id = $2',
        [jane.email, orderId],
      ),
    () => studio.query(report, [id, `550 ${jane.email} unknown`]),
  )
  expect(await row('select status from public.emails where id = $1', [id])).toEqual({ status: 'bounced' })
  expect(await tracesOf(mark)).toEqual([])
})

test('a webhook that is claimed during the erasure is sent once more, and its response is not kept', async () => {
  const { mark, jane, organisation, erase, tracesOf } = await arrange()
  let claimed: { id: string; claim: string }[] = []
  await whileInFlight(erase, async (client) => {
    const { rows } = await client.query(
      `update public.webhook_deliveries set claim = gen_random_uuid(), claimed_until = now() + interval '1 minute', attempts = 1
       where organisation_id = $1 returning id, claim`,
      [organisation.id],
    )
    claimed = rows
  })
  const response = { response_status: 200, response_body: `Thank you, ${jane.name}`, milliseconds: 5 }
  await studio.query('select api.settle_webhooks($1)', [
    JSON.stringify(claimed.map(({ id, claim }) => ({ id, claim, ...response }))),
  ])
  expect(await tracesOf(mark)).toEqual([])
  const { rows } = await studio.query('select distinct status from public.webhook_deliveries where id = any ($1)', [
    claimed.map(({ id }) => id),
  ])
  expect(rows).toEqual([{ status: 'pending' }])
})

test('a scan and a payment that commit while the erasure waits for them are erased with it', async () => {
  const { mark, event, erase, attendee, orderId, tracesOf } = await arrange({ payment_method: 'invoice' })
  await whileInFlight(erase, async (client) => {
    await client.query('insert into public.payments (order_id, amount) values ($1, 4900)', [orderId])
    await client.query('insert into public.check_ins (event_id, attendee_id) values ($1, $2)', [event.id, attendee.id])
  })
  expect(await tracesOf(mark)).toEqual([])
  expect(
    await row('select status, checked_in_at is not null as is_in from public.attendees where id = $1', [attendee.id]),
  ).toEqual({
    status: 'active',
    is_in: true,
  })
})

test('an offer that is accepted while the erasure waits for it makes no ticket that keeps the person', async () => {
  const { mark, jane, organisation, event, send, tracesOf } = await arrange()
  const full = await event.ticketType({ quantity: 1 })
  await event.guest({ ticketTypeId: full })
  const { body } = await send('POST', `/events/${event.id}/waiting-list`, { ticket_type_id: full, ...jane })
  await studio.query('update public.ticket_types set quantity = 2 where id = $1', [full])
  await whileInFlight(
    () => send('POST', '/people/erase', { email: jane.email }),
    async (client) => {
      const { rows } = await client.query(
        'insert into public.orders (event_id, name, email) values ($1, $2, $3) returning id',
        [event.id, jane.name, jane.email],
      )
      await client.query(
        `insert into public.attendees (order_id, ticket_type_id, name, email, waiting_list_entry_id) values ($1, $2, $3, $4, $5)`,
        [rows[0].id, full, jane.name, jane.email, body.data.id],
      )
    },
  )
  expect(await tracesOf(mark)).toEqual([])
  expect(
    await row('select count(*)::int as n from public.attendees where organisation_id = $1 and erased_at is not null', [
      organisation.id,
    ]),
  ).toEqual({ n: 2 })
})

test('whatever is done to a person at the moment of their erasure is erased, or belongs to a new person as a whole', async () => {
  const { mark, jane, event, send, register, erase, attendee, orderId, tracesOf } = await arrange({
    payment_method: 'invoice',
  })
  const key = () => ({ 'Idempotency-Key': randomUUID() })
  const answers = await Promise.all([
    register(),
    send('POST', `/orders/${orderId}/payments`, { amount: 4900, currency: 'EUR' }, key()),
    erase(),
    send('PATCH', `/attendees/${attendee.id}`, { company: `${mark} Ltd` }, key()),
    send('POST', '/check-ins', { event_id: event.id, code: attendee.ticket_code }, key()),
    send(
      'POST',
      '/check-ins/batch',
      {
        event_id: event.id,
        scans: [{ scan_id: 's1', code: attendee.ticket_code, scanned_at: '2026-01-01T10:00:00Z' }],
      },
      key(),
    ),
    send('POST', `/attendees/${attendee.id}/ticket-email`, {}, key()),
    erase(),
    register(),
  ])
  expect(answers.filter(({ status }) => status >= 500).map(({ body }) => body)).toEqual([])
  const { rows } = await studio.query(
    `select o.email as order, array_agg(a.email) as attendees from public.orders o join public.attendees a on a.order_id = o.id
     where o.event_id = $1 group by o.id`,
    [event.id],
  )
  expect(rows).toHaveLength(3)
  for (const { order, attendees } of rows) expect(attendees).toEqual([order])
  expect(rows.filter(({ order }) => order !== jane.email)).not.toEqual([])
  const { rows: entry } = await studio.query('select email from public.orders where id = $1', [orderId])
  expect(entry).toEqual([{ email: 'erased@erased.invalid' }])
  // Those who are new leave nothing either.
  await erase()
  expect(await tracesOf(mark)).toEqual([])
})

test('what there is no time for remains for another call', async () => {
  const { mark, jane, organisation, event, tracesOf } = await arrange()
  await studio.query(
    `insert into public.registrations (event_id, ticket_type_id, name, email)
     select $1, $2, $3, $4 from generate_series(1, 205)`,
    [event.id, event.ticketTypeId, jane.name, jane.email],
  )
  // The limit of the statement itself was set before: only what is asked of it changes, and it is over at once.
  const erase = `select public.erase_person($1, organisation_id => $2) as receipt
    from (select set_config('statement_timeout', '1ms', true) as over offset 0) s where s.over <> ''`
  const receipts: { attendees: number; remaining: number }[] = []
  for (const _ of [1, 2]) {
    receipts.push((await row<{ receipt: (typeof receipts)[number] }>(erase, [jane.email, organisation.id])).receipt)
  }
  expect(receipts).toMatchObject([
    { attendees: 200, remaining: 12 },
    { attendees: 6, remaining: 0 },
  ])
  expect(await tracesOf(mark)).toEqual([])
})
