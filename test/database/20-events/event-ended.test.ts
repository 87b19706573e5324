// An event that has ended: no place is sold any more over any interface; corrections stay possible. What each status does then is
// in test/states/events.test.ts.

import { describe, expect, test } from 'vitest'
import { refusalOf, studio } from '../../support/database.ts'
import { createOrganisation, type TestEvent } from '../../support/organisation.ts'
import { rest } from '../../support/rest.ts'
import { addAttendee, edit } from '../../support/studio.ts'
import { expectExactCounts } from '../counts.ts'

const end = (event: TestEvent) =>
  edit('events', event.id, "starts_at = now() - interval '2 hours', ends_at = now() - interval '1 hour'")

/** With a guest and somebody who has not paid yet, both from before its end. */
async function eventThatEnded() {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const guest = await event.guest()
  const payer = await event.payer()
  await end(event)
  return { event, guest, payer, send: rest(await organisation.key()) }
}

const refused = { sqlstate: 'PT409', code: 'event_ended', param: 'event_id', details: { ends_at: expect.any(String) } }

describe('an event that has ended', () => {
  test('takes no order and no attendee by hand, also none for an order from before', async () => {
    const { event, guest } = await eventThatEnded()
    expect(await refusalOf(event.guest())).toEqual(refused)
    expect(await refusalOf(addAttendee(guest.orderId, event.ticketTypeId))).toEqual(refused)
    await expectExactCounts(event)
  })

  test('gives nobody a place of another ticket type, not even in exchange', async () => {
    const { event, guest } = await eventThatEnded()
    const other = await event.ticketType()
    expect(await refusalOf(edit('attendees', guest.attendeeId, 'ticket_type_id = $2', [other]))).toEqual(refused)
    await expectExactCounts(event)
  })

  test('is refused to registrations over the API, and its ticket types have ended', async () => {
    const { event, send } = await eventThatEnded()
    const guest = { ticket_type_id: event.ticketTypeId, name: 'Late', email: 'late@example.com' }
    const { status, body } = await send('POST', `/events/${event.id}/registrations`, guest)
    expect([status, body.error.code, body.error.param]).toEqual([409, 'event_ended', 'event_id'])
    const listed = await send('GET', `/events/${event.id}/ticket-types`)
    expect(listed.body.data[0].sales_status).toBe('ended')
  })

  test('lets in those who have a ticket', async () => {
    const { event, guest, send } = await eventThatEnded()
    const { status, body } = await send('POST', '/check-ins', { event_id: event.id, code: guest.code })
    expect([status, body.data.result]).toEqual([200, 'accepted'])
  })

  test('has its attendees corrected, its orders paid and cancelled, and itself completed', async () => {
    const { event, guest, payer, send } = await eventThatEnded()
    const steps: [method: string, path: string, body?: object][] = [
      ['PATCH', `/attendees/${guest.attendeeId}`, { name: 'Renamed' }],
      ['POST', `/orders/${payer.orderId}/payments`, { amount: 4900 }],
      ['POST', `/orders/${payer.orderId}/cancel`],
      ['POST', `/attendees/${guest.attendeeId}/cancel`],
      ['PATCH', `/events/${event.id}`, { starts_at: '2026-01-01T00:00:00Z', ends_at: '2026-01-02T00:00:00Z' }],
      ['POST', `/events/${event.id}/complete`],
    ]
    for (const [method, path, body] of steps) {
      const { status } = await send(method, path, body)
      expect([path, status < 300]).toEqual([path, true])
    }
    await expectExactCounts(event)
  })

  test('goes on, and takes people again, with a later end', async () => {
    const { event } = await eventThatEnded()
    await edit('events', event.id, "ends_at = now() + interval '1 hour'")
    await event.guest()
    expect(await event.sold()).toBe(2)
  })
})

test('a registration that began before the end of the event is made', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const client = await studio.connect()
  try {
    await client.query('begin')
    await client.query('select now()')
    await edit('events', event.id, "starts_at = now() - interval '1 hour', ends_at = clock_timestamp()")
    await client.query("insert into public.orders (event_id, name, email) values ($1, 'Guest', 'guest@example.com')", [
      event.id,
    ])
    await client.query('commit')
  } finally {
    client.release()
  }
  expect(await refusalOf(event.guest())).toEqual(refused)
})
