// Places: taken by attendees, given back, moved from one ticket type to another, in Studio. After everything that moves one,
// the count is compared with a count of the rows.

import { describe, expect, test } from 'vitest'
import { refusalOf, studio } from '../../support/database.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { addOrder, edit, refusalOfEdit, remove } from '../../support/studio.ts'
import { expectExactCounts } from '../counts.ts'

describe('places', () => {
  test('are given back when an attendee is cancelled, and not once more when they are deleted', async () => {
    const event = await (await createOrganisation()).event({ quantity: 2 })
    const [{ attendeeId }] = [await event.guest(), await event.guest()]
    await edit('attendees', attendeeId, "status = 'cancelled'")
    await remove('attendees', attendeeId)
    expect(await event.sold()).toBe(1)
    await expectExactCounts(event)
  })

  test('are counted once for a statement that adds or cancels many, and not again when these are deleted', async () => {
    const event = await (await createOrganisation()).event({ quantity: 30 })
    const other = await event.ticketType()
    const { id: orderId } = await addOrder(event, { ticketTypeIds: [] })
    const addMany = (n: number, ticketTypeId: string) =>
      studio.query(
        `insert into public.attendees (order_id, ticket_type_id, name, email)
         select $1, $2, 'Guest ' || i, 'guest@example.com' from generate_series(1, $3) i`,
        [orderId, ticketTypeId, n],
      )
    await addMany(30, event.ticketTypeId)
    await addMany(5, other)
    expect([await event.sold(), await event.sold(other)]).toEqual([30, 5])
    expect(await refusalOf(addMany(1, event.ticketTypeId))).toMatchObject({ code: 'sold_out' })

    await studio.query("update public.attendees set status = 'cancelled' where order_id = $1 and name ~ '[1-3]$'", [
      orderId,
    ])
    await expectExactCounts(event)
    const sold = [await event.sold(), await event.sold(other)]
    await studio.query("delete from public.attendees where order_id = $1 and status = 'cancelled'", [orderId])
    expect([await event.sold(), await event.sold(other)]).toEqual(sold)
    await expectExactCounts(event)
  })

  test('are taken whole or not at all: three for two that are left are refused', async () => {
    const event = await (await createOrganisation()).event({ quantity: 3 })
    const { orderId } = await event.guest()
    const addThree = studio.query(
      `insert into public.attendees (order_id, ticket_type_id, name, email)
       select $1, $2, 'Guest', 'guest@example.com' from generate_series(1, 3)`,
      [orderId, event.ticketTypeId],
    )
    expect(await refusalOf(addThree)).toEqual({
      sqlstate: 'PT409',
      code: 'sold_out',
      param: 'ticket_type_id',
      details: { ticket_type_id: event.ticketTypeId },
    })
    expect(await event.sold()).toBe(1)
    await expectExactCounts(event)
  })

  test('that are too few are refused with a way out that there is', async () => {
    const event = await (await createOrganisation()).event({ quantity: 3 })
    const { orderId } = await event.guest()
    const hintFor = async (guests: number) => {
      const refused = await studio
        .query(
          `insert into public.attendees (order_id, ticket_type_id, name, email)
           select $1, $2, 'Guest', 'guest@example.com' from generate_series(1, $3)`,
          [orderId, event.ticketTypeId, guests],
        )
        .catch((error) => error)
      expect(JSON.parse(refused.detail)).toMatchObject({ code: 'sold_out' })
      return refused.hint
    }
    expect(await hintFor(3)).toMatch(/^Register fewer people/)
    // A pair is not to be had any more, and the waiting list is for one ticket.
    await edit('ticket_types', event.ticketTypeId, 'min_per_order = 3')
    expect(await hintFor(3)).toBe('Choose another ticket type, or raise its quantity.')
    await edit('ticket_types', event.ticketTypeId, 'min_per_order = 1, quantity = 1')
    expect(await hintFor(1)).toMatch(/waiting list/)
  })
})

