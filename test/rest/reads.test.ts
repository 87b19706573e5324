import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'

test('me shows the organisation, the scopes and the rate limit of any key, and never the key', async () => {
  const organisation = await createOrganisation()
  const key = await organisation.key('checkin:write')
  const { status, body } = await rest(key)('GET', '/me')
  expect(status).toBe(200)
  expect(body.data).toMatchObject({
    object: 'api_key',
    prefix: key.slice(0, 19),
    scopes: ['checkin:write'],
    organisation: { id: organisation.id, slug: organisation.slug, plan: 'enterprise' },
    rate_limit_per_minute: 60_000,
  })
  expect(JSON.stringify(body)).not.toContain(key)
})

test('events are listed newest first, and filtered by status', async () => {
  const organisation = await createOrganisation()
  const draft = await organisation.event({ status: 'draft' })
  const published = await organisation.event()
  const send = rest(await organisation.key('events:read'))

  const all = await send('GET', '/events')
  expect(all.body).toMatchObject({ has_more: false, next_cursor: null })
  expect(all.body.data.map((e: { id: string }) => e.id)).toEqual([published.id, draft.id])

  const filtered = await send('GET', '/events?status=published')
  expect(filtered.body.data).toMatchObject([
    { object: 'event', id: published.id, status: 'published', phase: 'upcoming' },
  ])
})

test('an organisation without events has an empty list', async () => {
  const organisation = await createOrganisation()
  const { body } = await rest(await organisation.key())('GET', '/events')
  expect(body).toEqual({ data: [], has_more: false, next_cursor: null })
})

test('walking pages while events come and change neither skips nor repeats one that was there throughout', async () => {
  const organisation = await createOrganisation()
  const there: string[] = []
  for (let i = 0; i < 10; i++) there.unshift((await organisation.event()).id)
  const send = rest(await organisation.key())

  const seen: string[] = []
  let cursor = ''
  for (let page = 0; page < 10; page++) {
    const { body } = await send('GET', `/events?limit=3${cursor && `&cursor=${cursor}`}`)
    seen.push(...body.data.map((e: { id: string }) => e.id))
    await organisation.event()
    await studio.query(
      "update public.events set name = name || '!', starts_at = starts_at - interval '1 minute' where organisation_id = $1",
      [organisation.id],
    )
    if (!body.has_more) break
    cursor = body.next_cursor
  }
  expect(seen).toEqual(there)
})

test('the page says that it is the last also when it is exactly full', async () => {
  const organisation = await createOrganisation()
  await organisation.event()
  await organisation.event()
  const { body } = await rest(await organisation.key())('GET', '/events?limit=2')
  expect([body.data.length, body.has_more, body.next_cursor]).toEqual([2, false, null])
})

test.each([
  ['status=open', 'status'],
  ['limit=0', 'limit'],
  ['limit=101', 'limit'],
  ['limit=ten', 'limit'],
  ['limit=1&limit=2', 'limit'],
  ['cursor=!', 'cursor'],
  [`cursor=${'x'.repeat(101)}`, 'cursor'],
  ['statuss=published', 'statuss'],
])('GET /events?%s is refused by name', async (query, param) => {
  const organisation = await createOrganisation()
  const { status, body } = await rest(await organisation.key())('GET', `/events?${query}`)
  expect([status, body.error.code, body.error.param]).toEqual([422, 'validation_failed', param])
})

test('an event shows its venue, and null where it has none', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const send = rest(await organisation.key('events:read'))
  expect((await send('GET', `/events/${event.id}`)).body.data.venue).toBeNull()
  await studio.query("update public.events set venue_name = 'Old Gasworks', venue_country = 'DE' where id = $1", [
    event.id,
  ])
  expect((await send('GET', `/events/${event.id}`)).body.data.venue).toEqual({
    name: 'Old Gasworks',
    address: null,
    city: null,
    postcode: null,
    country: 'DE',
  })
})

test('ticket types come in the order of the organiser, with what is left of each', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event({ capacity: 5, quantity: 3 })
  const second = await event.ticketType({ name: 'Unlimited', price: 4900 })
  await studio.query('update public.ticket_types set position = 1 where id = $1', [event.ticketTypeId])
  await event.guest()

  const { status, body } = await rest(await organisation.key('events:read'))('GET', `/events/${event.id}/ticket-types`)
  expect(status).toBe(200)
  expect(body.data).toMatchObject([
    {
      id: second,
      price: 4900,
      currency: 'EUR',
      quantity: null,
      quantity_sold: 0,
      quantity_available: 4,
      sales_status: 'on_sale',
    },
    { id: event.ticketTypeId, quantity: 3, quantity_sold: 1, quantity_available: 2, sales_status: 'on_sale' },
  ])
})

test('the event being full makes every ticket type sold out', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event({ capacity: 1 })
  await event.guest()
  const { body } = await rest(await organisation.key())('GET', `/events/${event.id}/ticket-types`)
  expect(body.data).toMatchObject([{ quantity_available: 0, sales_status: 'sold_out' }])
})

test.each(['', '/ticket-types'])(
  "another organisation's event, and an unknown one, do not exist at /events/{id}%s",
  async (rest_of_path) => {
    const [ours, theirs] = await Promise.all([createOrganisation(), createOrganisation()])
    const event = await theirs.event()
    const send = rest(await ours.key())
    const foreign = await send('GET', `/events/${event.id}${rest_of_path}`)
    const unknown = await send('GET', `/events/${randomUUID()}${rest_of_path}`)
    for (const { status, body } of [foreign, unknown]) {
      expect([status, body.error.code, body.error.param]).toEqual([404, 'not_found', 'event_id'])
    }
    const { request_id: _, ...foreignError } = foreign.body.error
    const { request_id: __, ...unknownError } = unknown.body.error
    expect(foreignError).toEqual(unknownError)
    expect((await send('GET', '/events')).body.data).toEqual([])
  },
)

test('an identifier that is none is refused by name', async () => {
  const organisation = await createOrganisation()
  const { status, body } = await rest(await organisation.key())('GET', '/events/42')
  expect([status, body.error.code, body.error.param]).toEqual([422, 'validation_failed', 'event_id'])
})
