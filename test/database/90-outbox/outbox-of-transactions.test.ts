// The outbox keeps to transactions: it tells what was committed, once, however often it was asked for, and in the order in
// which it happened.

import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { during, studio } from '../../support/database.ts'
import { inStudio, overRest } from '../../support/interfaces.ts'
import { logOf } from '../../support/outbox.ts'
import { outboxFixture, tell } from '../outbox-fixture.ts'

test('what is rolled back is not notified', async () => {
  const { organisation, event, told } = await outboxFixture(inStudio)
  await during(async (client) => {
    await client.query("update public.events set name = 'Renamed' where id = $1", [event.id])
    await client.query(
      `with o as (insert into public.orders (event_id, name, email) values ($1, 'Guest', 'g@example.com') returning id)
       select set_config('test.order_id', id::text, true) from o`,
      [event.id],
    )
    await client.query(
      `insert into public.attendees (order_id, ticket_type_id, name, email)
       values (current_setting('test.order_id')::uuid, $1, 'Guest', 'g@example.com')`,
      [event.ticketTypeId],
    )
    // So that the order is notified before the end, too.
    await client.query('set constraints all immediate')
    const { rows } = await client.query(
      'select type from public.notifications where organisation_id = $1 order by id',
      [organisation.id],
    )
    expect(rows.slice(-3).map(({ type }) => type)).toEqual(['event.updated', 'order.created', 'order.completed'])
  })
  expect(await told()).toEqual([])
})

test('an attendee who is edited twice in one transaction is notified twice', async () => {
  const { told, attendee, attendeesOf, registered } = await outboxFixture(inStudio)
  const [guest] = await attendeesOf(await registered())
  await during(async (client) => {
    for (const name of ['Mary', 'Ada']) {
      await client.query('update public.attendees set name = $2 where id = $1', [guest?.id, name])
    }
    await client.query('commit')
  })
  const news = await told()
  expect(news.map(({ type, data }) => [type, data.name])).toEqual(
    expect.arrayContaining([
      ['attendee.updated', 'Mary'],
      ['attendee.updated', 'Ada'],
    ]),
  )
  expect(news).toHaveLength(2)
  expect(news).toContainEqual(tell('attendee.updated', await attendee(String(guest?.id))))
})

test('an order is notified as it is when the transaction ends, with what was added and paid meanwhile', async () => {
  const { event, told, order, paymentsOf } = await outboxFixture(inStudio)
  const ticketTypeId = await event.ticketType({ price: 4900 })
  const id = await during(async (client) => {
    const { rows } = await client.query<{ id: string }>(
      `insert into public.orders (event_id, name, email, payment_method)
       values ($1, 'Guest', 'g@example.com', 'invoice') returning id`,
      [event.id],
    )
    const orderId = rows[0]?.id ?? ''
    await client.query(
      "insert into public.attendees (order_id, ticket_type_id, name, email) values ($1, $2, 'Guest', 'g@example.com')",
      [orderId, ticketTypeId],
    )
    await client.query('insert into public.payments (order_id, amount) values ($1, 4900)', [orderId])
    await client.query('commit')
    return orderId
  })
  const paid = await order(id)
  expect(paid).toMatchObject({ status: 'completed', attendees: [{ status: 'active' }], payments: [{ amount: 4900 }] })
  // The attendee is news only in the order.
  expect(await told()).toEqual([
    tell('order.completed', paid),
    tell('order.created', paid),
    tell('payment.recorded', (await paymentsOf(id))[0] ?? {}),
  ])
})

test('the log is in the order in which it happened', async () => {
  const { organisation, event, actions, told, attendeesOf } = await outboxFixture(overRest)
  const before = (await logOf(organisation.id)).length
  const id = await actions.register({ ticketTypeId: await event.ticketType({ price: 4900 }), invoice: true })
  await actions.renameEvent(randomUUID())
  await actions.pay(id, 4900)
  const [guest] = await attendeesOf(id)
  await actions.scan(String(guest?.ticket_code))
  await actions.cancelOrder(id)
  expect((await logOf(organisation.id)).slice(before).map(({ type }) => type)).toEqual([
    'order.created',
    'event.updated',
    'attendee.updated',
    'payment.recorded',
    'order.completed',
    'attendee.checked_in',
    'attendee.cancelled',
    'order.cancelled',
  ])
  expect(await told()).toHaveLength(8)
})

test('a notification has the time and the number of its transaction', async () => {
  const { organisation, event } = await outboxFixture(inStudio)
  await during(async (client) => {
    const {
      rows: [transaction],
    } = await client.query('select now() as moment, pg_current_xact_id()::text as number')
    await client.query("update public.events set name = 'Renamed' where id = $1", [event.id])
    // The number is that of the whole transaction, also where a savepoint has one of its own.
    await client.query('savepoint edit')
    await client.query("update public.events set name = 'Renamed again' where id = $1", [event.id])
    await client.query('commit')
    const { rows } = await studio.query(
      `select created_at as moment, transaction_id::text as number from public.notifications
       where organisation_id = $1 and type = 'event.updated'`,
      [organisation.id],
    )
    expect(rows).toEqual([transaction, transaction])
  })
})
