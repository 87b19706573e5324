// Events as an organiser edits them in Studio: what holds in each status. The steps from one to another are in
// test/states/events.test.ts.

import { describe, expect, test } from 'vitest'
import { eventStatuses } from '../../../src/operations/events.ts'
import { during, refusalOf, row, studio } from '../../support/database.ts'
import { createOrganisation, type TestEvent } from '../../support/organisation.ts'
import { expectExactCounts } from '../counts.ts'

type Status = (typeof eventStatuses)[number]

async function eventThatIs(status: Status): Promise<TestEvent> {
  const organisation = await createOrganisation()
  const event = await organisation.event({ status: status === 'draft' ? 'draft' : 'published' })
  if (status === 'cancelled' || status === 'completed') await change(event, 'status = $2', [status])
  return event
}

const change = (event: TestEvent, assignments: string, values: unknown[] = []) =>
  studio.query(`update public.events set ${assignments} where id = $1`, [event.id, ...values])

const read = (event: TestEvent) =>
  row<{ status: Status; published_at: Date | null; cancelled_at: Date | null; completed_at: Date | null }>(
    'select status, published_at, cancelled_at, completed_at from public.events where id = $1',
    [event.id],
  )

describe('an event', () => {
  test.each(eventStatuses.filter((status) => status !== 'draft'))('cannot start as %s', async (status) => {
    const { id } = await createOrganisation()
    const insert = studio.query(
      `insert into public.events (organisation_id, name, slug, starts_at, ends_at, status)
       values ($1, 'Event', 'event', now(), now() + interval '1 day', $2)`,
      [id, status],
    )
    expect(await refusalOf(insert)).toEqual({ sqlstate: 'PT409', code: 'invalid_transition', param: 'status' })
  })
})

describe('publishing', () => {
  test('may come together with the dates it needs, in one edit', async () => {
    const event = await eventThatIs('draft')
    await change(event, 'starts_at = null, ends_at = null')
    await change(event, "status = 'published', starts_at = now(), ends_at = now() + interval '1 hour'")
    expect((await read(event)).status).toBe('published')
  })
})

describe('the currency', () => {
  test('is fixed once there is an order', async () => {
    const event = await eventThatIs('published')
    await change(event, "currency = 'GBP'")
    await event.guest()
    expect(await refusalOf(change(event, "currency = 'USD'"))).toEqual({
      sqlstate: 'PT409',
      code: 'event_has_orders',
      param: 'currency',
    })
    // An edit that leaves it as it is, as Studio sends whole rows, is no change.
    await change(event, "currency = 'GBP', name = 'Renamed'")
  })
})

describe('the capacity', () => {
  test('cannot go below the tickets that are out, over all ticket types', async () => {
    const organisation = await createOrganisation()
    const event = await organisation.event({ capacity: 5 })
    const other = await event.ticketType()
    await event.guest()
    await event.guest({ ticketTypeId: other })
    await event.guest({ ticketTypeId: other })

    expect(await refusalOf(change(event, 'capacity = 2'))).toEqual({
      sqlstate: 'PT409',
      code: 'capacity_below_sold',
      param: 'capacity',
      details: { places_taken: 3 },
    })
    await change(event, 'capacity = 3')
    await change(event, 'capacity = null')
    expect(await refusalOf(change(event, 'capacity = 1'))).toMatchObject({ code: 'capacity_below_sold' })
    await expectExactCounts(event)
  })

  test('counts no cancelled attendees', async () => {
    const organisation = await createOrganisation()
    const event = await organisation.event({ capacity: 2 })
    await event.guest()
    const { attendeeId } = await event.guest()
    await studio.query("update public.attendees set status = 'cancelled' where id = $1", [attendeeId])
    await change(event, 'capacity = 1')
    await expectExactCounts(event)
  })

  test('holds for whoever adds an attendee in Studio', async () => {
    const organisation = await createOrganisation()
    const event = await organisation.event({ capacity: 1 })
    await event.guest()
    expect(await refusalOf(event.guest())).toEqual({ sqlstate: 'PT409', code: 'sold_out', param: 'event_id' })
    await expectExactCounts(event)
  })
})

