import { expect, test } from 'vitest'
import { row } from '../support/database.ts'
import { once } from '../support/once.ts'
import { createOrganiser } from '../support/organiser.ts'
import { invalid, problemOf } from '../support/rest.ts'

async function door() {
  const { organisation, event, send } = await createOrganiser({ madeAt: '2026-10-01' }, 'checkin:write')
  const upload = (scans: unknown, eventId = event.id) => send('POST', '/check-ins/batch', { event_id: eventId, scans })
  const scans = async () =>
    (await row<{ n: number }>('select count(*)::int as n from public.check_ins where event_id = $1', [event.id])).n
  return { organisation, event, send, upload, scans }
}

const refusing = once(door)

const at = (minute: number) => `2026-11-01T10:${String(minute).padStart(2, '0')}:00Z`

test('offline scans are judged in the order in which they were made, a verdict each', async () => {
  const { event, upload } = await door()
  const { code, attendeeId } = await event.guest()
  const { status, body } = await upload([
    { scan_id: 'late', code, scanned_at: at(5) },
    { scan_id: 'early', code, scanned_at: at(1), device: 'Gate 2' },
    { scan_id: 'nobody', code: 'nobody', scanned_at: at(3) },
  ])
  expect(status).toBe(200)
  expect(body.data).toMatchObject({ accepted: 1, rejected: 2 })
  expect(body.data.results).toMatchObject([
    {
      scan_id: 'early',
      replayed: false,
      check_in: { result: 'accepted', device: 'Gate 2', scanned_at: '2026-11-01T10:01:00.000Z' },
    },
    { scan_id: 'nobody', check_in: { reason: 'not_found', attendee: null } },
    { scan_id: 'late', check_in: { reason: 'already_checked_in' } },
  ])
  expect(await row('select checked_in_at from public.attendees where id = $1', [attendeeId])).toEqual({
    checked_in_at: new Date(at(1)),
  })
})

test('offline scans by code and by attendee_id are judged alike', async () => {
  const { event, upload } = await door()
  const [one, other] = [await event.guest(), await event.guest()]
  const { body } = await upload([
    { scan_id: 'a', attendee_id: one.attendeeId, scanned_at: at(1) },
    { scan_id: 'b', code: one.code, scanned_at: at(2) },
    { scan_id: 'c', code: other.code, scanned_at: at(3) },
    { scan_id: 'd', attendee_id: other.attendeeId, scanned_at: at(4) },
  ])
  expect(
    body.data.results.map(({ check_in }: { check_in: { reason: string; attendee: { checked_in_at: string } } }) => [
      check_in.reason,
      check_in.attendee.checked_in_at,
    ]),
  ).toEqual([
    [null, '2026-11-01T10:01:00.000Z'],
    ['already_checked_in', '2026-11-01T10:01:00.000Z'],
    [null, '2026-11-01T10:03:00.000Z'],
    ['already_checked_in', '2026-11-01T10:03:00.000Z'],
  ])
})

test('a batch sent twice, or in parts that overlap, counts each scan once', async () => {
  const { event, upload, scans } = await door()
  const { code } = await event.guest()
  const batch = [
    { scan_id: 'a', code, scanned_at: at(1) },
    { scan_id: 'b', code: 'nobody', scanned_at: at(2) },
  ]
  const first = await upload(batch)
  const second = await upload([...batch, { scan_id: 'c', code, scanned_at: at(3) }])
  expect(second.body.data.results.map((r: { replayed: boolean }) => r.replayed)).toEqual([true, true, false])
  expect(second.body.data.results[0].check_in.id).toBe(first.body.data.results[0].check_in.id)
  expect(await scans()).toBe(3)
})

test('ten uploads of one batch at once count each scan once', async () => {
  const { event, upload, scans } = await door()
  const guests = await Promise.all(Array.from({ length: 5 }, () => event.guest()))
  const batch = guests.map(({ code }, i) => ({ scan_id: `s-${i}`, code, scanned_at: at(i) }))
  const answers = await Promise.all(Array.from({ length: 10 }, () => upload(batch)))
  expect(answers.map((a) => [a.status, a.body.data.accepted])).toEqual(Array(10).fill([200, 5]))
  expect(await scans()).toBe(5)
})

test('a batch and scans at the open door let each ticket in once', async () => {
  const { event, send, upload } = await door()
  const guests = await Promise.all(Array.from({ length: 6 }, () => event.guest()))
  const [batch, ...open] = await Promise.all([
    upload(guests.map(({ code }, i) => ({ scan_id: `s-${i}`, code, scanned_at: at(i) }))),
    ...guests.map(({ code }) => send('POST', '/check-ins', { event_id: event.id, code })),
  ])
  const atTheDoor = open.filter((answer) => answer?.status === 200).length
  expect(batch?.body.data.accepted + atTheDoor).toBe(6)
})

test.each([
  ['still to come', '2998-01-01T00:00:00Z'],
  ['before the event was made', '2026-09-30T23:59:59Z'],
])('a scan whose time is %s counts when it arrives, and its verdict says so', async (_when, scanned_at) => {
  const { event, upload } = await door()
  const [{ code }, { code: other }] = [await event.guest(), await event.guest()]
  const scans = [
    { scan_id: 'a', code, scanned_at },
    { scan_id: 'b', code: other, scanned_at: at(1) },
  ]
  // Sent again, it is answered the same.
  for (const replayed of [false, true]) {
    const results = Object.fromEntries(
      (await upload(scans)).body.data.results.map((result: { scan_id: string }) => [result.scan_id, result]),
    )
    const { created_at } = results.a.check_in
    expect(results).toMatchObject({
      a: { replayed, counted_on_arrival: true, check_in: { result: 'accepted', scanned_at: created_at } },
      b: {
        replayed,
        counted_on_arrival: false,
        check_in: { result: 'accepted', scanned_at: '2026-11-01T10:01:00.000Z' },
      },
    })
  }
})

test.each([
  [[], 'scans'],
  ['a', 'scans'],
  [[{ scan_id: 'a', code: 'x', scanned_at: 'now' }], 'scans.0.scanned_at'],
  [[{ scan_id: 'a', code: 'x' }], 'scans.0.scanned_at'],
  [[{ scan_id: 'a', code: 'x', scanned_at: at(1), gate: 1 }], 'scans.0.gate'],
  [[{ scan_id: 'a', scanned_at: at(1) }], 'scans.0.code'],
  [
    [{ scan_id: 'a', code: 'x', attendee_id: '00000000-0000-4000-8000-000000000000', scanned_at: at(1) }],
    'scans.0.attendee_id',
  ],
  [[null], 'scans.0'],
  [Array(2).fill({ scan_id: 'a', code: 'x', scanned_at: at(1) }), 'scans'],
])('a batch of %j is refused, naming %s, and nothing is logged', async (scans, param) => {
  const it = await refusing()
  expect(problemOf(await it.upload(scans))).toEqual(invalid(param))
  expect(await it.scans()).toBe(0)
})
