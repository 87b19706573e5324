// An attendee who is added to an order that is there: what it costs, when it is refused, and what meets it at the same moment.

import { expect, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { once } from '../support/once.ts'
import { createOrganiser } from '../support/organiser.ts'
import { listenIn } from '../support/outbox.ts'
import { problemOf, rest } from '../support/rest.ts'
import { edit } from '../support/studio.ts'

const melba = { name: 'Melba Roy', email: 'melba@example.com' }

/** A ticket of 49.00 EUR, an order of one, to be paid by invoice, and what adds another attendee. */
async function arrange(order: object = {}) {
  const { organisation, event, send } = await createOrganiser()
  const ticketTypeId = await event.ticketType({ price: 4900 })
  const register = async (more: object = {}) => {
    const guest = { ticket_type_id: ticketTypeId, name: 'Mary Jackson', email: 'mary@example.com' }
    return (
      await send('POST', `/events/${event.id}/registrations`, {
        ...guest,
        payment_method: 'invoice',
        ...order,
        ...more,
      })
    ).body.data.id
  }
  const add = (orderId: string, guest: object = {}, headers = {}) =>
    send('POST', `/orders/${orderId}/attendees`, { ticket_type_id: ticketTypeId, ...melba, ...guest }, headers)
  const orderOf = async (id: string) => (await send('GET', `/orders/${id}`)).body.data
  return { organisation, event, send, ticketTypeId, register, add, orderOf, orderId: await register() }
}

test('an added attendee has the price and the promo code of the order, raises its total, and is paid and sent with it', async () => {
  const { organisation, event, send, register, add, orderOf } = await arrange()
  await send('POST', `/events/${event.id}/promo-codes`, { code: 'SPRING', percent_off: 20 })
  const orderId = await register({ promo_code: 'SPRING' })
  const told = await listenIn(organisation.id)
  const key = { 'Idempotency-Key': 'added-once' }
  const added = await add(orderId, { external_id: 'crm-7' }, key)
  expect([added.status, added.body.data]).toMatchObject([
    201,
    { order_id: orderId, price: 4900, discount: 980, external_id: 'crm-7', status: 'awaiting_payment' },
  ])
  expect(added.body.data.ticket_email.status).toBe('waiting')
  expect((await add(orderId, { external_id: 'crm-7' }, key)).body.data.id).toBe(added.body.data.id)
  expect(await orderOf(orderId)).toMatchObject({ status: 'pending', total: 7840, external_id: null })
  expect(await told()).toMatchObject([
    { type: 'attendee.created', data: { id: added.body.data.id, ticket_url: null } },
    { type: 'order.updated', data: { id: orderId, total: 7840, attendees: [{}, { name: 'Melba Roy' }] } },
  ])

  await send('POST', `/orders/${orderId}/payments`, { amount: 7840 })
  const { attendees } = await orderOf(orderId)
  expect(attendees.map((a: { status: string }) => a.status)).toEqual(['active', 'active'])
  expect((await send('GET', `/attendees/${added.body.data.id}`)).body.data.ticket_email.status).toBe('queued')
})

test('who was just registered is warned of, and nothing is sent where the order sends nothing', async () => {
  const { orderId, add } = await arrange({ send_email: false })
  const { body } = await add(orderId, { name: 'Mary Jackson', email: 'mary@example.com' })
  expect(body.warnings).toMatchObject([{ code: 'person_repeated' }])
  expect(body.data.ticket_email.status).toBe('not_requested')
})

test.each([
  ['order_completed', 'insert into public.payments (order_id, amount) values ($1, 4900)'],
  ['order_cancelled', "update public.orders set status = 'cancelled' where id = $1"],
  [
    'order_expired',
    'update public.orders set payment_due_at = now() where id = $1',
    'select private.expire_orders(array[$1]::uuid[])',
  ],
])('an order in another state is refused, also for a free ticket: %s', async (code, ...steps) => {
  const { event, orderId, add, orderOf } = await arrange()
  for (const sql of steps) await studio.query(sql, [orderId])
  for (const guest of [{}, { ticket_type_id: event.ticketTypeId }]) {
    expect(problemOf(await add(orderId, guest))).toEqual([409, code, 'order_id'])
  }
  expect((await orderOf(orderId)).attendees).toHaveLength(1)
})

const refusing = once(arrange)

test.each<[string, (it: Awaited<ReturnType<typeof arrange>>) => Promise<object>, unknown[]]>([
  [
    'another event',
    async ({ organisation }) => ({ ticket_type_id: (await organisation.event()).ticketTypeId }),
    [404, 'not_found', 'ticket_type_id'],
  ],
  [
    'a ticket type that is sold out',
    async ({ event }) => ({ ticket_type_id: await event.ticketType({ quantity: 0 }) }),
    [409, 'sold_out', 'ticket_type_id'],
  ],
  [
    'an external_id that is taken',
    async ({ register }) => {
      await register({ external_id: 'taken' })
      return { external_id: 'taken' }
    },
    [409, 'already_exists', 'external_id'],
  ],
  ['no address', async () => ({ email: 'nobody' }), [422, 'validation_failed', 'email']],
  ['a promo code of its own', async () => ({ promo_code: 'SPRING' }), [422, 'validation_failed', 'promo_code']],
  ['a group', async () => ({ attendees: [melba, melba] }), [422, 'validation_failed', 'attendees']],
])('a guest with %s is refused, and the order stays as it is', async (_what, guest, problem) => {
  const it = await refusing()
  expect(problemOf(await it.add(it.orderId, await guest(it)))).toEqual(problem)
  expect(await it.orderOf(it.orderId)).toMatchObject({ total: 4900, version: 2, attendees: [{}] })
})

test("nobody adds to another organisation's order, nor without attendees:write", async () => {
  const { organisation, ticketTypeId, orderId } = await refusing()
  const stranger = await createOrganiser()
  const guest = { ticket_type_id: ticketTypeId, ...melba }
  const path = `/orders/${orderId}/attendees`
  expect(problemOf(await stranger.send('POST', path, guest))).toEqual([404, 'not_found', 'order_id'])
  const reader = rest(await organisation.key('orders:write', 'attendees:read'))
  expect((await reader('POST', path, guest)).body.error.code).toBe('missing_scope')
  // One that may not read orders may add, and sees what it added.
  const writer = rest(await organisation.key('attendees:write'))
  expect((await writer('POST', path, guest)).body.data).toMatchObject({ order_id: orderId, price: 4900 })
})

test('of many who are added and registered at once, as many come in as there are places', async () => {
  const { event, register, add, orderOf, orderId, ticketTypeId, send } = await arrange()
  const orders = [orderId, await register()]
  await edit('ticket_types', ticketTypeId, 'quantity = 7')
  const guest = { ticket_type_id: ticketTypeId, ...melba, payment_method: 'invoice' }
  const answers = await Promise.all(
    Array.from({ length: 15 }, (_, i) =>
      i % 3 === 2
        ? send('POST', `/events/${event.id}/registrations`, guest)
        : add(orders[i % 3] ?? '', { name: `Guest ${i}` }),
    ),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([...Array(5).fill(201), ...Array(10).fill(409)])
  expect(await event.sold(ticketTypeId)).toBe(7)
  for (const id of orders) {
    const { total, attendees } = await orderOf(id)
    expect(total).toBe(4900 * attendees.length)
  }
})

test('an attendee and the payment of the whole order at once: either comes first, and neither is lost', async () => {
  const { register, add, send, orderOf } = await arrange()
  for (let round = 0; round < 6; round++) {
    const id = await register()
    const [added, paid] = await Promise.all([add(id), send('POST', `/orders/${id}/payments`, { amount: 4900 })])
    expect(paid.status).toBe(201)
    const { status, total, amount_due, attendees } = await orderOf(id)
    expect([added.status, status, total, amount_due, attendees.length]).toEqual(
      added.status === 201 ? [201, 'pending', 9800, 4900, 2] : [409, 'completed', 4900, 0, 1],
    )
  }
})

test('an order that Studio added without attendees is announced with the first, as registration does', async () => {
  const { organisation, event, add } = await arrange()
  const { id } = await row<{ id: string }>(
    `insert into public.orders (event_id, name, email, payment_method)
     values ($1, 'Guest', 'guest@example.com', 'invoice') returning id`,
    [event.id],
  )
  const told = await listenIn(organisation.id)
  expect((await add(id)).status).toBe(201)
  expect((await told()).map(({ type }) => type)).toEqual(['order.created'])
})
