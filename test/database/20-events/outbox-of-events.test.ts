// What the outbox says of events, exactly: each action over both interfaces, and beside the type the event as a read answers it.

import { describe, expect, test } from 'vitest'
import { interfaces, overRest } from '../../support/interfaces.ts'
import { byTypeAndId, type Told } from '../../support/outbox.ts'
import { edit } from '../../support/studio.ts'
import { outboxFixture, tell } from '../outbox-fixture.ts'

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

describe('of tickets that are sold out, by the quantity of their type or the capacity of the event', () => {
  const soldOut = async (told: () => Promise<Told[]>) =>
    (await told())
      .filter(({ type }) => type === 'ticket_type.sold_out')
      .map(({ data }) => {
        expect(data).toMatchObject({ sales_status: 'sold_out', quantity_available: 0 })
        return data.id
      })
  const both = (...ids: string[]) => ids.toSorted()

  test('each type is told of that had places left when the event is full, and again when it is full again', async () => {
    const { event, actions, told } = await outboxFixture(overRest)
    await edit('events', event.id, 'capacity = 3')
    const few = await event.ticketType({ quantity: 1 })
    const many = await event.ticketType()
    const archived = await event.ticketType()
    await edit('ticket_types', archived, "status = 'archived'")
    await told()

    await actions.register({ ticketTypeId: few })
    expect(await soldOut(told)).toEqual([few])
    await actions.register()
    expect(await soldOut(told)).toEqual([])
    const last = await actions.register({ ticketTypeId: many })
    expect(await soldOut(told)).toEqual(both(event.ticketTypeId, many))
    await expect(actions.register()).rejects.toThrow('sold_out')
    await actions.cancelOrder(last)
    expect(await soldOut(told)).toEqual([])
    await actions.register()
    expect(await soldOut(told)).toEqual(both(event.ticketTypeId, many))
  })

  test('a limit that is lowered to what is sold counts, but not below one that is used up', async () => {
    const { event, actions, told } = await outboxFixture(overRest)
    const other = await event.ticketType({ quantity: 5 })
    await actions.register({ guests: 2 })
    await edit('events', event.id, 'capacity = 5')
    await told()
    await edit('events', event.id, 'capacity = 2')
    expect(await soldOut(told)).toEqual(both(event.ticketTypeId, other))
    await edit('ticket_types', event.ticketTypeId, 'quantity = 2')
    expect(await soldOut(told)).toEqual([])
    await edit('events', event.id, 'capacity = null')
    await edit('ticket_types', event.ticketTypeId, 'quantity = 3')
    await edit('ticket_types', event.ticketTypeId, 'quantity = 2')
    expect(await soldOut(told)).toEqual([event.ticketTypeId])
  })

  test('a place that an offer of the waiting list holds stays taken, also once it is accepted', async () => {
    const { event, send, actions, told } = await outboxFixture(overRest)
    await edit('events', event.id, 'capacity = 1')
    const orderId = await actions.register()
    const joined = await send('POST', `/events/${event.id}/waiting-list`, {
      ticket_type_id: event.ticketTypeId,
      name: 'Mary',
      email: 'mary@example.com',
    })
    await told()
    await actions.cancelOrder(orderId)
    expect((await send('POST', `/waiting-list-entries/${joined.body.data.id}/accept`, {})).status).toBe(201)
    expect(await soldOut(told)).toEqual([])
  })
})
