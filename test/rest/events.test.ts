import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { during, studio } from '../support/database.ts'
import { once } from '../support/once.ts'
import { createOrganisation } from '../support/organisation.ts'
import { invalid, problemOf, rest } from '../support/rest.ts'

const dates = { starts_at: '2027-06-01T18:00:00+02:00', ends_at: '2027-06-01T23:00:00+02:00' }

async function arrange() {
  const organisation = await createOrganisation()
  const key = await organisation.key()
  return { organisation, key, send: rest(key) }
}

const refusing = once(async () => {
  const it = await arrange()
  return {
    ...it,
    event: await it.organisation.event(),
    draft: (await it.send('POST', '/events', { name: 'Fair' })).body,
  }
})

test('an event runs from creation to its first guest and its end without Studio', async () => {
  const { send } = await arrange()
  const created = await send('POST', '/events', { name: 'Garden Party & Friends', ...dates, capacity: 2 })
  expect(created.status).toBe(201)
  expect(created.body.data).toMatchObject({
    status: 'draft',
    slug: 'garden-party-friends',
    starts_at: '2027-06-01T16:00:00.000Z',
    timezone: 'UTC',
    locale: 'en',
    currency: 'EUR',
    version: 1,
  })
  expect(created.headers.get('etag')).toMatch(/^"1-[\w-]{22}"$/)
  const path = `/events/${created.body.data.id}`

  expect(problemOf(await send('POST', `${path}/publish`))).toEqual([409, 'event_not_publishable', 'ticket_types'])
  const ticketType = await send('POST', `${path}/ticket-types`, { name: 'General', price: 4900 })
  expect(ticketType.status).toBe(201)
  expect(ticketType.body.data).toMatchObject({
    price: 4900,
    currency: 'EUR',
    quantity_available: 2,
    sales_status: 'on_sale',
  })

  expect((await send('POST', `${path}/publish`)).body.data).toMatchObject({ status: 'published' })
  const guest = { ticket_type_id: ticketType.body.data.id, name: 'Mary', email: 'mary@example.com' }
  expect((await send('POST', `${path}/registrations`, guest)).status).toBe(201)
  expect((await send('POST', `${path}/complete`)).body.data.status).toBe('completed')
  expect((await send('POST', `${path}/registrations`, guest)).body.error.code).toBe('event_not_published')
})

test('a change of a venue leaves the members out that it does not name, and null clears one', async () => {
  const { send } = await arrange()
  const venue = { name: 'Hall', address: 'Kaistrasse 1', city: 'Hamburg', postcode: '20457', country: 'DE' }
  const { body } = await send('POST', '/events', { name: 'Fair', venue })
  const change = async (changes: object | null) =>
    (await send('PATCH', `/events/${body.data.id}`, { venue: changes })).body.data.venue
  expect(await change({ name: 'Tent' })).toEqual({ ...venue, name: 'Tent' })
  expect(await change({ address: null, postcode: null })).toEqual({
    ...venue,
    name: 'Tent',
    address: null,
    postcode: null,
  })
  expect(await change({})).toMatchObject({ name: 'Tent', city: 'Hamburg' })
  expect(await change(null)).toBeNull()
  const none = { name: null, address: null, city: null, postcode: null, country: null }
  expect(await change({ city: 'Bremen' })).toEqual({ ...none, city: 'Bremen' })
})

test('a change that only the stored rest of the object makes impossible is refused in a sentence', async () => {
  const { organisation, send } = await arrange()
  const event = await organisation.event()
  const change = async (path: string, changes: object) => {
    const { status, body } = await send('PATCH', path, changes)
    const { code, param, message, details } = body.error
    return [status, code, param, message, details]
  }
  const refused = (param: string, message: string) => [
    422,
    'validation_failed',
    param,
    message,
    { fields: [{ param, message }] },
  ]
  expect(await change(`/events/${event.id}`, { ends_at: '2020-01-01T00:00:00Z' })).toEqual(
    refused('ends_at', 'An event must end after it starts.'),
  )
  await send('PATCH', `/ticket-types/${event.ticketTypeId}`, { sales_start_at: '2027-01-01T00:00:00Z' })
  expect(await change(`/ticket-types/${event.ticketTypeId}`, { sales_end_at: '2026-12-31T00:00:00Z' })).toEqual(
    refused('sales_end_at', 'Sales must end after they start.'),
  )
})

