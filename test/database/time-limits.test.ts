// Lists that a statement has no time for: what was judged stands, and the rest is told. The time is up at once where the time-out is
// lowered within the statement, whose own timer runs on as it was set before.

import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { CheckInBatchSchema } from '../../src/operations/check-ins.ts'
import { AttendeeImportSchema } from '../../src/operations/registrations.ts'
import { during, refusalOf, row, studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'

async function arrange() {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const claims = { organisation_id: organisation.id, family_id: randomUUID(), source: 'api' }
  /**
   * In a transaction of its own, as the Data API does; with time for one part of the list, or as much as it takes. The limit is lifted
   * within the statement: the next one would have no time to begin.
   */
  const call = async (role: string, sql: string, values: unknown[], statementTimeout: '1ms' | '0') => {
    const client = await studio.connect()
    try {
      await client.query('begin')
      await client.query("select set_config('request.jwt.claims', $1, true), set_config('role', $2, true)", [
        JSON.stringify({ ...claims, role }),
        role,
      ])
      const { rows } = await client.query(
        `select ${sql} as outcome, set_config('statement_timeout', '0', true)
         from set_config('statement_timeout', '${statementTimeout}', true)`,
        values,
      )
      await client.query('commit')
      return rows[0].outcome
    } finally {
      await client.query('rollback')
      client.release()
    }
  }
  return { event, call }
}

test('an import stops in time, keeps what it did under its key, and goes on where it stopped', async () => {
  const { event, call } = await arrange()
  const guests = Array.from({ length: 120 }, (_, n) => ({
    ...(n % 2 === 0 && { external_id: `contact-${n}` }),
    name: `Guest ${n}`,
    email: n === 7 ? 'none' : `guest-${n}@example.com`,
  }))
  const importGuests = async (key: string, timeout: '1ms' | '0', list = guests) => {
    const { data, replayed = false } = await call(
      'scope_attendees_write',
      'api.import_attendees($1, $2, $3, idempotency_key => $4, request_fingerprint => $5)',
      [event.id, JSON.stringify(list), event.ticketTypeId, key, String(list.length)],
      timeout,
    )
    return { ...AttendeeImportSchema.parse(data), replayed }
  }
  const registered = async () =>
    (await row<{ n: number }>('select count(*)::int as n from public.attendees where event_id = $1', [event.id])).n

  const first = await importGuests('one', '1ms')
  expect(first).toMatchObject({ created: 49, refused: 1, remaining: 70 })
  expect(first.results).toHaveLength(50)
  expect(await registered()).toBe(49)
  expect(await importGuests('one', '0')).toEqual({ ...first, replayed: true })

  const rest = await importGuests('two', '1ms', guests.slice(50))
  expect(rest).toMatchObject({ created: 50, remaining: 20 })
  const whole = await importGuests('three', '0')
  expect(whole).toMatchObject({ unchanged: 99, created: 20, refused: 1, remaining: 0 })
  expect(await registered()).toBe(119)
})

test('a batch of scans stops in time, in the order of the scans, and the rest is judged by the next call', async () => {
  const { event, call } = await arrange()
  const { code } = await event.guest()
  const scans = Array.from({ length: 120 }, (_, n) => ({
    scan_id: `scan-${n}`,
    code: n < 60 ? 'nobody' : code,
    scanned_at: new Date(Date.UTC(2026, 10, 1, 10, 0, 120 - n)).toISOString(),
  }))
  const upload = async (list: typeof scans, timeout: '1ms' | '0') => {
    const { data } = await call(
      'scope_checkin_write',
      'api.check_in_batch($1, $2)',
      [event.id, JSON.stringify(list)],
      timeout,
    )
    return CheckInBatchSchema.parse(data)
  }
  const first = await upload(scans, '1ms')
  expect(first).toMatchObject({ accepted: 1, rejected: 49, remaining: 70 })
  const answered = first.results.map(({ scan_id }) => scan_id)
  expect(answered).toEqual(
    scans
      .toReversed()
      .slice(0, 50)
      .map(({ scan_id }) => scan_id),
  )

  const second = await upload(scans, '0')
  expect(second).toMatchObject({ accepted: 1, rejected: 119, remaining: 0 })
  expect(second.results.filter(({ replayed }) => replayed)).toHaveLength(50)
  const { n } = await row<{ n: number }>('select count(*)::int as n from public.check_ins where event_id = $1', [
    event.id,
  ])
  expect(n).toBe(120)
})

test('a list that waits for another gives way before its own time is up', async () => {
  const { event, call } = await arrange()
  const scans = JSON.stringify([{ scan_id: 'a', code: 'nobody', scanned_at: '2026-11-01T10:00:00Z' }])
  await during(async (client) => {
    // As a batch of the same event does.
    await client.query('select pg_advisory_xact_lock(3, hashtext($1))', [event.id])
    const waiting = call('scope_checkin_write', 'api.check_in_batch($1, $2)', [event.id, scans], '1ms')
    // lock_not_available, which the API answers with temporarily_unavailable.
    expect(await refusalOf(waiting)).toEqual({ sqlstate: '55P03' })
  })
})
