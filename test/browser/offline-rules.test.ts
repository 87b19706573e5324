// The cases of the door page, decided by the database.

import { expect, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { type Case, cases, timeOf, typed } from './offline-rules-cases.ts'

const hourOrNull = (hour: number | undefined) => (hour === undefined ? null : timeOf(hour))

async function decide(organisation: Awaited<ReturnType<typeof createOrganisation>>, one: Case): Promise<string | null> {
  const { ticketStatus, gate = {} } = one
  const event = await organisation.event({ madeAt: timeOf(-1) })
  const { attendeeId, code } = await (ticketStatus === 'awaiting_payment' ? event.payer() : event.guest())
  const { ticket_type_id: thisType } = await row<{ ticket_type_id: string }>(
    'select ticket_type_id from public.attendees where id = $1',
    [attendeeId],
  )
  const types = gate.admits === undefined ? [] : [gate.admits === 'this type' ? thisType : await event.ticketType()]
  const { id: gateId } = await row<{ id: string }>(
    `insert into public.check_in_points (organisation_id, event_id, name, ticket_type_ids, opens_at, closes_at, admission, status)
     values ($1, $2, 'Gate', $3, $4, $5, $6, $7) returning id`,
    [
      organisation.id,
      event.id,
      types,
      hourOrNull(gate.opensAtHour),
      hourOrNull(gate.closesAtHour),
      gate.admission ?? 'once',
      gate.status ?? 'active',
    ],
  )
  if (ticketStatus === 'cancelled') {
    await studio.query("update public.attendees set status = 'cancelled' where id = $1", [attendeeId])
  }
  if (one.eventStatus === 'cancelled') {
    await studio.query("update public.events set status = 'cancelled' where id = $1", [event.id])
  }
  let reason: string | null = null
  for (const { at, hour, direction = 'entry', undone } of one.scans) {
    const checkIn = await row<{ id: string; reason: string | null }>(
      `insert into public.check_ins (event_id, code, check_in_point_id, direction, scanned_at)
       values ($1, $2, $3, $4, $5) returning id, reason`,
      [event.id, one.unknown ? 'no such code' : code, at === 'gate' ? gateId : null, direction, timeOf(hour)],
    )
    if (undone) await studio.query('update public.check_ins set undone_at = now() where id = $1', [checkIn.id])
    reason = checkIn.reason
  }
  return reason
}

test('the database reads what is typed as the door page does', async () => {
  const { rows } = await studio.query<{ code: string }>(
    'select private.code_form(t.text) as code from unnest($1::text[]) with ordinality t (text, place) order by t.place',
    [typed.map(([text]) => text)],
  )
  expect(typed.map(([text], i) => [text, rows[i]?.code])).toEqual(typed)
})

test('no two codes are one: those that are made are as they are read', async () => {
  const { rows } = await studio.query(
    'select c.code from (select private.random_code(24) as code from generate_series(1, 2000)) c where c.code <> private.code_form(c.code)',
  )
  expect(rows).toEqual([])
})

test('a ticket is admitted by a code that is typed as it was read aloud', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const { code } = await event.guest()
  const heard = code
    .replaceAll('0', 'o')
    .replaceAll('1', 'l')
    .replace(/....(?=.)/g, '$&\u2013')
  const { result } = await row<{ result: string }>(
    'insert into public.check_ins (event_id, code) values ($1, $2) returning result',
    [event.id, heard],
  )
  expect(result).toBe('accepted')
})

test('the database decides each case as the door page does', async () => {
  const organisation = await createOrganisation()
  const decided = await Promise.all(cases.map((one) => decide(organisation, one)))
  expect(cases.map(({ title }, index) => [title, decided[index]])).toEqual(
    cases.map(({ title, reason }) => [title, reason]),
  )
})
