// Groups that name the same external_ids crosswise, at the same moment: one is registered and the others are told so. Nobody waits
// for somebody who waits for them.

import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { row } from '../../support/database.ts'
import { createOrganisation, type TestEvent, type TestOrganisation } from '../../support/organisation.ts'
import { rest } from '../../support/rest.ts'

const pool = new pg.Pool({ connectionString: inject('databaseUrl'), max: 6 })
afterAll(() => pool.end())

let organisation: TestOrganisation
let event: TestEvent
beforeAll(async () => {
  organisation = await createOrganisation()
  event = await organisation.event()
})

const guestsOf = (externalIds: string[]) =>
  externalIds.map((external_id) => ({ name: 'Guest', email: 'guest@example.com', external_id }))

/** As the Data API calls it. @returns `registered`, or the SQLSTATE that refused it: 40P01 is a deadlock. */
async function register(externalIds: string[], orderExternalId: string): Promise<string> {
  const client = await pool.connect()
  const claims = {
    role: 'scope_attendees_write',
    organisation_id: organisation.id,
    api_key_id: randomUUID(),
    source: 'api',
  }
  try {
    await client.query('begin')
    await client.query("select set_config('request.jwt.claims', $1, true), set_config('role', $2, true)", [
      JSON.stringify(claims),
      claims.role,
    ])
    await client.query(
      'select api.register_attendee(event_id => $1, ticket_type_id => $2, attendees => $3, external_id => $4)',
      [event.id, event.ticketTypeId, JSON.stringify(guestsOf(externalIds)), orderExternalId],
    )
    await client.query('commit')
    return 'registered'
  } catch (error) {
    await client.query('rollback')
    return String((error as pg.DatabaseError).code)
  } finally {
    client.release()
  }
}

test('groups with crossing external_ids never end in a deadlock', async () => {
  for (let round = 0; round < 12; round++) {
    const ids = Array.from({ length: 20 }, (_, i) => `crossing-${round}-${i}`)
    const outcomes = await Promise.all(
      Array.from({ length: 6 }, (_, i) =>
        register(i % 2 ? ids.toReversed() : ids, `order-${round}-${i < 2 ? 'same' : i}`),
      ),
    )
    expect(outcomes.toSorted()).toEqual([...Array.from({ length: 5 }, () => 'PT409'), 'registered'])
  }
})

test('over the API one group is registered, and the other is told which attendee exists', async () => {
  const send = rest(await organisation.key())
  for (let round = 0; round < 5; round++) {
    const ids = Array.from({ length: 10 }, (_, i) => `over-the-api-${round}-${i}`)
    const answers = await Promise.all(
      [ids, ids.toReversed()].map((externalIds) =>
        send('POST', `/events/${event.id}/registrations`, {
          ticket_type_id: event.ticketTypeId,
          attendees: guestsOf(externalIds),
        }),
      ),
    )
    const [won, lost] = answers.toSorted((a, b) => a.status - b.status)
    expect([won?.status, lost?.status, lost?.body.error.code]).toEqual([201, 409, 'already_exists'])
    const attendees: { id: string; external_id: string }[] = won?.body.data.attendees
    expect(attendees.map(({ id }) => id)).toContain(lost?.body.error.details.id)
    // In the order in which they were sent, which the ids keep.
    expect([ids.join(), ids.toReversed().join()]).toContain(attendees.map((a) => a.external_id).join())
    expect(attendees.map(({ id }) => id)).toEqual(attendees.map(({ id }) => id).toSorted())
  }
  const { places } = await row<{ places: number }>(
    "select count(*)::int as places from public.attendees where event_id = $1 and external_id like 'over-the-api-%'",
    [event.id],
  )
  expect(places).toBe(50)
})