describe('a change of ticket type', () => {
  test('moves the place with it', async () => {
    const event = await (await createOrganisation()).event({ quantity: 1 })
    const other = await event.ticketType({ quantity: 1 })
    const { attendeeId } = await event.guest()
    await edit('attendees', attendeeId, 'ticket_type_id = $2', [other])
    expect([await event.sold(), await event.sold(other)]).toEqual([0, 1])
    await edit('attendees', attendeeId, 'ticket_type_id = $2', [event.ticketTypeId])
    expect([await event.sold(), await event.sold(other)]).toEqual([1, 0])
    await expectExactCounts(event)
  })

  test('moves no place of somebody who is cancelled', async () => {
    const event = await (await createOrganisation()).event()
    const other = await event.ticketType({ quantity: 0 })
    const { attendeeId } = await event.guest()
    await edit('attendees', attendeeId, "status = 'cancelled'")
    await edit('attendees', attendeeId, 'ticket_type_id = $2', [other])
    expect([await event.sold(), await event.sold(other)]).toEqual([0, 0])
    await expectExactCounts(event)
  })

  test.each([
    ['sold out', 'quantity = 0', 'sold_out'],
    ['archived', "status = 'archived'", 'ticket_type_archived'],
  ])('to one that is %s is refused, and nobody loses their place', async (_what, assignment, code) => {
    const event = await (await createOrganisation()).event()
    const other = await event.ticketType()
    await edit('ticket_types', other, assignment)
    const { attendeeId } = await event.guest()
    expect(await refusalOfEdit('attendees', attendeeId, 'ticket_type_id = $2', [other])).toEqual({
      sqlstate: 'PT409',
      code,
      param: 'ticket_type_id',
      details: { ticket_type_id: other },
    })
    expect([await event.sold(), await event.sold(other)]).toEqual([1, 0])
    await expectExactCounts(event)
  })

  test('to one of another event is refused', async () => {
    const organisation = await createOrganisation()
    const [event, other] = await Promise.all([organisation.event(), organisation.event()])
    const { attendeeId } = await event.guest()
    expect(await refusalOfEdit('attendees', attendeeId, 'ticket_type_id = $2', [other.ticketTypeId])).toEqual({
      sqlstate: 'PT404',
      code: 'not_found',
      param: 'ticket_type_id',
    })
    await expectExactCounts(event)
    await expectExactCounts(other)
  })

  // Places move in the order of the ticket types' ids, so one of the two takes a place before it gives one back.
  test.each(['a newer', 'an older'])(
    'to %s one is possible in a full event, where nobody is added',
    async (direction) => {
      const event = await (await createOrganisation()).event({ capacity: 1 })
      const newer = await event.ticketType()
      const [from, to] = direction === 'a newer' ? [event.ticketTypeId, newer] : [newer, event.ticketTypeId]
      const { attendeeId } = await event.guest({ ticketTypeId: from })
      await edit('attendees', attendeeId, 'ticket_type_id = $2', [to])
      expect([await event.sold(from), await event.sold(to)]).toEqual([0, 1])
      await expectExactCounts(event)
    },
  )

  test('of two people who swap is possible though both types are sold out', async () => {
    const event = await (await createOrganisation()).event({ quantity: 1, capacity: 2 })
    const other = await event.ticketType({ quantity: 1 })
    const guests = [await event.guest(), await event.guest({ ticketTypeId: other })].map((g) => g.attendeeId)
    await studio.query(
      'update public.attendees set ticket_type_id = case ticket_type_id when $1 then $2::uuid else $1 end where id = any ($3)',
      [event.ticketTypeId, other, guests],
    )
    expect([await event.sold(), await event.sold(other)]).toEqual([1, 1])
    await expectExactCounts(event)
  })
})

describe('a ticket type', () => {
  test('cannot have fewer tickets than are out', async () => {
    const event = await (await createOrganisation()).event()
    const guest = await event.guest()
    await event.guest()
    expect(await refusalOfEdit('ticket_types', event.ticketTypeId, 'quantity = 1')).toEqual({
      sqlstate: 'PT409',
      code: 'quantity_below_sold',
      param: 'quantity',
      details: { quantity_sold: 2 },
    })
    await edit('ticket_types', event.ticketTypeId, 'quantity = 2')
    await edit('attendees', guest.attendeeId, "status = 'cancelled'")
    await edit('ticket_types', event.ticketTypeId, 'quantity = 1')
    await expectExactCounts(event)
  })
})
