import { expect, test } from 'vitest'
import { createOrganisation } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'
import { edit } from '../support/studio.ts'

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

test('the page says that it is the last also when it is exactly full', async () => {
  const organisation = await createOrganisation()
  await organisation.event()
  await organisation.event()
  const { body } = await rest(await organisation.key())('GET', '/events?limit=2')
  expect([body.data.length, body.has_more, body.next_cursor]).toEqual([2, false, null])
})

test('ticket types come in the order of the organiser, with what is left of each', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event({ capacity: 5, quantity: 3 })
  const second = await event.ticketType({ name: 'Unlimited', price: 4900 })
  await edit('ticket_types', event.ticketTypeId, 'position = 1')
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
