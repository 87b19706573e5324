// Check-in points: what each admits, when and how often.

import { expect, test } from 'vitest'
import { studio } from '../support/database.ts'
import { once } from '../support/once.ts'
import { createOrganiser } from '../support/organiser.ts'
import { invalid, problemOf } from '../support/rest.ts'

async function venue() {
  const { organisation, event, send } = await createOrganiser({ madeAt: '2025-10-01' })
  const point = async (fields: Record<string, unknown> = {}) => {
    const { status, body } = await send('POST', `/events/${event.id}/check-in-points`, { name: 'Gate', ...fields })
    expect(status, JSON.stringify(body)).toBe(201)
    return body.data
  }
  const scan = async (code: string, pointId?: string, direction?: string) => {
    const { status, body } = await send('POST', '/check-ins', {
      event_id: event.id,
      code,
      check_in_point_id: pointId,
      direction,
    })
    return status === 200 ? body.data : body.error
  }
  const upload = async (...scans: Record<string, unknown>[]) => {
    const { status, body } = await send('POST', '/check-ins/batch', { event_id: event.id, scans })
    expect(status, JSON.stringify(body)).toBe(200)
    return body.data.results.map(({ check_in }: { check_in: Record<string, unknown> }) => check_in)
  }
  const summary = async () => (await send('GET', `/events/${event.id}/summary`)).body.data.check_in_points
  return { organisation, event, send, point, scan, upload, summary }
}

const refusing = once(venue)

test('a point is created, listed, read, changed, archived, and deleted while nothing was scanned', async () => {
  const { event, send, point, scan } = await venue()
  const gate = await point()
  expect(gate).toMatchObject({ object: 'check_in_point', admission: 'once', ticket_type_ids: [], status: 'active' })
  const day = await point({ name: 'Saturday', admission: 'once_per_day', opens_at: '2027-05-01T08:00:00+02:00' })
  const list = await send('GET', `/events/${event.id}/check-in-points?limit=1`)
  expect(list.body).toMatchObject({ data: [gate], has_more: true })
  expect((await send('GET', `/events/${event.id}/check-in-points?cursor=${list.body.next_cursor}`)).body.data).toEqual([
    day,
  ])
  const changed = await send('PATCH', `/check-in-points/${gate.id}`, { name: 'Main gate' })
  expect(changed.body.data).toMatchObject({ name: 'Main gate', version: 2 })
  expect((await send('GET', `/check-in-points/${gate.id}`)).body.data).toEqual(changed.body.data)

  expect((await send('DELETE', `/check-in-points/${day.id}`)).body.data).toMatchObject({ id: day.id, deleted: true })
  expect(await scan('no such code', gate.id)).toMatchObject({ code: 'not_found' })
  expect((await send('DELETE', `/check-in-points/${gate.id}`)).body.error).toMatchObject({ code: 'in_use' })
  expect((await send('PATCH', `/check-in-points/${gate.id}`, { admission: 're_entry' })).body.error).toMatchObject({
    code: 'in_use',
    param: 'admission',
  })
  expect((await send('PATCH', `/check-in-points/${gate.id}`, { status: 'archived' })).status).toBe(200)
  expect(await scan((await event.guest()).code, gate.id)).toMatchObject({ code: 'point_closed' })
})

test.each([
  [{ name: '' }, 'name'],
  [{ admission: 'twice' }, 'admission'],
  [{ opens_at: '2027-05-02T00:00:00Z', closes_at: '2027-05-01T00:00:00Z' }, 'closes_at'],
  [{ ticket_type_ids: ['00000000-0000-4000-8000-000000000000'] }, 'ticket_type_ids'],
])('a point with %j is refused for its %s', async (fields, param) => {
  const { event, send } = await refusing()
  expect(problemOf(await send('POST', `/events/${event.id}/check-in-points`, { name: 'Gate', ...fields }))).toEqual(
    invalid(param),
  )
})

test('a ticket counts once at each point, and once without one', async () => {
  const { event, point, scan, summary } = await venue()
  const [gate, workshop] = [await point(), await point({ name: 'Workshop' })]
  const { code } = await event.guest()
  await event.guest()
  const first = await scan(code, gate.id)
  expect(first).toMatchObject({ result: 'accepted', check_in_point_id: gate.id, direction: 'entry', exited_at: null })
  expect(await scan(code, gate.id)).toMatchObject({
    code: 'already_checked_in',
    details: { check_in: { earlier: { id: first.id, scanned_at: first.scanned_at } } },
  })
  expect(await scan(code, workshop.id)).toMatchObject({
    result: 'accepted',
    attendee: { checked_in_at: first.attendee.checked_in_at },
  })
  expect(await scan(code)).toMatchObject({ result: 'accepted' })
  expect(await scan(code)).toMatchObject({ code: 'already_checked_in' })
  expect(await summary()).toMatchObject([
    { id: gate.id, name: 'Gate', expected: 2, arrived: 1, inside: 1 },
    { id: workshop.id, expected: 2, arrived: 1, inside: 1 },
  ])
})

