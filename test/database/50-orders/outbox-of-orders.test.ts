// What the outbox says of orders and the money for them, exactly: each action over both interfaces, and beside the type the
// object as a read answers it.

import { describe, expect, test } from 'vitest'
import { during, row, studio } from '../../support/database.ts'
import { interfaces } from '../../support/interfaces.ts'
import type { TestEvent } from '../../support/organisation.ts'
import { byTypeAndId } from '../../support/outbox.ts'
import { addAttendee, addPromoCode } from '../../support/studio.ts'
import { outboxFixture, tell } from '../outbox-fixture.ts'

describe.each(interfaces)('%s', (_where, open) => {
  test('a complimentary registration is notified once as created and completed, without ticket codes', async () => {
    const { actions, told, order } = await outboxFixture(open)
    const made = await order(await actions.register({ guests: 3 }))
    const attendee = { status: 'active', ticket_code: null }
    expect(made).toMatchObject({ status: 'completed', attendees: Array(3).fill(attendee) })
    expect(await told()).toEqual([tell('order.completed', made), tell('order.created', made)])
  })

  test('an order to be paid is notified as created, with what is due', async () => {
    const { event, actions, told, order } = await outboxFixture(open)
    const ticketTypeId = await event.ticketType({ price: 4900 })
    const made = await order(await actions.register({ ticketTypeId, invoice: true }))
    expect(made).toMatchObject({ status: 'pending', amount_due: 4900, attendees: [{ status: 'awaiting_payment' }] })
    expect(await told()).toEqual([tell('order.created', made)])
  })

  test('an order of a promo code that leaves nothing to pay is notified as completed too', async () => {
    const { event, actions, told, order } = await outboxFixture(open)
    const ticketTypeId = await event.ticketType({ price: 4900 })
    const promoCode = await addPromoCode(event, 100)
    const made = await order(await actions.register({ ticketTypeId, invoice: true, promoCode }))
    expect(made).toMatchObject({ status: 'completed', discount_total: 4900, attendees: [{ status: 'active' }] })
    expect(await told()).toEqual([tell('order.completed', made), tell('order.created', made)])
  })

  test('each payment is notified of; the last completes the order and makes its tickets good', async () => {
    const { event, actions, told, order, paymentsOf, attendeesOf, registered } = await outboxFixture(open)
    const ticketTypeId = await event.ticketType({ price: 2000 })
    const id = await registered({ ticketTypeId, invoice: true, guests: 2 })
    await actions.pay(id, 1000)
    const [first = {}] = await paymentsOf(id)
    expect(await told()).toEqual([tell('order.updated', await order(id)), tell('payment.recorded', first)])

    await actions.pay(id, 3000)
    const [paid, attendees] = [await order(id), await attendeesOf(id)]
    expect(paid).toMatchObject({ status: 'completed', payments: [{ amount: 1000 }, { amount: 3000 }] })
    expect(attendees.map(({ status, ticket_code }) => [status, ticket_code.length])).toEqual([
      ['active', 16],
      ['active', 16],
    ])
    expect(await told()).toEqual(
      byTypeAndId([
        tell('order.completed', paid),
        tell('payment.recorded', (await paymentsOf(id))[1] ?? {}),
        ...attendees.map((a) => tell('attendee.updated', a)),
      ]),
    )
  })

  test('money that is refused is no news', async () => {
    const { event, actions, told, registered } = await outboxFixture(open)
    const id = await registered({ ticketTypeId: await event.ticketType({ price: 4900 }), invoice: true })
    await expect(actions.pay(id, 4901)).rejects.toThrow('overpayment')
    expect(await told()).toEqual([])
  })

  test.each([true, false])(
    'a cancelled order is notified with each of its tickets (to be paid: %s)',
    async (invoice) => {
      const { event, actions, told, order, attendeesOf, registered } = await outboxFixture(open)
      const id = await registered({ ticketTypeId: await event.ticketType({ price: 4900 }), invoice, guests: 3 })
      await actions.cancelOrder(id)
      const [cancelled, attendees] = [await order(id), await attendeesOf(id)]
      expect(cancelled).toMatchObject({ status: 'cancelled', attendees: Array(3).fill({ status: 'cancelled' }) })
      expect(await told()).toEqual(
        byTypeAndId([tell('order.cancelled', cancelled), ...attendees.map((a) => tell('attendee.cancelled', a))]),
      )
    },
  )

  test('of tickets that were cancelled before, the cancellation of their order says nothing again', async () => {
    const { actions, told, order, attendee, attendeesOf, registered } = await outboxFixture(open)
    const id = await registered({ guests: 2 })
    const [first, second] = (await attendeesOf(id)).map((a) => a.id) as [string, string]
    await actions.cancelAttendee(first)
    await told()
    await actions.cancelOrder(id)
    expect(await told()).toEqual([
      tell('attendee.cancelled', await attendee(second)),
      tell('order.cancelled', await order(id)),
    ])
  })

  test('an order that is cancelled already is not cancelled again', async () => {
    const { actions, told, registered } = await outboxFixture(open)
    const id = await registered()
    await actions.cancelOrder(id)
    await told()
    // Studio may save a row as it is; the API says that there is nothing to cancel.
    await actions.cancelOrder(id).catch((refusal) => expect(refusal.message).toBe('invalid_transition'))
    expect(await told()).toEqual([])
  })
})

