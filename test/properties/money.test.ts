// Money adds up: orders of random prices, percentages or amounts off, and quantities over REST, then tickets cancelled and money received,
// held after every step against a model that was worked out without the database.

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createOrganisation } from '../support/organisation.ts'
import { type RestAnswer, rest } from '../support/rest.ts'
import { problemsOfBooks } from './books.ts'
import { brokenRules } from './invariants.ts'
import {
  asAnswered,
  cancelTicket,
  discountOf,
  due,
  newOrderModel,
  type OrderModel,
  pay,
  sharesOf,
} from './order-model.ts'
import { expectProperty, withTime } from './property.ts'

const usualRuns = 12
const dearest = 100_000_000_000
/** One payment may not be more; an order of fifty of the dearest tickets takes several. */
const largestPayment = 1_000_000_000_000n

/** Few minor units, where rounding shows most; ordinary prices; the dearest. */
const price = fc.oneof(
  { weight: 1, arbitrary: fc.constant(0) },
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 250 }) },
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 1_000_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: dearest - 1000, max: dearest }) },
)

/** Hundredths of a per cent; halves are where rounding goes wrong. */
const percentage = fc.oneof(
  fc.integer({ min: 1, max: 10_000 }),
  fc.constantFrom(1, 50, 1250, 2500, 3333, 5000, 9999, 10_000),
)

/** What a promo code takes off. */
const discount = fc.oneof(
  fc.record({ hundredths: percentage }),
  fc.record({ amountOff: price.filter((amount) => amount > 0) }),
)

const step = fc.oneof(
  fc.record({ what: fc.constant('cancel' as const), ticket: fc.nat(49) }),
  fc.record({ what: fc.constant('pay' as const), share: fc.integer({ min: 0, max: 1000 }) }),
)

const sale = fc.record({
  // 0, 2 and 3 decimals: amounts are minor units in all of them.
  currency: fc.constantFrom('JPY', 'EUR', 'KWD'),
  ticketTypes: fc.array(fc.record({ price, discounted: fc.boolean() }), { minLength: 1, maxLength: 4 }),
  // undefined: without a promo code.
  discount: fc.option(discount, { nil: undefined, freq: 9 }),
  guests: fc.array(fc.nat(3), { minLength: 1, maxLength: 50, size: 'max' }),
  steps: fc.array(step, { maxLength: 8 }),
})
type Sale = typeof sale extends fc.Arbitrary<infer Value> ? Value : never

type Send = ReturnType<typeof rest>

async function data(answer: Promise<RestAnswer>) {
  const { status, body } = await answer
  if (status >= 300) throw new Error(`${status} ${JSON.stringify(body)}`)
  return body.data
}

/** A published event with what is for sale; the code is good for the types that are `discounted`, or for all of them. */
async function openSale(send: Send, { currency, ticketTypes, discount }: Sale) {
  const event = await data(
    send('POST', '/events', {
      name: 'Sale',
      currency,
      starts_at: '2040-01-01T10:00:00Z',
      ends_at: '2040-01-01T18:00:00Z',
    }),
  )
  const types: { id: string; price: number; discounted: boolean }[] = []
  for (const { price, discounted } of ticketTypes) {
    const { id } = await data(send('POST', `/events/${event.id}/ticket-types`, { name: 'Ticket', price }))
    types.push({ id, price, discounted })
  }
  await data(send('POST', `/events/${event.id}/publish`))

  const chosen = types.filter((type) => type.discounted)
  const isFor = (type: { discounted: boolean }) => chosen.length === 0 || type.discounted
  const promoCode =
    discount === undefined
      ? undefined
      : await data(
          send('POST', `/events/${event.id}/promo-codes`, {
            code: 'Random',
            ...('amountOff' in discount
              ? { amount_off: discount.amountOff }
              : { percent_off: discount.hundredths / 100 }),
            ticket_type_ids: chosen.map((type) => type.id),
          }),
        )
  return { eventId: event.id as string, types, isFor, promoCode }
}

/** The discount of each ticket, in the order of the guests; a price of 0 is of a ticket that the code is not for. */
function discountsOf(prices: bigint[], discount: Sale['discount']): bigint[] {
  if (discount === undefined) return prices.map(() => 0n)
  if ('amountOff' in discount) return sharesOf(prices, BigInt(discount.amountOff))
  return prices.map((price) => discountOf(price, discount.hundredths))
}