test('a point admits its ticket types, in its window, and is of its event', async () => {
  const { event, organisation, point, scan, summary } = await venue()
  const vip = await event.ticketType({ name: 'VIP' })
  const lounge = await point({ ticket_type_ids: [vip] })
  const late = await point({ opens_at: '2090-01-01T00:00:00Z' })
  const over = await point({ closes_at: '2020-01-01T00:00:00Z' })
  const { code } = await event.guest()
  expect(await scan(code, lounge.id)).toMatchObject({ code: 'not_admitted_here', param: 'code' })
  expect(await scan((await event.guest({ ticketTypeId: vip })).code, lounge.id)).toMatchObject({ result: 'accepted' })
  for (const { id } of [late, over]) {
    expect(await scan(code, id)).toMatchObject({ code: 'point_closed', param: 'check_in_point_id' })
  }
  expect((await summary())[0]).toMatchObject({ expected: 1, arrived: 1 })
  const other = await organisation.event()
  const stranger = { ...(await venue()), id: other.id }
  expect(await scan(code, (await stranger.point()).id)).toMatchObject({ code: 'not_found', param: 'check_in_point_id' })
})

test('once a day is by the time zone of the event', async () => {
  const { event, point, upload } = await venue()
  const { id } = await point({ admission: 'once_per_day' })
  const { code } = await event.guest()
  // Europe/Berlin is an hour ahead of UTC in January: the second and third are of one day there.
  const times = ['2026-01-01T22:59:00Z', '2026-01-01T23:01:00Z', '2026-01-02T22:59:00Z', '2026-01-02T23:01:00Z']
  const scans = times.map((scanned_at, i) => ({ scan_id: `s${i}`, code, scanned_at, check_in_point_id: id }))
  expect((await upload(...scans)).map(({ reason }: { reason: string }) => reason)).toEqual([
    null,
    null,
    'already_checked_in',
    null,
  ])
})

test('an exit lets the same ticket in again where that is allowed, and can be undone', async () => {
  const { organisation, event, send, point, scan, summary } = await venue()
  const [gate, once] = [await point({ admission: 're_entry' }), await point()]
  const { code } = await event.guest()
  expect(await scan(code, gate.id, 'exit')).toMatchObject({ code: 'not_inside', param: 'code' })
  const entry = await scan(code, gate.id)
  const exit = await scan(code, gate.id, 'exit')
  expect(exit).toMatchObject({ result: 'accepted', direction: 'exit', earlier: { id: entry.id } })
  expect((await summary())[0]).toMatchObject({ arrived: 1, inside: 0 })
  expect((await send('POST', `/check-ins/${exit.id}/undo`)).status).toBe(200)
  expect(await scan(code, gate.id)).toMatchObject({ code: 'already_checked_in' })
  const left = await scan(code, gate.id, 'exit')
  expect(await scan(code, gate.id, 'exit')).toMatchObject({ code: 'not_inside' })
  expect(await scan(code, gate.id)).toMatchObject({
    result: 'accepted',
    attendee: { checked_in_at: entry.attendee.checked_in_at },
  })
  expect((await send('POST', `/check-ins/${left.id}/undo`)).body.error).toMatchObject({ code: 'already_checked_in' })

  await scan(code, once.id)
  expect(await scan(code, once.id, 'exit')).toMatchObject({ result: 'accepted' })
  expect(await scan(code, once.id)).toMatchObject({ code: 'already_checked_in' })
  expect((await summary())[1]).toMatchObject({ arrived: 1, inside: 0 })

  const { rows: told } = await studio.query(
    `select type, data from public.notifications where organisation_id = $1 and type::text like 'attendee.check%' order by id`,
    [organisation.id],
  )
  expect(told.map(({ type, data }) => [type, data.check_in.check_in_point])).toEqual([
    ['attendee.checked_in', { id: gate.id, name: 'Gate' }],
    ['attendee.checked_out', { id: gate.id, name: 'Gate' }],
    ['attendee.check_in_undone', { id: gate.id, name: 'Gate' }],
    ['attendee.checked_out', { id: gate.id, name: 'Gate' }],
    ['attendee.checked_in', { id: gate.id, name: 'Gate' }],
    ['attendee.checked_in', { id: once.id, name: 'Gate' }],
    ['attendee.checked_out', { id: once.id, name: 'Gate' }],
  ])
})

