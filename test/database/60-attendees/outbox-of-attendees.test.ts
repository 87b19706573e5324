// What the outbox says of attendees, their tickets and the door, exactly: each action over both interfaces, and beside the type
// the attendee as a read answers them.

import { describe, expect, test } from 'vitest'
import { inStudio, interfaces, overRest } from '../../support/interfaces.ts'
import { byTypeAndId } from '../../support/outbox.ts'
import { edit } from '../../support/studio.ts'
import { outboxFixture, tell } from '../outbox-fixture.ts'

/** With an order of so many guests, of which nothing is left to hear. */
async function fixtureWith(open: (typeof interfaces)[number][1], guests: number) {
  const fixture = await outboxFixture(open)
  const orderId = await fixture.registered({ guests })
  const attendees = await fixture.attendeesOf(orderId)
  const [first] = attendees
  if (!first) throw new Error('nobody was registered')
  return { ...fixture, orderId, attendees, id: first.id, code: first.ticket_code }
}

const withScan = (attendee: Record<string, unknown>) => ({
  ...attendee,
  check_in: {
    id: expect.any(String),
    direction: 'entry',
    check_in_point: null,
    scanned_at: expect.any(String),
    device: null,
  },
})

describe.each(interfaces)('%s', (_where, open) => {
  test('a correction is notified, with the ticket that stays', async () => {
    const { actions, told, attendee, id, code } = await fixtureWith(open, 1)
    await actions.rename(id, 'Mary Jackson')
    const corrected = await attendee(id)
    expect(corrected).toMatchObject({ name: 'Mary Jackson', ticket_code: code, version: 2 })
    expect(await told()).toEqual([tell('attendee.updated', corrected)])
  })

  test('a transfer is notified, with the new ticket', async () => {
    const { actions, told, attendee, id, code } = await fixtureWith(open, 1)
    await actions.transfer(id)
    const transferred = await attendee(id)
    expect(transferred).toMatchObject({ name: 'Ada', email: 'ada@example.com' })
    expect(transferred.ticket_code).not.toBe(code)
    expect(await told()).toEqual([tell('attendee.updated', transferred)])
  })

  test('an attendee who is saved as they were is no news', async () => {
    const { actions, told, attendee, id } = await fixtureWith(open, 1)
    await actions.rename(id, String((await attendee(id)).name))
    expect(await told()).toEqual([])
  })

  test('the last who is cancelled takes the order along', async () => {
    const { actions, told, order, orderId, attendee, id } = await fixtureWith(open, 1)
    await actions.cancelAttendee(id)
    const cancelled = await order(orderId)
    expect(cancelled).toMatchObject({ status: 'cancelled', attendees: [{ status: 'cancelled' }] })
    expect(await told()).toEqual([tell('attendee.cancelled', await attendee(id)), tell('order.cancelled', cancelled)])
  })

  test('an accepted scan is notified, a rejected one is not', async () => {
    const { actions, told, attendee, id, code } = await fixtureWith(open, 1)
    expect((await actions.scan(code)).result).toBe('accepted')
    const inside = await attendee(id)
    expect(inside.checked_in_at).toEqual(expect.any(String))
    expect(await told()).toEqual([tell('attendee.checked_in', withScan(inside))])

    expect((await actions.scan(code)).result).toBe('rejected')
    expect((await actions.scan('NOTACODE')).result).toBe('rejected')
    expect(await told()).toEqual([])
  })

  test('a scan that is undone is notified, and not as an edit of the attendee', async () => {
    const { actions, told, attendee, id, code } = await fixtureWith(open, 1)
    const scan = await actions.scan(code)
    await told()
    await actions.undo(scan.id)
    const outside = await attendee(id)
    expect(outside.checked_in_at).toBeNull()
    expect(await told()).toEqual([tell('attendee.check_in_undone', withScan(outside))])

    await expect(actions.undo(scan.id)).rejects.toThrow('check_in_already_undone')
    expect(await told()).toEqual([])
  })
})

test('of a batch the accepted scans are notified, and of the same batch sent again nothing', async () => {
  const { send, event, told, attendees, attendee } = await fixtureWith(overRest, 2)
  const codes = [...attendees.map((a) => a.ticket_code), 'NOTACODE']
  const scans = codes.map((code, i) => ({ scan_id: `scan-${i}`, code, scanned_at: '2026-06-01T10:00:00Z' }))
  const batch = { event_id: event.id, scans }
  expect((await send('POST', '/check-ins/batch', batch)).body.data).toMatchObject({ accepted: 2, rejected: 1 })
  const inside = await Promise.all(attendees.map((a) => attendee(a.id)))
  expect(await told()).toEqual(byTypeAndId(inside.map((a) => tell('attendee.checked_in', withScan(a)))))

  await send('POST', '/check-ins/batch', batch)
  expect(await told()).toEqual([])
})

test('an attendee who is moved to another ticket type is notified', async () => {
  const { event, told, attendee, id } = await fixtureWith(inStudio, 1)
  const ticketTypeId = await event.ticketType()
  await edit('attendees', id, 'ticket_type_id = $2', [ticketTypeId])
  const moved = await attendee(id)
  expect(moved.ticket_type_id).toBe(ticketTypeId)
  expect(await told()).toEqual([tell('attendee.updated', moved)])
})