test('of two changes made at once to the same version, one is made', async () => {
  const { send } = await arrange()
  const { body } = await send('POST', '/events', { name: 'Fair' })
  const answers = await Promise.all(
    Array.from({ length: 6 }, (_, i) =>
      send('PATCH', `/events/${body.data.id}`, { name: `Fair ${i}` }, { 'If-Match': '"1"' }),
    ),
  )
  expect(answers.map((a) => a.status).sort()).toEqual([200, 412, 412, 412, 412, 412])
})

test.each([
  [{}, 'body'],
  [{ name: null }, 'name'],
  [{ nmae: 'x' }, 'nmae'],
  [{ venue: { nmae: 'x' } }, 'venue.nmae'],
  [{ starts_at: '2027-06-01' }, 'starts_at'],
  [{ ends_at: '2026-01-01T00:00:00Z', starts_at: '2027-01-01T00:00:00Z' }, 'ends_at'],
  [{ timezone: 'Mars/Olympus' }, 'timezone'],
  [{ locale: 'tlh' }, 'locale'],
  [{ capacity: 0 }, 'capacity'],
  [{ currency: 'euro' }, 'currency'],
  [{ status: 'published' }, 'status'],
  [{ metadata: { nested: {} } }, 'metadata.nested'],
])('a change to %j is refused, naming %s, and changes nothing', async (changes, param) => {
  const { send, draft: body } = await refusing()
  expect(problemOf(await send('PATCH', `/events/${body.data.id}`, changes))).toEqual(invalid(param))
  expect((await send('GET', `/events/${body.data.id}`)).body).toEqual(body)
})

test('a dry run asked for in the query is not taken for the real thing', async () => {
  const { organisation, send } = await arrange()
  const event = await organisation.event()
  expect(problemOf(await send('POST', `/events/${event.id}/cancel?dry_run=true`))).toEqual(invalid('dry_run'))
  expect((await send('GET', `/events/${event.id}`)).body.data.status).toBe('published')
})

test('a promo code can still be disabled when one of its ticket types is gone', async () => {
  const { organisation, send } = await arrange()
  const event = await organisation.event()
  const gone = await event.ticketType()
  const { body } = await send('POST', `/events/${event.id}/promo-codes`, {
    code: 'VIP',
    percent_off: 10,
    ticket_type_ids: [gone, gone],
  })
  expect(body.data.ticket_type_ids).toEqual([gone])
  await studio.query('delete from public.ticket_types where id = $1', [gone])
  expect((await send('PATCH', `/promo-codes/${body.data.id}`, { status: 'disabled' })).body.data.state).toBe('disabled')
})

test('a dry run is refused for the same reason as the real thing', async () => {
  const { organisation, send } = await arrange()
  const event = await organisation.event()
  await event.guest()
  const dry = await send('POST', `/events/${event.id}/unpublish`, { dry_run: true })
  const real = await send('POST', `/events/${event.id}/unpublish`)
  for (const { status, body } of [dry, real]) expect([status, body.error.code]).toEqual([409, 'event_has_orders'])
  const empty = await organisation.event()
  const answer = await send('POST', `/events/${empty.id}/unpublish`, { dry_run: true })
  expect(answer.body).toMatchObject({
    effect: { dry_run: true, orders: 0, attendees: 0 },
    data: { status: 'published' },
  })
  expect((await send('GET', `/events/${empty.id}`)).body.data.status).toBe('published')
})

test("an organiser's edit of a ticket type does not fail because somebody bought one meanwhile", async () => {
  const { organisation, send } = await arrange()
  const event = await organisation.event()
  const etag = (await send('GET', `/ticket-types/${event.ticketTypeId}`)).headers.get('etag') as string
  await event.guest()
  const { status } = await send(
    'PATCH',
    `/ticket-types/${event.ticketTypeId}`,
    { name: 'Renamed' },
    { 'If-Match': etag },
  )
  expect(status).toBe(200)
})

const unseen = '\u3164\u2800\u00ad\u200e'
const notOne = { percent_off: 10, amount_off: 500 }
const [events, ticketTypes, promoCodes] = ['/events', '/events/:event/ticket-types', '/events/:event/promo-codes']

