import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { RefundSchema } from '../../src/operations/orders.ts'
import { refusalOf, row, studio } from '../support/database.ts'
import { createOrganiser } from '../support/organiser.ts'
import { listenIn } from '../support/outbox.ts'
import { edit } from '../support/studio.ts'

/** An order of 49.00 EUR with one ticket, paid in two parts, and so completed. */
async function arrange({ parts = [900, 4000] } = {}) {
  const { organisation, event, send } = await createOrganiser()
  const { orderId, code } = await event.payer()
  const pay = (amount: number) => send('POST', `/orders/${orderId}/payments`, { amount })
  let payments: { id: string }[] = []
  for (const part of parts) payments = (await pay(part)).body.data.payments
  return {
    organisation,
    event,
    orderId,
    code,
    send,
    pay,
    order: async () => (await send('GET', `/orders/${orderId}`)).body.data,
    voidPayment: (at: number, body = {}) => send('POST', `/payments/${payments[at]?.id}/void`, body),
    refund: (body: unknown, headers = {}) => send('POST', `/orders/${orderId}/refunds`, body, headers),
    cancel: () => send('POST', `/orders/${orderId}/cancel`),
    paymentId: () => payments[0]?.id ?? '',
  }
}

test('a void leaves the order and its ticket standing, and what it paid is due again', async () => {
  const { organisation, event, code, send, pay, voidPayment } = await arrange()
  const news = await listenIn(organisation.id)
  const voided = await voidPayment(1, { reason: 'Typed twice' })
  expect([voided.status, voided.body.data]).toMatchObject([
    201,
    {
      status: 'completed',
      payment_status: 'partially_paid',
      amount_paid: 900,
      amount_due: 4000,
      amount_refundable: 0,
      attendees: [{ status: 'active' }],
    },
  ])
  expect(voided.body.data.payments.map((p: { voided_at: string | null }) => p.voided_at !== null)).toEqual([
    false,
    true,
  ])
  expect(await news()).toEqual([
    { type: 'order.updated', data: voided.body.data },
    { type: 'payment.voided', data: voided.body.data.payments[1] },
  ])
  expect((await send('POST', '/check-ins', { event_id: event.id, code })).status).toBe(200)

  const paidAgain = await pay(4000)
  expect(paidAgain.body.data).toMatchObject({ payment_status: 'paid', amount_paid: 4900, amount_due: 0 })
  expect((await pay(1)).body.error.code).toBe('nothing_due')
  expect((await voidPayment(1)).body.error).toMatchObject({ code: 'payment_voided', param: 'payment_id' })
})

test('refunds end refund_due, in parts and not beyond what was paid', async () => {
  const { organisation, cancel, refund, order } = await arrange()
  await cancel()
  expect(await order()).toMatchObject({ payment_status: 'refund_due', amount_refundable: 4900 })
  const news = await listenIn(organisation.id)
  const first = await refund({ amount: 900, external_reference: 'CN-1', refunded_at: '2026-11-01T10:00:00+01:00' })
  expect([first.status, first.body.data]).toMatchObject([
    201,
    {
      payment_status: 'refund_due',
      amount_refunded: 900,
      amount_refundable: 4000,
      refunds: [{ amount: 900, currency: 'EUR', method: 'bank_transfer', refunded_at: '2026-11-01T09:00:00.000Z' }],
    },
  ])
  expect(await news()).toEqual([
    { type: 'order.updated', data: first.body.data },
    { type: 'refund.recorded', data: RefundSchema.parse(first.body.data.refunds[0]) },
  ])
  expect((await refund({ amount: 4001 })).body.error).toMatchObject({
    code: 'refund_too_high',
    param: 'amount',
    details: { amount_left: 4000 },
  })
  expect((await refund({ amount: 4000, currency: 'USD' })).body.error.code).toBe('wrong_currency')
  expect((await refund({ amount: 4000, refunded_at: '9998-01-01T00:00:00Z' })).body.error).toMatchObject({
    code: 'validation_failed',
    param: 'refunded_at',
  })
  expect((await refund({ amount: 4000, method: 'cash' })).body.data).toMatchObject({
    payment_status: 'refunded',
    amount_refunded: 4900,
    amount_refundable: 0,
  })
  expect((await refund({ amount: 1 })).body.error.code).toBe('nothing_refundable')
})

test('a paid order that stands can be refunded, in full or in part; its ticket stays, and what was returned is due', async () => {
  const { event, code, send, pay, refund } = await arrange()
  expect((await refund({ amount: 1000 })).body.data).toMatchObject({
    payment_status: 'partially_paid',
    amount_due: 1000,
  })
  expect((await refund({ amount: 3900 })).body.data).toMatchObject({
    status: 'completed',
    payment_status: 'awaiting_payment',
    amount_due: 4900,
    attendees: [{ status: 'active' }],
  })
  expect((await send('POST', '/check-ins', { event_id: event.id, code })).status).toBe(200)
  expect(
    await row('select paid, due, amount_due::int from public.unpaid_orders where event_id = $1', [event.id]),
  ).toEqual({ paid: 'EUR 0.00', due: 'EUR 49.00', amount_due: 4900 })
  expect((await send('GET', `/events/${event.id}/summary`)).body.data.revenue).toMatchObject({
    due: 4900,
    paid: 4900,
    refunded: 4900,
    refundable: 0,
  })
  expect((await pay(4901)).body.error).toMatchObject({ code: 'overpayment', details: { amount_due: 4900 } })
  expect((await pay(4900)).body.data).toMatchObject({ payment_status: 'paid', amount_paid: 9800, amount_due: 0 })
})

