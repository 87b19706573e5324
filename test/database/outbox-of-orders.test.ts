// What the outbox says of orders and the money for them, exactly: each action over both interfaces, and beside the type the
// object as a read answers it.

import { describe, expect, test } from 'vitest'
import { interfaces } from '../support/interfaces.ts'
import { byTypeAndId } from '../support/outbox.ts'
import { addPromoCode, edit } from '../support/studio.ts'
import { outboxFixture, tell } from './outbox-fixture.ts'

describe.each(interfaces)('%s', (_where, open) => {
  test('a complimentary registration is notified as created and completed, without ticket codes', async () => {
    const { actions, told, order } = await outboxFixture(open)
    const made = await order(await actions.register())
    expect(made).toMatchObject({ status: 'completed', attendees: [{ status: 'active', ticket_code: null }] })
    expect(await told()).toEqual([tell('order.completed', made), tell('order.created', made)])
  })

  test('a group is notified once, with everybody in it', async () => {
    const { actions, told, order } = await outboxFixture(open)
    const made = await order(await actions.register({ guests: 3 }))
    expect(made.attendees).toHaveLength(3)
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
    const news = await told()
    expect(news.filter(({ type }) => type.startsWith('order.'))).toEqual([
      tell('order.completed', made),
      tell('order.created', made),
    ])
  })

  test('each payment is notified of; the last completes the order and makes its tickets good', async () => {
    const { event, actions, told, order, paymentsOf, attendeesOf, registered } = await outboxFixture(open)
    const ticketTypeId = await event.ticketType({ price: 2000 })
    const id = await registered({ ticketTypeId, invoice: true, guests: 2 })
    await actions.pay(id, 1000)
    expect(await told()).toEqual([tell('payment.recorded', (await paymentsOf(id))[0] ?? {})])

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

test('an order that is only renamed is no news: there is no type for it', async () => {
  const { told, registered } = await outboxFixture(interfaces[1][1])
  const id = await registered()
  await edit('orders', id, "name = 'Renamed'")
  expect(await told()).toEqual([])
})
