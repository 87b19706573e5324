import { expect, test } from 'vitest'
import { refusalOf, row, studio } from '../support/database.ts'
import { once } from '../support/once.ts'
import { createOrganiser } from '../support/organiser.ts'
import { problemOf } from '../support/rest.ts'

/** An order of 49.00 EUR that waits for its money, with one attendee. */
async function arrange() {
  const { organisation, event, send } = await createOrganiser()
  const { orderId, code } = await event.payer()
  const pay = (body: unknown, headers = {}) => send('POST', `/orders/${orderId}/payments`, body, headers)
  return { organisation, event, orderId, code, send, pay }
}

const refusing = once(arrange)

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
  expect(problemOf(await pay(payment))).toEqual([status, code, param])
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

test('of payments of the whole sum made at once, one is recorded', async () => {
  const { orderId, send, pay } = await arrange()
  const answers = await Promise.all(Array.from({ length: 8 }, () => pay({ amount: 4900 })))
  expect(answers.map((a) => a.status).sort()).toEqual([201, ...Array(7).fill(409)])
  expect((await send('GET', `/orders/${orderId}`)).body.data).toMatchObject({ amount_paid: 4900, status: 'completed' })
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

test('payments are listed by event, order and time, the last received first, and page by page', async () => {
  const { organisation, event, send } = await createOrganiser()
  const other = await organisation.event()
  const [first, second] = [await event.payer(), await other.payer()]
  const pay = async (orderId: string, payment: object) =>
    (await send('POST', `/orders/${orderId}/payments`, { amount: 100, ...payment })).body.data.payments.at(-1).id
  const day = (n: number) => `2026-10-0${n}T12:00:00Z`
  const third = await pay(first.orderId, { received_at: day(3) })
  const oldest = await pay(first.orderId, { received_at: day(1) })
  // Two at one moment, on either side of a page.
  const [twin, latest] = [
    await pay(first.orderId, { received_at: day(4) }),
    await pay(second.orderId, { received_at: day(4) }),
  ]
  await send('POST', `/payments/${oldest}/void`, {})

  const list = async (query: string) => (await send('GET', `/payments?${query}`)).body
  const found = async (query: string) => (await list(query)).data.map(({ id }: { id: string }) => id)
  expect(await found('')).toEqual([latest, twin, third, oldest])
  expect(await found(`event_id=${other.id}`)).toEqual([latest])
  expect(await found(`order_id=${first.orderId}`)).toEqual([twin, third, oldest])
  expect(await found(`order_id=${first.orderId}&event_id=${other.id}`)).toEqual([])
  expect(await found(`received_after=${day(1)}&received_before=${day(4)}&event_id=${event.id}`)).toEqual([
    third,
    oldest,
  ])
  expect((await list('')).data.at(-1)).toMatchObject({ order_id: first.orderId, voided_at: expect.any(String) })

  for (const narrowed of ['', `&event_id=${event.id}`, `&order_id=${first.orderId}`]) {
    const seen: string[] = []
    for (let cursor = ''; ; ) {
      const page = await list(`limit=1${narrowed}${cursor}`)
      seen.push(...page.data.map(({ id }: { id: string }) => id))
      if (!page.has_more) break
      cursor = `&cursor=${page.next_cursor}`
    }
    expect(seen).toEqual(await found(narrowed))
  }
  expect(problemOf(await send('GET', `/payments?cursor=${latest}`))).toEqual([422, 'validation_failed', 'cursor'])
  const stranger = await createOrganiser()
  expect((await stranger.send('GET', `/payments?order_id=${first.orderId}`)).body.data).toEqual([])
  expect((await stranger.send('GET', `/payments?event_id=${event.id}`)).body.data).toEqual([])
})
