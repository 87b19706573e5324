// What the outbox says of events, exactly: each action over both interfaces, and beside the type the event as a read answers it.

import { describe, expect, test } from 'vitest'
import { interfaces, overRest } from '../support/interfaces.ts'
import { byTypeAndId } from '../support/outbox.ts'
import { outboxFixture, tell } from './outbox-fixture.ts'

describe.each(interfaces)('%s', (_where, open) => {
  test.each([
    ['draft', 'published', 'event.published'],
    ['published', 'draft', 'event.updated'],
    ['published', 'completed', 'event.updated'],
    ['published', 'cancelled', 'event.cancelled'],
  ] as const)('an event that goes from %s to %s is notified as %s', async (from, to, type) => {
    const { actions, told, theEvent } = await outboxFixture(open, { status: from })
    await actions.setStatus(to)
    const event = await theEvent()
    expect(event.status).toBe(to)
    expect(await told()).toEqual([tell(type, event)])
  })

  test('an event that is edited is notified; one that is saved as it was, or refused, is not', async () => {
    const { actions, told, theEvent } = await outboxFixture(open)
    await actions.renameEvent('Summer fair')
    const event = await theEvent()
    expect(event).toMatchObject({ name: 'Summer fair', status: 'published' })
    expect(await told()).toEqual([tell('event.updated', event)])

    await actions.renameEvent('Summer fair')
    expect(await told()).toEqual([])
    await actions.setStatus('completed')
    await told()
    await expect(actions.setStatus('draft')).rejects.toThrow('invalid_transition')
    expect(await told()).toEqual([])
    await actions.setStatus('published')
    expect(await told()).toEqual([tell('event.updated', await theEvent())])
  })

  test('an event that is cancelled is notified with all of its orders and tickets that stood', async () => {
    const { event, actions, told, theEvent, order, attendeesOf, registered } = await outboxFixture(open)
    const ticketTypeId = await event.ticketType({ price: 4900 })
    const standing = [await registered({ guests: 2 }), await registered({ ticketTypeId, invoice: true })]
    await actions.cancelOrder(await registered())
    await told()

    await actions.setStatus('cancelled')
    const orders = await Promise.all(standing.map(order))
    const attendees = (await Promise.all(standing.map(attendeesOf))).flat()
    expect(attendees.map((a) => a.status)).toEqual(Array(3).fill('cancelled'))
    expect(await told()).toEqual(
      byTypeAndId([
        tell('event.cancelled', await theEvent()),
        ...orders.map((o) => tell('order.cancelled', o)),
        ...attendees.map((a) => tell('attendee.cancelled', a)),
      ]),
    )
  })
})

test('a new draft, its ticket types and its promo codes are no news', async () => {
  const { send, told } = await outboxFixture(overRest)
  const { id } = (await send('POST', '/events', { name: 'Fair' })).body.data
  const ticketType = (await send('POST', `/events/${id}/ticket-types`, { name: 'General' })).body.data
  await send('PATCH', `/ticket-types/${ticketType.id}`, { name: 'Everybody' })
  const promo = await send('POST', `/events/${id}/promo-codes`, { code: 'SPRING', percent_off: 20 })
  expect(promo.status).toBe(201)
  expect(await told()).toEqual([])
})

test('a dry run is no news, whatever it would cancel', async () => {
  const { event, send, told, attendeesOf, registered } = await outboxFixture(overRest)
  const empty = await outboxFixture(overRest)
  const orderId = await registered({ guests: 2 })
  const [first] = await attendeesOf(orderId)
  for (const [as, path] of [
    [send, `/attendees/${first?.id}/cancel`],
    [send, `/orders/${orderId}/cancel`],
    [send, `/events/${event.id}/cancel`],
    [empty.send, `/events/${empty.event.id}/unpublish`],
  ] as const) {
    const { status, body } = await as('POST', path, { dry_run: true })
    expect([status, body.effect.dry_run], path).toEqual([200, true])
  }
  expect([await told(), await empty.told()]).toEqual([[], []])
})
