// Every order in which a ticket is cancelled, money comes in, a payment is voided and money is returned, up to a length, held against the
// model after each step. Two sequences that lead to the same state of the model are walked on from once.

import type pg from 'pg'
import { expect, test } from 'vitest'
import { during, refusalOf } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { addOrder } from '../support/studio.ts'
import {
  asAnswered,
  cancelTicket,
  due,
  newOrderModel,
  type OrderModel,
  pay,
  refund,
  voidPayment,
} from './order-model.ts'

const longest = 8
const price = 100n

/** An order of two tickets, and its payments that stand, in the order in which they came. */
type State = { model: OrderModel; payments: bigint[] }

/** What it does to the model, or the code with which it is refused; undefined: there is nothing to do it to. */
type Step = { sql: string; on: (state: State) => string | (() => void) | undefined }

const steps: Record<string, Step> = {
  cancel: {
    sql: `update public.attendees set status = 'cancelled'
      where id = (select a.id from public.attendees a where a.order_id = $1 and a.status <> 'cancelled' order by a.id limit 1)`,
    on: ({ model }) => {
      const next = model.lines.findIndex((line) => !line.cancelled)
      return next < 0 ? undefined : () => cancelTicket(model, next)
    },
  },
  pay: {
    sql: `insert into public.payments (order_id, amount) values ($1, ${price})`,
    on: ({ model, payments }) => {
      if (model.status !== 'pending' && due(model) === 0n) return 'nothing_due'
      if (price > due(model)) return 'overpayment'
      return () => {
        pay(model, price)
        payments.push(price)
      }
    },
  },
  void: {
    sql: `insert into public.payment_voids (payment_id)
      select p.id from public.payments p
      where p.order_id = $1 and not exists (select from public.payment_voids v where v.payment_id = p.id)
      order by p.id limit 1`,
    on: ({ model, payments }) => {
      const [first] = payments
      if (first === undefined) return undefined
      if (model.paid - first < model.refunded) return 'payment_refunded'
      return () => voidPayment(model, payments.shift()!)
    },
  },
  'refund a half': {
    sql: `insert into public.refunds (order_id, amount) values ($1, ${price / 2n})`,
    on: ({ model }) => {
      const isCovered = model.paid >= model.subtotal - model.discountTotal
      if (model.status === 'pending' || (model.status === 'completed' && !isCovered)) return 'payment_due'
      if (model.paid === model.refunded) return 'nothing_refundable'
      return () => refund(model, price / 2n)
    },
  },
}

const keyOf = ({ model, payments }: State) =>
  [model.status, model.lines.map((line) => line.cancelled), payments, model.paid, model.refunded].join(' ')

async function answered(client: pg.PoolClient, orderId: string) {
  const { rows } = await client.query<{ order: Record<string, unknown> }>(
    'select private.whole_order_json($1) as order',
    [orderId],
  )
  return rows[0]?.order
}

/** What the lines for accounting come to. */
async function booked(client: pg.PoolClient, orderId: string): Promise<bigint> {
  const { rows } = await client.query<{ sum: string }>(
    'select coalesce(sum(l.amount), 0) as sum from public.payment_export l where l.order_id = $1',
    [orderId],
  )
  return BigInt(rows[0]?.sum ?? '')
}

test('what is due is what the tickets cost less what was received and not returned, in whatever order', async () => {
  const event = await (await createOrganisation()).event()
  const { id } = await addOrder(event, {
    subtotal: Number(price),
    ticketTypeIds: [event.ticketTypeId, event.ticketTypeId],
  })
  const line = { price, discount: 0n }
  const seen = new Map<string, number>()

  await during(async (client) => {
    async function walk(state: State, way: string[]): Promise<void> {
      if (way.length === longest || (seen.get(keyOf(state)) ?? longest) <= way.length) return
      seen.set(keyOf(state), way.length)
      for (const [name, { sql, on }] of Object.entries(steps)) {
        const next = structuredClone(state)
        const what = on(next)
        if (what === undefined) continue
        const path = [...way, name]
        await client.query('savepoint step')
        if (typeof what === 'string') {
          expect([path, await refusalOf(client.query(sql, [id]))]).toMatchObject([path, { code: what }])
        } else {
          what()
          await client.query(sql, [id])
          expect([path, await answered(client, id)]).toMatchObject([path, asAnswered(next.model)])
          expect([path, await booked(client, id)]).toEqual([path, next.model.paid - next.model.refunded])
          await walk(next, path)
        }
        await client.query('rollback to savepoint step; release savepoint step')
      }
    }
    await walk({ model: newOrderModel([line, line]), payments: [] }, [])
  })
  expect(seen.size).toBeGreaterThan(30)
})
