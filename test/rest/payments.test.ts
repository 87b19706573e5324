import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { refusalOf, row, studio } from '../support/database.ts'
import { once } from '../support/once.ts'
import { createOrganisation } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'

/** An order of 49.00 EUR that waits for its money, with one attendee. */
async function arrange() {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const { orderId, code } = await event.payer()
  const send = rest(await organisation.key())
  const pay = (body: unknown, headers = {}) => send('POST', `/orders/${orderId}/payments`, body, headers)
  return { organisation, event, orderId, code, send, pay }
}

const refusing = once(arrange)

test('partial payments add up, and with the last one the order completes and the ticket is good', async () => {
  const { event, code, send, pay } = await arrange()
  const first = await pay({ amount: 900, external_reference: 'INV-7', received_at: '2026-11-01T10:00:00+01:00' })
  expect(first.status).toBe(201)
  expect(first.body.data).toMatchObject({
    status: 'pending',
    payment_status: 'partially_paid',
    amount_paid: 900,
    amount_due: 4000,
    payments: [
      {
        amount: 900,
        currency: 'EUR',
        method: 'invoice',
        external_reference: 'INV-7',
        received_at: '2026-11-01T09:00:00.000Z',
      },
    ],
  })
  const scan = () => send('POST', '/check-ins', { event_id: event.id, code })
  expect((await scan()).body.error.code).toBe('unpaid')

  const last = await pay({ amount: 4000, method: 'bank_transfer' })
  expect(last.body.data).toMatchObject({
    status: 'completed',
    payment_status: 'paid',
    amount_due: 0,
    payment_method: 'invoice',
    attendees: [{ status: 'active', ticket_email: { status: 'queued' } }],
  })
  expect(last.body.data.payments).toHaveLength(2)
  expect((await scan()).status).toBe(200)
})

test.each([
  [{ amount: 4901 }, 409, 'overpayment', 'amount'],
  [{ amount: 4900, currency: 'USD' }, 409, 'wrong_currency', 'currency'],
  [{ amount: 0 }, 422, 'validation_failed', 'amount'],
  [{ amount: 49.5 }, 422, 'validation_failed', 'amount'],
  [{ amount: '4900' }, 422, 'validation_failed', 'amount'],
  [{}, 422, 'validation_failed', 'amount'],
  [{ amount: 1, method: 'cheque' }, 422, 'validation_failed', 'method'],
  [{ amount: 1, received_at: '9998-01-01T00:00:00Z' }, 422, 'validation_failed', 'received_at'],
])('a payment of %j is refused and nothing is recorded', async (payment, status, code, param) => {
  const { orderId, send, pay } = await refusing()
  const answer = await pay(payment)
  expect([answer.status, answer.body.error.code, answer.body.error.param]).toEqual([status, code, param])
  expect((await send('GET', `/orders/${orderId}`)).body.data).toMatchObject({ amount_paid: 0, payments: [] })
})

test('a clock or a time zone may be ahead of the one here, by up to a day', async () => {
  const { orderId } = await arrange()
  const receivedIn = (hours: number) =>
    studio.query(
      'insert into public.payments (order_id, amount, received_at) values ($1, 1, now() + make_interval(hours => $2))',
      [orderId, hours],
    )
  await receivedIn(24)
  expect(await refusalOf(receivedIn(25))).toMatchObject({ code: 'validation_failed', param: 'received_at' })
})

test('nothing can be paid for an order that is completed or cancelled', async () => {
  const { orderId, send, pay } = await arrange()
  await send('POST', `/orders/${orderId}/cancel`)
  expect((await pay({ amount: 100 })).body.error).toMatchObject({
    code: 'nothing_due',
    details: { status: 'cancelled' },
  })
  const other = await arrange()
  await other.pay({ amount: 4900 })
  expect((await other.pay({ amount: 1 })).body.error).toMatchObject({
    code: 'nothing_due',
    details: { status: 'completed' },
  })
})

test('of payments of the whole sum made at once, one is recorded', async () => {
  const { orderId, send, pay } = await arrange()
  const answers = await Promise.all(Array.from({ length: 8 }, () => pay({ amount: 4900 })))
  expect(answers.map((a) => a.status).sort()).toEqual([201, ...Array(7).fill(409)])
  expect((await send('GET', `/orders/${orderId}`)).body.data).toMatchObject({ amount_paid: 4900, status: 'completed' })
})

test('a repeated payment with the same idempotency key is recorded once', async () => {
  const { orderId, send, pay } = await arrange()
  const headers = { 'Idempotency-Key': randomUUID() }
  const answers = await Promise.all(Array.from({ length: 5 }, () => pay({ amount: 100 }, headers)))
  expect(new Set(answers.map((a) => JSON.stringify(a.body))).size).toBe(1)
  expect((await send('GET', `/orders/${orderId}`)).body.data.payments).toHaveLength(1)
})

test('a payment and a cancellation at once leave either a paid order or one to be refunded', async () => {
  const { orderId, send, pay } = await arrange()
  await Promise.all([pay({ amount: 4900 }), send('POST', `/orders/${orderId}/cancel`)])
  const { data } = (await send('GET', `/orders/${orderId}`)).body
  expect(data.status).toBe('cancelled')
  expect(data.payment_status).toBe(data.amount_paid > 0 ? 'refund_due' : 'not_required')
})

test('two payments in one statement cannot pay more than is due together', async () => {
  const { orderId } = await arrange()
  const both = studio.query('insert into public.payments (order_id, amount) values ($1, 3000), ($1, 3000)', [orderId])
  expect(await refusalOf(both)).toMatchObject({ code: 'overpayment', details: { amount_due: 1900 } })
  expect(await row('select amount_paid::int from public.orders where id = $1', [orderId])).toEqual({ amount_paid: 0 })
})

test('a payment added in Studio meets the same rules; the sum and the log cannot be edited', async () => {
  const { orderId } = await arrange()
  const add = (amount: number) =>
    studio.query('insert into public.payments (order_id, amount) values ($1, $2)', [orderId, amount])
  expect(await refusalOf(add(5000))).toMatchObject({ sqlstate: 'PT409', code: 'overpayment' })
  await add(4900)
  expect(await row('select status, amount_paid::int from public.orders where id = $1', [orderId])).toEqual({
    status: 'completed',
    amount_paid: 4900,
  })
  for (const sql of [
    'update public.payments set amount = 1 where order_id = $1',
    'delete from public.payments where order_id = $1',
  ]) {
    expect(await refusalOf(studio.query(sql, [orderId]))).toMatchObject({ sqlstate: 'PT409', code: 'append_only' })
  }
  const edit = studio.query('update public.orders set amount_paid = 1 where id = $1', [orderId])
  expect(await refusalOf(edit)).toMatchObject({ code: 'read_only_field', param: 'amount_paid' })
})

test("another organisation's order cannot be paid for", async () => {
  const [ours, theirs] = [await arrange(), await arrange()]
  const { status, body } = await ours.send('POST', `/orders/${theirs.orderId}/payments`, { amount: 100 })
  expect([status, body.error.code, body.error.param]).toEqual([404, 'not_found', 'order_id'])
})
