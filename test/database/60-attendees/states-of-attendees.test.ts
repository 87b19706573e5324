// Attendees as an organiser edits them in Studio, beside their status: the steps from one to another are in
// test/states/attendees.test.ts, the places they hold in places.test.ts.

import { describe, expect, test } from 'vitest'
import { row } from '../../support/database.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { addAttendee, addOrder, edit, pay, read, refusalOfEdit } from '../../support/studio.ts'
import { expectExactCounts } from '../counts.ts'

type Status = 'active' | 'awaiting_payment' | 'cancelled'

async function attendeeThatIs(status: Status) {
  const event = await (await createOrganisation()).event()
  const order = await addOrder(event, { subtotal: status === 'awaiting_payment' ? 4900 : 0 })
  const id = order.attendeeIds[0] as string
  if (status === 'cancelled') await edit('attendees', id, "status = 'cancelled'")
  return { event, orderId: order.id, id }
}

const statusOf = async (id: string) => (await read('attendees', id, 'status')).status

describe('an attendee', () => {
  test('that was cancelled by itself is not revived when its order is paid', async () => {
    const { event, orderId, id } = await attendeeThatIs('awaiting_payment')
    const other = await addAttendee(orderId, event.ticketTypeId)
    await edit('attendees', id, "status = 'cancelled'")
    await pay(orderId, 4900)
    expect([await statusOf(id), await statusOf(other)]).toEqual(['cancelled', 'active'])
    await expectExactCounts(event)
  })

  test('that is new has the status of its order, its own code, and came in nowhere yet', async () => {
    const event = await (await createOrganisation()).event()
    const { id: orderId } = await addOrder(event, { ticketTypeIds: [] })
    const attendee = await row(
      `insert into public.attendees (order_id, ticket_type_id, name, email) values ($1, $2, 'Guest', 'guest@example.com')
       returning event_id, status, ticket_code, checked_in_at, cancelled_at`,
      [orderId, event.ticketTypeId],
    )
    expect(attendee).toEqual({
      event_id: event.id,
      status: 'active',
      ticket_code: expect.stringMatching(/^[0-9A-HJKMNP-TV-Z]{16}$/),
      checked_in_at: null,
      cancelled_at: null,
    })
    await expectExactCounts(event)
  })

  test('has a ticket code that is given and not chosen: clearing it gives a new one', async () => {
    const { event, id } = await attendeeThatIs('active')
    const { ticket_code: first } = await read('attendees', id, 'ticket_code')
    expect(await refusalOfEdit('attendees', id, "ticket_code = 'AAAAAAAAAAAAAAAA'")).toEqual({
      sqlstate: 'PT409',
      code: 'read_only_field',
      param: 'ticket_code',
    })
    expect((await read('attendees', id, 'ticket_code')).ticket_code).toBe(first)
    expect(await refusalOfEdit('attendees', id, "ticket_token = repeat('0', 32)")).toEqual({
      sqlstate: 'PT409',
      code: 'read_only_field',
      param: 'ticket_token',
    })

    await edit('attendees', id, 'ticket_code = null')
    const { ticket_code: second } = await read('attendees', id, 'ticket_code')
    expect(second).toMatch(/^[0-9A-HJKMNP-TV-Z]{16}$/)
    expect(second).not.toBe(first)
    const scan = 'insert into public.check_ins (event_id, code) values ($1, $2) returning result, reason'
    expect(await row(scan, [event.id, first])).toEqual({ result: 'rejected', reason: 'not_found' })
    expect(await row(scan, [event.id, second])).toEqual({ result: 'accepted', reason: null })
  })
})
