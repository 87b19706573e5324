// Check-ins by hand: a row added in Studio is judged like a scan at the door, and the log of scans is not to be rewritten.
// What a scan comes to, by the status of the event and of the ticket, is in test/states/check-ins.test.ts.

import { describe, expect, test } from 'vitest'
import { refusalOf, row, studio } from '../../support/database.ts'
import { createOrganisation, type TestEvent } from '../../support/organisation.ts'
import { edit, read, refusalOfEdit, remove } from '../../support/studio.ts'

async function door() {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const guest = await event.guest()
  return { organisation, event, guest }
}

type Judged = { id: string; result: string; reason: string | null; attendee_id: string | null; scanned_at: Date }

const scan = ({ id }: TestEvent, code: string) =>
  row<Judged>(
    'insert into public.check_ins (event_id, code) values ($1, $2) returning id, result, reason, attendee_id, scanned_at',
    [id, code],
  )

describe('a scan by hand', () => {
  test('is accepted once even when one statement scans twice', async () => {
    const { event, guest } = await door()
    const { rows } = await studio.query<Judged>(
      'insert into public.check_ins (event_id, code) values ($1, $2), ($1, $2) returning result, reason',
      [event.id, guest.code],
    )
    expect(rows).toEqual([
      { result: 'accepted', reason: null },
      { result: 'rejected', reason: 'already_checked_in' },
    ])
  })

  test('comes from studio and no key, whatever the organisation', async () => {
    const { organisation, event, guest } = await door()
    const { id } = await scan(event, guest.code)
    expect(await read('check_ins', id, 'source', 'api_key_id', 'organisation_id')).toEqual({
      source: 'studio',
      api_key_id: null,
      organisation_id: organisation.id,
    })
  })

  test('judges for itself, whatever verdict comes with it', async () => {
    const { event, guest } = await door()
    const forged = await row(
      `insert into public.check_ins (event_id, code, result, reason, undone_at)
       values ($1, 'nobody', 'accepted', null, now()) returning result, reason, attendee_id, undone_at`,
      [event.id],
    )
    expect(forged).toEqual({ result: 'rejected', reason: 'not_found', attendee_id: null, undone_at: null })
    expect(await read('attendees', guest.attendeeId, 'checked_in_at')).toEqual({ checked_in_at: null })
  })

  test('takes attendee_id in place of the code, but not both, nor neither', async () => {
    const { event, guest } = await door()
    const add = (code: string | null, attendeeId: string | null) =>
      row('insert into public.check_ins (event_id, code, attendee_id) values ($1, $2, $3) returning result, code', [
        event.id,
        code,
        attendeeId,
      ])
    expect(await refusalOf(add(null, null))).toMatchObject({ code: 'validation_failed', param: 'code' })
    expect(await refusalOf(add(guest.code, guest.attendeeId))).toMatchObject({
      code: 'validation_failed',
      param: 'attendee_id',
    })
    expect(await add(null, guest.attendeeId)).toEqual({ result: 'accepted', code: null })
  })

  test("knows no code of another organisation's", async () => {
    const [ours, theirs] = await Promise.all([door(), door()])
    expect(await scan(ours.event, theirs.guest.code)).toMatchObject({ reason: 'not_found', attendee_id: null })
  })
})

describe('the log', () => {
  test('cannot be deleted from', async () => {
    const { event, guest } = await door()
    const accepted = await scan(event, guest.code)
    const rejected = await scan(event, 'nobody')
    for (const { id } of [accepted, rejected]) {
      expect(await refusalOf(remove('check_ins', id))).toEqual({ sqlstate: 'PT409', code: 'append_only' })
    }
  })

  test('cannot be rewritten', async () => {
    const { event, guest } = await door()
    const { id } = await scan(event, guest.code)
    for (const assignments of [
      "code = 'another'",
      "result = 'rejected', reason = 'unpaid'",
      'attendee_id = null',
      'event_id = gen_random_uuid()',
      "device = 'Gate 9'",
      "source = 'api'",
      "scanned_at = scanned_at - interval '1 hour'",
      "created_at = created_at - interval '1 hour'",
      'id = gen_random_uuid()',
    ]) {
      const refusal = await refusalOfEdit('check_ins', id, assignments)
      expect([assignments, refusal]).toEqual([assignments, { sqlstate: 'PT409', code: 'append_only' }])
    }
  })

  test('cannot be said to be the doing of another key', async () => {
    const { organisation, event, guest } = await door()
    const { id } = await scan(event, guest.code)
    await organisation.key()
    const key = await row<{ id: string }>('select id from public.api_keys where organisation_id = $1', [
      organisation.id,
    ])
    expect(await refusalOfEdit('check_ins', id, 'api_key_id = $2', [key.id])).toEqual({
      sqlstate: 'PT409',
      code: 'append_only',
    })
  })

  test('outlives the key that scanned', async () => {
    const { organisation, event, guest } = await door()
    await organisation.key()
    const key = await row<{ id: string }>('select id from public.api_keys where organisation_id = $1', [
      organisation.id,
    ])
    const { id } = await row<{ id: string }>(
      'insert into public.check_ins (event_id, code, api_key_id) values ($1, $2, $3) returning id',
      [event.id, guest.code, key.id],
    )
    await remove('api_keys', key.id)
    expect(await read('check_ins', id, 'result', 'api_key_id')).toEqual({ result: 'accepted', api_key_id: null })
  })
})

describe('an acceptance', () => {
  test('is taken back by setting undone_at, and the ticket scans again', async () => {
    const { event, guest } = await door()
    const { id } = await scan(event, guest.code)
    await edit('check_ins', id, "undone_at = '2000-01-01'")
    const { undone_at } = await read('check_ins', id, 'undone_at')
    // The moment is when it was undone, not what somebody wrote.
    expect((undone_at as Date).getFullYear()).toBeGreaterThan(2000)
    expect(await read('attendees', guest.attendeeId, 'checked_in_at')).toEqual({ checked_in_at: null })
    expect(await scan(event, guest.code)).toMatchObject({ result: 'accepted' })
  })
})