test.each<[string, object, string]>([
  [events, { online_url: 'http://x.example/\ud800' }, 'online_url'],
  [events, { online_url: 'https://user:secret@live.example/' }, 'online_url'],
  [events, { online_url: 'https://live.example/\u202egpj.exe' }, 'online_url'],
  [events, { currency: 'ZZZ' }, 'currency'],
  [events, { metadata: { 'a\ud800': 1 } }, 'metadata'],
  [events, { metadata: { ['k'.repeat(41)]: 1 } }, 'metadata'],
  [events, { starts_at: '0000-01-01T00:00:00Z' }, 'starts_at'],
  [events, { starts_at: '2027-01-01T00:00:00+23:59' }, 'starts_at'],
  [events, { ends_at: '9999-12-31T23:59:59-14:00' }, 'ends_at'],
  [events, { name: unseen }, 'name'],
  [events, { venue: { name: unseen } }, 'venue.name'],
  [ticketTypes, { min_per_order: 5, max_per_order: 2 }, 'max_per_order'],
  [ticketTypes, { price: 1.5 }, 'price'],
  [ticketTypes, { price: -1 }, 'price'],
  [ticketTypes, { sales_start_at: '2027-01-02T00:00:00Z', sales_end_at: '2027-01-01T00:00:00Z' }, 'sales_end_at'],
  [ticketTypes, { name: unseen }, 'name'],
  ['/events/:event/check-in-points', { name: unseen }, 'name'],
  ['/events/:event/waiting-list', { name: unseen, email: 'ada@example.com', ticket_type_id: randomUUID() }, 'name'],
  [promoCodes, { code: 'ODD', ...notOne }, 'amount_off'],
  [promoCodes, { code: 'ODD' }, 'percent_off'],
  [promoCodes, { code: 'ODD', amount_off: null }, 'percent_off'],
  [promoCodes, { code: 'ODD', percent_off: 10, ticket_type_ids: [randomUUID()] }, 'ticket_type_ids'],
  ...[0, -1, 4.5, '500', 100_000_000_001, 1e19].map((amount_off): [string, object, string] => [
    promoCodes,
    { code: 'ODD', amount_off },
    'amount_off',
  ]),
])('at %s, %j is refused, naming %s', async (path, fields, param) => {
  const { event, send } = await refusing()
  const body = { ...(path !== promoCodes && { name: 'Odd' }), ...fields }
  expect(problemOf(await send('POST', path.replace(':event', event.id), body))).toEqual(invalid(param))
})

test('in SQL, a name of which nothing is seen is refused as an empty one, whoever writes it', async () => {
  const { event, organisation } = await refusing()
  const attempts = [
    ['insert into public.events (organisation_id, name) values ($1, $2)', organisation.id],
    ['update public.ticket_types set name = $2 where event_id = $1', event.id],
    ['insert into public.check_in_points (event_id, name) values ($1, $2)', event.id],
    ['update public.organisations set name = $2 where id = $1', organisation.id],
  ] as const
  for (const [sql, id] of attempts) {
    // Not by hand, so that no mistake is looked for.
    const script = during(async (client) => {
      await client.query(`select set_config('request.jwt.claims', '{"role": "service_role"}', true)`)
      await client.query(sql, [id, unseen])
    })
    await expect(script, sql).rejects.toThrow()
  }
})

test('a promo code changes from a percentage to an amount and back in one edit, and is never both or neither', async () => {
  const { organisation, send } = await arrange()
  const event = await organisation.event()
  const { data: code } = (await send('POST', `/events/${event.id}/promo-codes`, { code: 'TEN', percent_off: 10 })).body
  expect(code).toMatchObject({ percent_off: 10, amount_off: null })
  const change = async (changes: object) => {
    const { status, body } = await send('PATCH', `/promo-codes/${code.id}`, changes)
    return status === 200 ? [body.data.percent_off, body.data.amount_off] : problemOf({ status, body })
  }
  expect(await change({ percent_off: null, amount_off: 500 })).toEqual([null, 500])
  expect(await change({ amount_off: 700 })).toEqual([null, 700])
  expect(await change({ percent_off: 10 })).toEqual(invalid('amount_off'))
  expect(await change(notOne)).toEqual(invalid('amount_off'))
  expect(await change({ amount_off: null })).toEqual(invalid('percent_off'))
  expect(await change({ amount_off: null, percent_off: 12.5 })).toEqual([12.5, null])
})
