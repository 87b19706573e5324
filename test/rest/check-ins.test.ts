import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { createOrganiser } from '../support/organiser.ts'
import { invalid, problemOf } from '../support/rest.ts'

async function door() {
  const { organisation, event, send } = await createOrganiser({}, 'checkin:write')
  const guest = await event.guest()
  const scan = (code: string, eventId = event.id) =>
    send('POST', '/check-ins', { event_id: eventId, code, device: 'Gate 1' })
  const log = async () =>
    (
      await studio.query(
        'select result, reason, code, device, attendee_id from public.check_ins where event_id = $1 order by id',
        [event.id],
      )
    ).rows
  return { organisation, event, guest, send, scan, log }
}

test('a ticket is accepted once; the second scan says who, why and when, and both are logged', async () => {
  const { guest, scan, log } = await door()

  const first = await scan(guest.code)
  expect(first.status).toBe(200)
  expect(first.body.data).toMatchObject({
    object: 'check_in',
    result: 'accepted',
    reason: null,
    device: 'Gate 1',
    attendee: { id: guest.attendeeId, name: 'Guest' },
  })
  expect(first.body.data.attendee.checked_in_at).toBe(first.body.data.scanned_at)

  const second = await scan(guest.code)
  expect([second.status, second.body.error.code]).toEqual([409, 'already_checked_in'])
  expect(second.body.error.details.check_in).toMatchObject({
    result: 'rejected',
    reason: 'already_checked_in',
    attendee: { id: guest.attendeeId, checked_in_at: first.body.data.scanned_at },
  })
  expect((await log()).map((l) => [l.result, l.reason, l.attendee_id])).toEqual([
    ['accepted', null, guest.attendeeId],
    ['rejected', 'already_checked_in', guest.attendeeId],
  ])
})

test('the door learns a name, not an e-mail address', async () => {
  const { guest, scan } = await door()
  expect(JSON.stringify((await scan(guest.code)).body)).not.toContain('guest@example.com')
})

test('a typed code may have lower case, blanks and hyphens', async () => {
  const { guest, scan } = await door()
  const typed = guest.code.toLowerCase().replace(/(.{4})/g, '$1- ')
  expect((await scan(typed)).status).toBe(200)
})

test('an unknown code is rejected as not_found with 404, and logged as it was scanned', async () => {
  const { scan, log } = await door()
  const { status, body } = await scan('no such code')
  expect(problemOf({ status, body })).toEqual([404, 'not_found', 'code'])
  expect(body.error.details.check_in.attendee).toBeNull()
  expect(await log()).toMatchObject([
    { result: 'rejected', reason: 'not_found', code: 'no such code', attendee_id: null },
  ])
})

test('whoever has no code is checked in by attendee_id, once, and the answer tells no code', async () => {
  const { event, guest, send, scan, log } = await door()
  const byId = () => send('POST', '/check-ins', { event_id: event.id, attendee_id: guest.attendeeId })
  const first = await byId()
  expect([first.status, first.body.data.result, first.body.data.attendee.id]).toEqual([
    200,
    'accepted',
    guest.attendeeId,
  ])
  expect(JSON.stringify(first.body)).not.toContain(guest.code)
  expect(problemOf(await byId())).toEqual([409, 'already_checked_in', 'attendee_id'])
  expect((await scan(guest.code)).body.error.code).toBe('already_checked_in')
  expect((await log()).map((l) => [l.code, l.attendee_id])).toEqual([
    [null, guest.attendeeId],
    [null, guest.attendeeId],
    [guest.code, guest.attendeeId],
  ])
})

test("an unknown attendee_id, and one of another organisation's, are rejected as not_found alike, and logged", async () => {
  const [ours, theirs] = [await door(), await door()]
  const answers = []
  for (const attendee_id of [randomUUID(), theirs.guest.attendeeId]) {
    const { status, body } = await ours.send('POST', '/check-ins', { event_id: ours.event.id, attendee_id })
    expect(problemOf({ status, body })).toEqual([404, 'not_found', 'attendee_id'])
    const { id, created_at, updated_at, scanned_at, ...checkIn } = body.error.details.check_in
    answers.push({ ...body.error, request_id: null, details: checkIn })
  }
  expect(answers[1]).toEqual(answers[0])
  expect((await ours.log()).map((l) => [l.reason, l.attendee_id])).toEqual(Array(2).fill(['not_found', null]))
  expect(await row('select checked_in_at from public.attendees where id = $1', [theirs.guest.attendeeId])).toEqual({
    checked_in_at: null,
  })
})

test('a scan of both a code and an attendee_id, or of neither, is refused by name and not logged', async () => {
  const { event, guest, send, log } = await door()
  const post = (ticket: object) => send('POST', '/check-ins', { event_id: event.id, ...ticket })
  expect(problemOf(await post({ code: guest.code, attendee_id: guest.attendeeId }))).toEqual(invalid('attendee_id'))
  expect(problemOf(await post({}))).toEqual(invalid('code'))
  expect(await log()).toEqual([])
})

test('a rejected scan is replayed as well', async () => {
  const { event, send, log } = await door()
  const headers = { 'Idempotency-Key': randomUUID() }
  await send('POST', '/check-ins', { event_id: event.id, code: 'nobody' }, headers)
  const second = await send('POST', '/check-ins', { event_id: event.id, code: 'nobody' }, headers)
  expect([second.status, second.headers.get('idempotent-replayed')]).toEqual([404, 'true'])
  expect(await log()).toHaveLength(1)
})