describe('the time zone', () => {
  const refused = { sqlstate: 'PT422', code: 'validation_failed', param: 'timezone' }

  test.each(['Mars/Olympus', 'europe/berlin', '+02:00', ''])(
    'cannot be %j, for a new event or an old one',
    async (timezone) => {
      const organisation = await createOrganisation()
      const event = await organisation.event({ status: 'draft' })
      expect(await refusalOf(change(event, 'timezone = $2', [timezone]))).toMatchObject(refused)
      const insert =
        "insert into public.events (organisation_id, name, slug, timezone) values ($1, 'Event', 'event', $2)"
      expect(await refusalOf(studio.query(insert, [organisation.id, timezone]))).toMatchObject(refused)
    },
  )

  test.each(['UTC', 'Asia/Kathmandu', 'America/Argentina/Buenos_Aires'])('can be %s', async (timezone) => {
    const event = await eventThatIs('draft')
    await change(event, 'timezone = $2', [timezone])
  })
})

test.each([
  ['no end at all', "ends_at = 'infinity'"],
  ['a slug that is none', "slug = 'With Spaces'"],
  ['a country that is no ISO code', "venue_country = 'Germany'"],
])('an event with %s is refused', async (_what, assignment) => {
  const event = await eventThatIs('draft')
  expect(await refusalOf(change(event, assignment))).toMatchObject({
    sqlstate: 'PT422',
    param: assignment.split(' ')[0],
  })
})

test.each([
  ['currency', 'ZZZ'],
  // A metal, a unit of account, no currency, and one that the euro replaced.
  ...['eur', 'EURO', '', 'XAU', 'XDR', 'XXX', 'DEM'].map((code) => ['currency', code]),
  ['online_url', 'javascript:alert(1)'],
  ['online_url', 'https://user:secret@live.example/'],
  ['online_url', 'https://user@live.example'],
  ['online_url', String.raw`https://live.example\@other.example/`],
  ['online_url', 'https://live.example/\u202egpj.exe'],
  ['online_url', 'https://live\u2066.example/'],
  ['online_url', 'https://live.example/\u200b'],
  ['online_url', 'https://live.example/\u0085'],
])('an event is refused whose %s is %j', async (column = '', value = '') => {
  const event = await eventThatIs('draft')
  const refused = { sqlstate: 'PT422', code: 'validation_failed', param: column }
  expect(await refusalOf(change(event, `${column} = $2`, [value]))).toMatchObject(refused)
  const insert = `insert into public.events (organisation_id, name, ${column}) select organisation_id, name, $2 from public.events where id = $1`
  expect(await refusalOf(studio.query(insert, [event.id, value]))).toMatchObject(refused)
})

test.each([
  ['currency', 'XOF'],
  ['online_url', 'https://[2001:db8::1]:8443/live?who=me@example.com#@room'],
  ['online_url', 'https://bücher.example/großer-saal'],
])('an event may have the %s %j', async (column, value) => {
  await change(await eventThatIs('draft'), `${column} = $2`, [value])
})

test('a withdrawn currency stays', async () => {
  const event = await eventThatIs('draft')
  await during(async (client) => {
    await client.query(
      'create or replace function private.is_currency(code text) returns boolean language sql return false',
    )
    const save = "update public.events set name = 'Renamed', currency = currency where id = $1"
    expect((await client.query(save, [event.id])).rowCount).toBe(1)
  })
})

test.each([
  ['Köln', 'en', 'koeln'],
  ['Ærø Öko-Straßenfest', 'de', 'aeroe-oeko-strassenfest'],
  ['Ko\u0308ln', 'de', 'koeln'],
  ['Noël à Besançon, l’œuvre', 'fr', 'noel-a-besancon-l-oeuvre'],
  ['Reünie: coördinatie', 'nl', 'reunie-coordinatie'],
  ['¿Qué? Pingüino Niño', 'es', 'que-pinguino-nino'],
  ['Łódź & Žižkov', 'en', 'lodz-zizkov'],
  ['مؤتمر', 'en', 'event'],
])('the slug of %s in %s is %s', async (name, locale, slug) => {
  const organisation = await createOrganisation()
  const { rows } = await studio.query(
    'insert into public.events (organisation_id, name, locale) values ($1, $2, $3) returning slug',
    [organisation.id, name, locale],
  )
  expect(rows).toEqual([{ slug }])
})