/** Registers the guests, by the code where it is any good. @returns the order's id, and what it ought to cost. */
async function register(send: Send, sale: Sale, opened: Awaited<ReturnType<typeof openSale>>) {
  const { eventId, types, isFor, promoCode } = opened
  const chosen = sale.guests.map((guest) => types[guest % types.length]!)
  const isUsed = promoCode !== undefined && chosen.some((type) => type.price > 0 && isFor(type))
  const body = {
    payment_method: 'invoice',
    attendees: chosen.map((type, i) => ({ ticket_type_id: type.id, name: `Guest ${i}`, email: `g${i}@example.com` })),
  }
  const path = `/events/${eventId}/registrations`
  if (promoCode && !isUsed) {
    const refused = await send('POST', path, { ...body, promo_code: 'RANDOM' })
    expect([refused.status, refused.body.error?.code]).toEqual([409, 'promo_code_not_applicable'])
  }
  const order = await data(send('POST', path, { ...body, ...(isUsed && { promo_code: 'RANDOM' }) }))
  const discounts = discountsOf(
    chosen.map((type) => (isUsed && isFor(type) ? BigInt(type.price) : 0n)),
    sale.discount,
  )
  const model = newOrderModel(chosen.map((type, i) => ({ price: BigInt(type.price), discount: discounts[i] ?? 0n })))
  expect(order).toMatchObject({ currency: sale.currency, ...asAnswered(model) })
  expectSafe(order)
  const used = isUsed ? chosen.filter((type) => type.price > 0 && isFor(type)).length : 0
  if (promoCode) expect(await timesRedeemed(send, promoCode.id)).toBe(used)
  return { order, model }
}

const timesRedeemed = async (send: Send, id: string) =>
  (await data(send('GET', `/promo-codes/${id}`))).times_redeemed as number

/** Every amount of the answer is a number that JSON and JavaScript carry exactly. */
function expectSafe(order: Record<string, unknown> & { attendees: { price: number; discount: number }[] }): void {
  const { subtotal, discount_total, total, amount_paid, amount_due } = order
  const amounts = [subtotal, discount_total, total, amount_paid, amount_due]
  expect(amounts.concat(order.attendees.flatMap((a) => [a.price, a.discount])).every(Number.isSafeInteger)).toBe(true)
}

const shareOf = (model: OrderModel, thousandths: number) => {
  const amount = (due(model) * BigInt(thousandths)) / 1000n
  return amount < 1n ? 1n : amount > largestPayment ? largestPayment : amount
}

/** Receives the amount, or sees it refused where the model says that it is too much. */
async function receive(send: Send, orderId: string, model: OrderModel, amount: bigint): Promise<void> {
  const { status, body } = await send('POST', `/orders/${orderId}/payments`, { amount: Number(amount) })
  if (model.status !== 'pending') {
    expect([status, body.error?.code]).toEqual([409, 'nothing_due'])
  } else if (amount > due(model)) {
    expect([status, body.error?.code, body.error?.details]).toEqual([
      409,
      'overpayment',
      { amount_due: Number(due(model)) },
    ])
  } else {
    expect(status).toBe(201)
    pay(model, amount)
    expect(body.data).toMatchObject(asAnswered(model))
    expectSafe(body.data)
  }
}

async function cancel(send: Send, attendeeId: string, model: OrderModel, index: number): Promise<void> {
  const { status, body } = await send('POST', `/attendees/${attendeeId}/cancel`)
  if (model.lines[index]?.cancelled) {
    expect([status, body.error?.code]).toEqual([409, 'invalid_transition'])
  } else {
    expect([status, body.data?.status]).toEqual([200, 'cancelled'])
    cancelTicket(model, index)
  }
}

test(
  'an order is the sum of the tickets that stand, and completes once with the last of its money',
  withTime(usualRuns),
  async () => {
    const key = await (await createOrganisation()).key()
    const send = rest(key)

    await expectProperty(
      usualRuns,
      fc.asyncProperty(sale, async (sale) => {
        const opened = await openSale(send, sale)
        const { order, model } = await register(send, sale, opened)
        const read = () => data(send('GET', `/orders/${order.id}`))

        for (const step of sale.steps) {
          if (step.what === 'pay') {
            await receive(send, order.id, model, shareOf(model, step.share))
          } else {
            const index = step.ticket % model.lines.length
            await cancel(send, order.attendees[index].id, model, index)
          }
          const now = await read()
          expect(now).toMatchObject(asAnswered(model))
          expectSafe(now)
        }

        // What is left, but not one unit more; then there is nothing left to pay, and the order was completed once.
        while (model.status === 'pending') {
          if (due(model) < largestPayment) await receive(send, order.id, model, due(model) + 1n)
          await receive(send, order.id, model, shareOf(model, 1000))
        }
        const completed = await read()
        await receive(send, order.id, model, 1n)
        const last = await read()
        expect(last).toEqual(completed)
        expect(last).toMatchObject(asAnswered(model))
        const payments = last.payments.map((payment: { amount: number }) => BigInt(payment.amount))
        expect(payments.reduce((sum: bigint, amount: bigint) => sum + amount, 0n)).toBe(model.paid)
        expect(await brokenRules(opened.eventId)).toEqual([])
        expect(await problemsOfBooks(opened.eventId, key)).toEqual([])
      }),
    )
  },
)
