// What an organiser keeps of what was cancelled: amount_retained of an order, by cancel_order, cancel_attendee, update_order and by hand.

import { expect, test } from 'vitest'
import { brokenRules } from '../properties/invariants.ts'
import { refusalOf, row, studio } from '../support/database.ts'
import { createOrganiser } from '../support/organiser.ts'
import { rest } from '../support/rest.ts'
import { addOrder, edit } from '../support/studio.ts'

/** An order of tickets at 199.00 each that is paid. */
async function arrange({ tickets = 1 } = {}) {
  const { organisation, event, send } = await createOrganiser()
  const ticketTypeIds = Array.from({ length: tickets }, () => event.ticketTypeId)
  const { id, attendeeIds } = await addOrder(event, { subtotal: 19_900, paid: 19_900, ticketTypeIds })
  const order = async () => (await send('GET', `/orders/${id}`)).body.data
  const refund = (amount: number, body = {}) => send('POST', `/orders/${id}/refunds`, { amount, ...body })
  return { organisation, event, id, attendeeIds, send, order, refund }
}

const settled = { amount_retained: 2000, amount_refundable: 0, payment_status: 'refunded' }

test('of 199.00 with 20.00 retained, 179.00 are to be refunded, and then nothing is', async () => {
  const { event, id, send, order, refund } = await arrange()
  const cancel = (body = {}) => send('POST', `/orders/${id}/cancel`, { amount_retained: 2000, ...body })
  const dry = await cancel({ dry_run: true })
  expect(dry.body).toMatchObject({ effect: { refund_due: 17_900 }, data: { status: 'completed', amount_retained: 0 } })
  const { body } = await cancel()
  expect(body.effect).toEqual({ ...dry.body.effect, dry_run: false })
  expect(body.data).toMatchObject({ payment_status: 'refund_due', amount_retained: 2000, amount_refundable: 17_900 })
  const revenue = async () => (await send('GET', `/events/${event.id}/summary`)).body.data.revenue
  expect(await revenue()).toMatchObject({ paid: 19_900, refundable: 17_900 })
  expect((await refund(17_900)).body.data).toMatchObject({ ...settled, amount_refunded: 17_900 })
  expect(await revenue()).toMatchObject({ refunded: 17_900, refundable: 0 })
  const exported =
    'select amount_retained, amount_retained_decimal, amount_refundable from public.order_export where id = $1'
  expect(await row(exported, [id])).toEqual({
    amount_retained: '2000',
    amount_retained_decimal: '20.00',
    amount_refundable: '0',
  })
  expect((await send('GET', '/orders?payment_status=refund_due')).body.data).toEqual([])
  // What is returned after all is retained no longer.
  expect((await refund(2000)).body.data).toMatchObject({ ...settled, amount_retained: 0, amount_refunded: 19_900 })
  expect(await order()).toMatchObject({ amount_paid: 19_900 })
})

test('what is kept may be said later, by update_order and by hand, and is taken back likewise', async () => {
  const { id, send, refund, order, event } = await arrange()
  const retain = async (amount_retained: number, body = {}) => {
    const { status, body: answer } = await send('PATCH', `/orders/${id}`, { amount_retained, ...body })
    return status < 300 ? answer : answer.error
  }
  expect(await retain(1)).toMatchObject({
    code: 'validation_failed',
    param: 'amount_retained',
    hint: 'At most 0 in total, including 0 already retained, in minor units.',
  })
  await send('POST', `/orders/${id}/cancel`)
  await refund(17_900)
  expect(await order()).toMatchObject({ payment_status: 'refund_due', amount_refundable: 2000 })
  expect(await retain(2001)).toMatchObject({
    param: 'amount_retained',
    hint: 'At most 2000 in total, including 0 already retained, in minor units.',
  })
  expect(await retain(2000, { dry_run: true })).toMatchObject({
    effect: { refund_due: -2000 },
    data: { amount_retained: 0 },
  })
  const { version } = await order()
  expect(await retain(2000)).toMatchObject({ data: { ...settled, version: version + 1 } })
  expect(await retain(0)).toMatchObject({ data: { payment_status: 'refund_due', amount_refundable: 2000 } })
  await edit('orders', id, 'amount_retained = 2000')
  expect(await order()).toMatchObject(settled)
  for (const amount of [2001, -1]) {
    expect(await refusalOf(edit('orders', id, `amount_retained = ${amount}`))).toMatchObject({
      code: 'validation_failed',
      param: 'amount_retained',
    })
  }
  for (const amount of [-1, 1.5, null, '20']) {
    expect((await send('PATCH', `/orders/${id}`, { amount_retained: amount })).body.error.param).toBe('amount_retained')
  }
  expect(await brokenRules(event.id)).toEqual([])
})

test('a ticket that is cancelled adds its fee, while the others stand and with the last', async () => {
  const { organisation, event, id, attendeeIds, send, order } = await arrange({ tickets: 2 })
  await studio.query(
    'insert into public.payments (order_id, amount) select id, total - amount_paid from public.orders where id = $1',
    [id],
  )
  const { total } = await order()
  const cancel = (attendee: string | undefined, body: object, by = send) =>
    by('POST', `/attendees/${attendee}/cancel`, body)
  const withoutOrders = rest(await organisation.key('attendees:write', 'orders:read'))
  const refused = await cancel(attendeeIds[0], { amount_retained: 500 }, withoutOrders)
  expect(refused.body.error).toMatchObject({ code: 'missing_scope', param: 'amount_retained' })
  expect((await cancel(attendeeIds[0], { amount_retained: total })).body.error).toMatchObject({
    code: 'validation_failed',
    param: 'amount_retained',
  })
  expect(await order()).toMatchObject({ total, amount_retained: 0 })

  const [first, second] = attendeeIds
  expect((await cancel(first, { amount_retained: 500 })).body.effect.refund_due).toBe(19_400)
  expect(await order()).toMatchObject({ status: 'completed', amount_retained: 500, amount_refundable: 19_400 })
  await cancel(second, { amount_retained: 700 })
  expect(await order()).toMatchObject({ status: 'cancelled', amount_retained: 1200, amount_refundable: total - 1200 })
  expect(await brokenRules(event.id)).toEqual([])
})

test('a payment that is voided takes from what is retained', async () => {
  const { id, send, order, event } = await arrange()
  await send('POST', `/orders/${id}/cancel`, { amount_retained: 2000 })
  const [{ id: paymentId }] = (await order()).payments
  await send('POST', `/payments/${paymentId}/void`, {})
  expect(await order()).toMatchObject({ amount_paid: 0, amount_retained: 0, payment_status: 'not_required' })
  expect(await brokenRules(event.id)).toEqual([])
})

test('a refund that is tried is none, and says what a real one would', async () => {
  const { id, send, order, refund } = await arrange()
  const before = await order()
  const dry = await refund(49, { dry_run: true, external_reference: 'CN-1' })
  expect([dry.status, dry.body.data]).toEqual([200, before])
  expect(dry.body.effect).toMatchObject({ dry_run: true, orders: 1, refund_due: 0 })
  expect(dry.body.warnings).toMatchObject([{ code: 'due_again' }])
  expect(await order()).toEqual(before)
  expect((await refund(19_901, { dry_run: true })).body.error).toMatchObject({ code: 'refund_too_high' })
  await send('POST', `/orders/${id}/cancel`)
  expect((await refund(19_900, { dry_run: true })).body.effect.refund_due).toBe(-19_900)
  const done = await refund(19_900)
  expect([done.status, done.body.effect]).toMatchObject([201, { dry_run: false, refund_due: -19_900 }])
})
