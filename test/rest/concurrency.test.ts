// Real concurrent requests, and a count of what is in the database afterwards.

import { expect, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { createOrganisation, type TestEvent } from '../support/organisation.ts'
import { createOrganiser } from '../support/organiser.ts'
import { type RestAnswer, rest } from '../support/rest.ts'
import { edit } from '../support/studio.ts'

const times = <T>(n: number, work: (i: number) => Promise<T>) =>
  Promise.all(Array.from({ length: n }, (_, i) => work(i)))
const tally = (answers: RestAnswer[]) =>
  answers.reduce<Record<string, number>>((counts, { status, body }) => {
    const outcome = status < 300 ? String(status) : body.error.code
    return Object.assign(counts, { [outcome]: (counts[outcome] ?? 0) + 1 })
  }, {})

async function register(event: TestEvent, key: string, i: number, ticketTypeId = event.ticketTypeId) {
  return rest(key)('POST', `/events/${event.id}/registrations`, {
    ticket_type_id: ticketTypeId,
    name: `Guest ${i}`,
    email: `guest-${i}@example.com`,
  })
}

const holders = (event: TestEvent) =>
  row<{ places: number; orders: number }>(
    `select (select count(*)::int from public.attendees where event_id = $1 and status <> 'cancelled') as places,
            (select count(*)::int from public.orders where event_id = $1) as orders`,
    [event.id],
  )

test('40 concurrent registrations for 10 places sell exactly 10', async () => {
  const { event, key } = await createOrganiser({ quantity: 10 })
  const answers = await times(40, (i) => register(event, key, i))
  expect(tally(answers)).toEqual({ '201': 10, sold_out: 30 })
  expect(await holders(event)).toEqual({ places: 10, orders: 10 })
  expect(await event.sold()).toBe(10)
})

test('an event capacity of 10 holds over three ticket types at once', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event({ capacity: 10 })
  const types = [event.ticketTypeId, await event.ticketType(), await event.ticketType()]
  const key = await organisation.key()
  const answers = await times(30, (i) => register(event, key, i, types[i % 3]))
  expect(tally(answers)).toEqual({ '201': 10, sold_out: 20 })
  expect(await holders(event)).toEqual({ places: 10, orders: 10 })
})

test('places given back while others register are sold again, and the count stays true', async () => {
  const { event, key } = await createOrganiser({ quantity: 10 })
  await times(10, (i) => register(event, key, i))
  const cancel = studio.query(
    "update public.attendees set status = 'cancelled' where id in (select id from public.attendees where event_id = $1 limit 4)",
    [event.id],
  )
  const [answers] = await Promise.all([times(40, (i) => register(event, key, 100 + i)), cancel])
  const sold = tally(answers)['201'] ?? 0
  const { places } = await holders(event)
  expect(places).toBe(6 + sold)
  expect(places).toBeLessThanOrEqual(10)
  expect(await event.sold()).toBe(places)
})

test('whoever cancels an event amid registrations sees every ticket that there will be', async () => {
  const { event, key } = await createOrganiser()

  async function cancel(): Promise<number> {
    await new Promise((resolve) => setTimeout(resolve, 40))
    const client = await studio.connect()
    try {
      await client.query('begin')
      await client.query("update public.events set status = 'cancelled' where id = $1", [event.id])
      const { rows } = await client.query('select count(*)::int as places from public.attendees where event_id = $1', [
        event.id,
      ])
      await new Promise((resolve) => setTimeout(resolve, 50))
      await client.query('commit')
      return rows[0].places
    } finally {
      client.release()
    }
  }

  const [answers, seen] = await Promise.all([times(60, (i) => register(event, key, i)), cancel()])
  const counts = tally(answers)
  expect(Object.keys(counts).filter((outcome) => !['201', 'event_not_published'].includes(outcome))).toEqual([])
  expect(counts['201'] ?? 0).toBe(seen)
  expect((await holders(event)).orders).toBe(seen)
  // And none of them stands: what the event had is cancelled with it.
  expect((await holders(event)).places).toBe(0)
  expect(await event.sold()).toBe(0)
})

test('a capacity set amid registrations is never overrun', async () => {
  const { event, key } = await createOrganiser()
  const setCapacity = async () => {
    await new Promise((resolve) => setTimeout(resolve, 30))
    const { places } = await holders(event)
    return edit('events', event.id, 'capacity = $2', [places + 5]).then(
      () => places + 5,
      () => null, // more were sold meanwhile: refused as capacity_below_sold
    )
  }
  const [, capacity] = await Promise.all([times(80, (i) => register(event, key, i)), setCapacity()])
  if (capacity !== null) expect((await holders(event)).places).toBeLessThanOrEqual(capacity)
  expect(await event.sold()).toBe((await holders(event)).places)
})

test('20 concurrent scans of one ticket accept exactly one, and log all 20', async () => {
  const { event, send } = await createOrganiser({}, 'checkin:write')
  const { code, attendeeId } = await event.guest()
  const answers = await times(20, () => send('POST', '/check-ins', { event_id: event.id, code }))
  expect(tally(answers)).toEqual({ '200': 1, already_checked_in: 19 })
  expect(
    await row(
      "select count(*)::int as scans, count(*) filter (where result = 'accepted')::int as accepted from public.check_ins where attendee_id = $1",
      [attendeeId],
    ),
  ).toEqual({ scans: 20, accepted: 1 })
})

test('scans and undos at once leave at most one acceptance standing, and the attendee agrees with the log', async () => {
  const { event, send } = await createOrganiser({}, 'checkin:write')
  const { code, attendeeId } = await event.guest()
  await times(20, async () => {
    const { status, body } = await send('POST', '/check-ins', { event_id: event.id, code })
    if (status === 200) await times(2, () => send('POST', `/check-ins/${body.data.id}/undo`))
  })
  const state = await row<{ standing: number; inside: boolean }>(
    `select (select count(*)::int from public.check_ins where attendee_id = $1 and result = 'accepted' and undone_at is null) as standing,
            checked_in_at is not null as inside
     from public.attendees where id = $1`,
    [attendeeId],
  )
  expect(state.standing).toBe(state.inside ? 1 : 0)
})