test('at the event itself people enter, leave and return, and who is inside is listed and counted', async () => {
  const { event, send, scan } = await venue()
  const [{ code, attendeeId }, other] = [await event.guest(), await event.guest()]
  const inside = async () => {
    const ids = async (filter: string) =>
      (await send('GET', `/attendees?event_id=${event.id}&${filter}`)).body.data.map(({ id }: { id: string }) => id)
    const { tickets } = (await send('GET', `/events/${event.id}/summary`)).body.data
    const { body } = await send('GET', `/attendees/${attendeeId}`)
    expect([tickets.inside, await ids('inside=false')]).toEqual([
      body.data.inside ? 1 : 0,
      body.data.inside ? [other.attendeeId] : [other.attendeeId, attendeeId],
    ])
    expect(await ids('inside=true')).toEqual(body.data.inside ? [attendeeId] : [])
    expect(await ids('inside=true&checked_in=false')).toEqual([])
    return [body.data.inside, tickets.checked_in]
  }
  expect(await scan(code, undefined, 'exit')).toMatchObject({ code: 'not_inside' })
  expect(await inside()).toEqual([false, 0])
  await scan(code)
  expect(await inside()).toEqual([true, 1])
  const left = await scan(code, undefined, 'exit')
  expect(await inside()).toEqual([false, 1])
  await send('POST', `/check-ins/${left.id}/undo`)
  expect(await inside()).toEqual([true, 1])
  await scan(code, undefined, 'exit')
  const back = await scan(code)
  expect(back).toMatchObject({ result: 'accepted' })
  expect(await inside()).toEqual([true, 1])
  expect(await scan(code)).toMatchObject({ code: 'already_checked_in' })
  await send('POST', `/check-ins/${back.id}/undo`)
  expect(await inside()).toEqual([false, 1])
  expect((await send('GET', '/attendees?inside=maybe')).body.error.param).toBe('inside')
})

test('whoever leaves by the gate is not inside, and whoever leaves a workshop is', async () => {
  const { event, send, point, scan } = await venue()
  const [gate, workshop] = [await point({ admission: 're_entry' }), await point()]
  const { code, attendeeId } = await event.guest()
  const inside = async () => (await send('GET', `/attendees/${attendeeId}`)).body.data.inside
  await scan(code, gate.id)
  await scan(code, workshop.id)
  await scan(code, workshop.id, 'exit')
  expect(await inside()).toBe(true)
  const other = await point()
  await scan(code, other.id)
  await scan(code, gate.id, 'exit')
  expect(await inside()).toBe(false)
  await scan(code, gate.id)
  expect(await inside()).toBe(true)
})

test('checked_in_at is the first entry that stands', async () => {
  const { event, send, point, upload } = await venue()
  const [one, two] = [await point(), await point()]
  const { code, attendeeId } = await event.guest()
  const at = (hour: number) => `2026-01-01T${hour}:00:00.000Z`
  const [, early] = [
    await upload({ scan_id: 'a', code, scanned_at: at(12), check_in_point_id: one.id }),
    (await upload({ scan_id: 'b', code, scanned_at: at(11), check_in_point_id: two.id }))[0],
  ]
  const checkedInAt = async () => (await send('GET', `/attendees/${attendeeId}`)).body.data.checked_in_at
  expect(await checkedInAt()).toBe(at(11))
  await send('POST', `/check-ins/${early.id}/undo`)
  expect(await checkedInAt()).toBe(at(12))
})

test('whom two devices admitted offline is one conflict; whom one turned away is not in', async () => {
  const { event, send, point, upload } = await venue()
  const { id } = await point()
  const [twice, away] = [await event.guest(), await event.guest()]
  const scan = { check_in_point_id: id, scanned_at: '2026-01-01T10:00:00Z' }
  const [first] = await upload({ ...scan, scan_id: 'a', code: twice.code, device: 'A', admitted: true })
  const again = { ...scan, scan_id: 'b', code: twice.code, device: 'B', admitted: true }
  const [second, turnedAway, gone, wary] = await upload(
    again,
    { ...scan, scan_id: 'c', code: away.code, admitted: false, scanned_at: '2026-01-01T10:01:00Z' },
    { ...scan, scan_id: 'd', code: away.code, check_in_point_id: event.id, scanned_at: '2026-01-01T10:02:00Z' },
    { ...scan, scan_id: 'e', code: twice.code, admitted: false, scanned_at: '2026-01-01T10:03:00Z' },
  )
  expect(second).toMatchObject({ reason: 'already_checked_in', admitted: true })
  expect(turnedAway).toMatchObject({ reason: 'turned_away', attendee: { checked_in_at: null } })
  // The point was deleted while the device was offline.
  expect(gone).toMatchObject({ reason: 'point_closed', check_in_point_id: null })
  expect(wary).toMatchObject({ reason: 'already_checked_in' })
  // Sent again, it counts once.
  await upload(again)
  const { body } = await send('GET', `/events/${event.id}/check-in-conflicts`)
  expect(body).toMatchObject({
    data: [
      { object: 'check_in_conflict', check_in: { id: second.id, device: 'B' }, earlier: { id: first.id, device: 'A' } },
    ],
    has_more: false,
  })
})