test('edits of an order are told once a transaction, and never beside what became of it', async () => {
  const { event, told, order, registered } = await outboxFixture(interfaces[1][1])
  const id = await registered({ ticketTypeId: await event.ticketType({ price: 4900 }), invoice: true })
  const types = async (...statements: string[]) => {
    await during(async (client) => {
      for (const sql of statements) await client.query(sql, [id])
      await client.query('commit')
    })
    return (await told()).map(({ type }) => type)
  }
  const rename = "update public.orders set name = 'Office ' || version where id = $1"
  const pay = 'insert into public.payments (order_id, amount) values ($1, 2450)'
  const cancel = "update public.orders set status = 'cancelled' where id = $1"

  await during(async (client) => {
    for (const sql of [rename, rename]) await client.query(sql, [id])
    await client.query('commit')
  })
  expect(await told()).toEqual([tell('order.updated', await order(id))])
  expect(await types('update public.orders set name = name where id = $1')).toEqual([])
  expect(await types(pay, rename)).toEqual(['order.updated', 'payment.recorded'])
  expect(await types(rename, pay, rename)).toEqual(['attendee.updated', 'order.completed', 'payment.recorded'])
  expect(await types(rename, cancel, rename)).toEqual(['attendee.cancelled', 'order.cancelled'])
})

describe('an order that is added in Studio row by row', () => {
  const addRow = async (event: TestEvent, columns: Record<string, string> = {}) => {
    const { id } = await row<{ id: string }>(
      `insert into public.orders (event_id, name, email, payment_method, promo_code)
       values ($1, 'Guest', 'g@example.com', $2, $3) returning id`,
      [event.id, columns.payment_method ?? null, columns.promo_code ?? null],
    )
    return id
  }

  test('is announced with its first attendee; the next is news of its own', async () => {
    const { event, told, order, attendee } = await outboxFixture(interfaces[1][1])
    const id = await addRow(event)
    expect(await told()).toEqual([])

    await addAttendee(id, event.ticketTypeId)
    const made = await order(id)
    expect(made.attendees).toHaveLength(1)
    expect(await told()).toEqual([tell('order.completed', made), tell('order.created', made)])

    const second = await attendee(await addAttendee(id, event.ticketTypeId))
    expect(await told()).toEqual([tell('attendee.created', second)])
  })

  test('is announced once, with all that one transaction adds', async () => {
    const { event, told, order } = await outboxFixture(interfaces[1][1])
    const id = await addRow(event)
    await during(async (client) => {
      for (const name of ['Ada', 'Mary']) {
        await client.query(
          "insert into public.attendees (order_id, ticket_type_id, name, email) values ($1, $2, $3, 'g@example.com')",
          [id, event.ticketTypeId, name],
        )
      }
      await client.query('commit')
    })
    const made = await order(id)
    expect(made.attendees).toHaveLength(2)
    expect(await told()).toEqual([tell('order.completed', made), tell('order.created', made)])
  })

  test('and is to be paid completes when it is paid, or at once where a code leaves nothing', async () => {
    const { event, told, order } = await outboxFixture(interfaces[1][1])
    const ticketTypeId = await event.ticketType({ price: 4900 })
    const unpaid = await addRow(event, { payment_method: 'invoice' })
    await addAttendee(unpaid, ticketTypeId)
    expect(await told()).toEqual([tell('order.created', await order(unpaid))])

    const free = await addRow(event, { payment_method: 'invoice', promo_code: await addPromoCode(event, 100) })
    await addAttendee(free, ticketTypeId)
    const made = await order(free)
    expect(made).toMatchObject({ status: 'completed', attendees: [{ status: 'active' }] })
    expect(await told()).toEqual([tell('order.completed', made), tell('order.created', made)])
  })

  test('and stays without attendees says nothing when it is cancelled or deleted', async () => {
    const { event, actions, told } = await outboxFixture(interfaces[1][1])
    await actions.cancelOrder(await addRow(event))
    await studio.query('delete from public.orders where id = $1', [await addRow(event)])
    expect(await told()).toEqual([])
  })
})
