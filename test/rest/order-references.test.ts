// The path of an order takes its reference in the place of its id, and of nothing else.

import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { row } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'
import { edit } from '../support/studio.ts'

async function arrange() {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const { orderId } = await event.payer()
  return { organisation, event, orderId, reference: await referenceOf(orderId), send: rest(await organisation.key()) }
}

const referenceOf = async (orderId: string) =>
  (await row<{ reference: string }>('select reference from public.orders where id = $1', [orderId])).reference

test('an order is read, paid, refunded and cancelled by its reference, however it is typed', async () => {
  const { orderId, reference, send } = await arrange()
  const typed = `${reference.slice(0, 4)}-${reference.slice(4)}`.toLowerCase()
  const heard = reference
    .replaceAll('0', 'O')
    .replaceAll('1', 'l')
    .replace(/..(?=.)/g, '$&\u2013')
  const wide = reference.replace(/./g, (letter) => String.fromCharCode(letter.charCodeAt(0) + 0xfee0))
  for (const text of [reference, typed, `${reference.slice(0, 4)} ${reference.slice(4)}`, heard, wide]) {
    const { status, body } = await send('GET', `/orders/${encodeURIComponent(text)}`)
    expect([status, body.data.id], text).toEqual([200, orderId])
    for (const path of ['orders', 'attendees']) {
      const list = await send('GET', `/${path}?reference=${encodeURIComponent(text)}`)
      expect(
        list.body.data.map((one: { id: string; order_id?: string }) => one.order_id ?? one.id),
        text,
      ).toEqual([orderId])
    }
    const { id } = await row<{ id: string }>('select public.the_order($1) as id', [text])
    expect(id).toBe(orderId)
  }
  const read = await send('GET', `/orders/${reference}`)
  expect(
    await send('GET', `/orders/${reference}`, undefined, { 'If-None-Match': String(read.headers.get('etag')) }),
  ).toMatchObject({
    status: 304,
  })
  const deadline = { payment_due_at: '2027-05-01T12:00:00Z' }
  expect((await send('PATCH', `/orders/${typed}`, deadline)).body.data.payment_due_at).toContain('2027-05-01')
  expect((await send('POST', `/orders/${typed}/payments`, { amount: 4900 })).body.data).toMatchObject({
    id: orderId,
    status: 'completed',
  })
  // Neither is a dry run needed: nobody chooses a reference.
  expect((await send('POST', `/orders/${typed}/refunds`, { amount: 100 })).status).toBe(201)
  expect((await send('POST', `/orders/${typed}/cancel`)).body.data.status).toBe('cancelled')
})

test('a payment by reference is recorded once under an Idempotency-Key', async () => {
  const { orderId, reference, send } = await arrange()
  const key = { 'Idempotency-Key': randomUUID() }
  const pay = (path: string) => send('POST', `/orders/${path}/payments`, { amount: 100 }, key)
  const [first, second] = await Promise.all([pay(reference), pay(reference)])
  expect(first.body).toEqual(second.body)
  expect(first.body.data.amount_paid).toBe(100)
  // By the id it is another request.
  expect((await pay(orderId)).body.error).toMatchObject({ code: 'idempotency_key_reused', param: 'Idempotency-Key' })
})

test('what a person chose is no reference: the name of a guest, an external_id', async () => {
  const { event, orderId, reference, send } = await arrange()
  const other = await event.guest()
  await edit('orders', other.orderId, "name = $2, external_id = 'CRM12345'", [reference])
  expect((await send('GET', `/orders/${reference}`)).body.data.id).toBe(orderId)
  for (const path of ['CRM12345', 'ZZZZ-ZZZZ']) {
    expect(await send('GET', `/orders/${path}`)).toMatchObject({
      status: 404,
      body: {
        error: { code: 'not_found', param: 'order_id', hint: 'GET /api/v1/orders lists those of your organisation.' },
      },
    })
  }
})

test("another organisation's order has no reference here, and its payments no way in", async () => {
  const theirs = await arrange()
  const { send } = await arrange()
  for (const [method, path, body] of [
    ['GET', '', undefined],
    ['POST', '/payments', { amount: 100 }],
    ['POST', '/cancel', {}],
    ['PATCH', '', { payment_due_at: null }],
  ] as const) {
    expect((await send(method, `/orders/${theirs.reference}${path}`, body)).status, method + path).toBe(404)
  }
  const order = await row('select status, amount_paid from public.orders where id = $1', [theirs.orderId])
  expect(order).toEqual({ status: 'pending', amount_paid: '0' })
})

test.each([
  ['/orders/launch', 'order_id', 'must be the id or reference of an order (GET /api/v1/orders shows it)'],
  ['/orders?event_id=launch', 'event_id', 'must be the id of an event (GET /api/v1/events shows it)'],
  ['/attendees?order_id=ABCD-1234', 'order_id', 'must be the id of an order (GET /api/v1/orders shows it)'],
  ['/attendees/ABCD-1234', 'attendee_id', 'must be the id of an attendee (GET /api/v1/attendees shows it)'],
  ['/notifications?after=7', 'after', 'must be the id of a notification (GET /api/v1/notifications shows it)'],
  ['/audit-entries?object_id=7', 'object_id', 'must be the id that the object shows'],
])('%s is refused with what helps next', async (path, param, message) => {
  const { send } = await arrange()
  expect(await send('GET', path)).toMatchObject({
    status: 422,
    body: { error: { code: 'validation_failed', param, details: { fields: [{ param, message }] } } },
  })
})