test('where more was sent than is due, what is due is recorded and the rest is not', async () => {
  const { orderId, pay, order } = await arrange({ parts: [900] })
  const { body } = await pay(5000)
  expect(body.error).toMatchObject({ code: 'overpayment', details: { amount_due: 4000 } })
  expect(body.error.hint).toBe(
    'Record amount_due. Return the rest at the bank without recording it: a recorded refund would be due again.',
  )
  await pay(body.error.details.amount_due)
  expect(await order()).toMatchObject({ payment_status: 'paid', amount_due: 0, amount_refundable: 0 })
  // Once a refund was recorded of what no payment had brought, that payment puts it right.
  const refund = 'insert into public.refunds (order_id, amount) values ($1, 1000)'
  await studio.query(refund, [orderId])
  expect(await order()).toMatchObject({ payment_status: 'partially_paid', amount_due: 1000 })
  await pay(1000)
  expect(await order()).toMatchObject({ payment_status: 'paid', amount_due: 0 })
})

test('a refund that the bank sent back cannot be taken back: the refusals say so', async () => {
  const { cancel, refund, pay } = await arrange()
  expect((await pay(1)).body.error).toMatchObject({
    code: 'nothing_due',
    hint: 'Return the money at the bank, and record neither the payment nor its return.',
  })
  await cancel()
  await refund({ amount: 4900 })
  const sentBack = /A refund cannot be voided. If the bank sent it back, note that in your books and pay it again/
  expect((await pay(4900)).body.error).toMatchObject({
    code: 'nothing_due',
    hint: expect.stringMatching(sentBack),
  })
  expect((await refund({ amount: 4900 })).body.error).toMatchObject({
    code: 'nothing_refundable',
    hint: expect.stringMatching(sentBack),
  })
  const unpaid = await arrange({ parts: [] })
  await unpaid.cancel()
  const { error } = (await unpaid.refund({ amount: 1 })).body
  expect([error.code, error.hint]).toEqual(['nothing_refundable', undefined])
})

test('what is still due is not refunded, and what was refunded is not voided', async () => {
  const pending = await arrange({ parts: [900] })
  expect((await pending.refund({ amount: 900 })).body.error.code).toBe('payment_due')
  const refunded = await arrange()
  await refunded.refund({ amount: 1000 })
  expect((await refunded.voidPayment(1)).body.error).toMatchObject({
    code: 'payment_refunded',
    details: { amount_refunded: 1000 },
  })
  expect((await refunded.voidPayment(0)).body.data).toMatchObject({ amount_paid: 4000, amount_refunded: 1000 })
})

test('refunds and voids at the same moment never return more than was paid', async () => {
  const { refund, voidPayment, order } = await arrange()
  const key = { 'Idempotency-Key': randomUUID() }
  await Promise.all([
    ...Array.from({ length: 6 }, () => refund({ amount: 2000 })),
    ...Array.from({ length: 3 }, () => refund({ amount: 300 }, key)),
    voidPayment(0),
    voidPayment(1),
  ])
  const { amount_paid, amount_refunded, refunds } = await order()
  expect(amount_refunded).toBeLessThanOrEqual(amount_paid)
  expect(refunds.reduce((sum: number, { amount }: { amount: number }) => sum + amount, 0)).toBe(amount_refunded)
})

test('in Studio the same rules hold, and corrections are never edited', async () => {
  const { orderId, paymentId } = await arrange()
  const id = paymentId()
  await studio.query('insert into public.refunds (order_id, amount) values ($1, 900)', [orderId])
  expect(
    await refusalOf(studio.query('insert into public.refunds (order_id, amount) values ($1, 4001)', [orderId])),
  ).toMatchObject({
    code: 'refund_too_high',
  })
  for (const write of ['update public.refunds set amount = 1', 'delete from public.refunds']) {
    expect(await refusalOf(studio.query(`${write} where order_id = $1`, [orderId]))).toMatchObject({
      code: 'append_only',
    })
  }
  await studio.query('insert into public.payment_voids (payment_id) values ($1)', [id])
  expect(await refusalOf(studio.query('delete from public.payment_voids where payment_id = $1', [id]))).toMatchObject({
    code: 'append_only',
  })
  expect(
    await row('select amount_paid::int, amount_voided::int, amount_refunded::int from public.orders where id = $1', [
      orderId,
    ]),
  ).toEqual({ amount_paid: 4000, amount_voided: 900, amount_refunded: 900 })
  expect(await refusalOf(edit('orders', orderId, 'amount_refunded = 0'))).toMatchObject({
    code: 'read_only_field',
    param: 'amount_refunded',
  })
})
