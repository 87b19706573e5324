import { expect, test } from 'vitest'
import { during, row, studio } from '../support/database.ts'
import { once } from '../support/once.ts'
import { createOrganisation } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'

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

  const tooEarly = await send('POST', `${path}/publish`)
  expect([tooEarly.status, tooEarly.body.error.code, tooEarly.body.error.param]).toEqual([
    409,
    'event_not_publishable',
    'ticket_types',
  ])
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

test('a change leaves out what stays, and null clears', async () => {
  const { send } = await arrange()
  const { body } = await send('POST', '/events', {
    name: 'Fair',
    description: 'Old',
    capacity: 10,
    venue: { name: 'Hall', city: 'Hamburg' },
    metadata: { a: 1 },
  })
  const changed = await send('PATCH', `/events/${body.data.id}`, { description: null, venue: { name: 'Tent' } })
  expect(changed.status).toBe(200)
  expect(changed.body.data).toMatchObject({
    name: 'Fair',
    description: null,
    capacity: 10,
    metadata: { a: 1 },
    venue: { name: 'Tent', city: 'Hamburg' },
  })
  expect((await send('PATCH', `/events/${body.data.id}`, { venue: null })).body.data.venue).toBeNull()
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
    refused('ends_at', 'An event ends after it starts.'),
  )
  await send('PATCH', `/ticket-types/${event.ticketTypeId}`, { sales_start_at: '2027-01-01T00:00:00Z' })
  expect(await change(`/ticket-types/${event.ticketTypeId}`, { sales_end_at: '2026-12-31T00:00:00Z' })).toEqual(
    refused('sales_end_at', 'A sale ends after it starts.'),
  )
})

test('a change with the ETag of an older version is refused with 412, and with the present one it is made', async () => {
  const { send } = await arrange()
  const { body } = await send('POST', '/events', { name: 'Fair' })
  const path = `/events/${body.data.id}`
  const read = await send('GET', path)
  const etag = read.headers.get('etag') as string
  expect((await send('PATCH', path, { name: 'Fair 2' }, { 'If-Match': etag })).status).toBe(200)
  const stale = await send('PATCH', path, { name: 'Fair 3' }, { 'If-Match': etag })
  expect([stale.status, stale.body.error.code, stale.body.error.details]).toEqual([
    412,
    'version_mismatch',
    { version: 2 },
  ])
  const odd = await send('PATCH', path, { name: 'Fair 3' }, { 'If-Match': 'two' })
  expect([odd.status, odd.body.error.param]).toEqual([422, 'If-Match'])
  expect((await send('PATCH', path, { name: 'Fair 3' }, { 'If-Match': '*' })).body.data.version).toBe(3)
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
  const answer = await send('PATCH', `/events/${body.data.id}`, changes)
  expect([answer.status, answer.body.error.code, answer.body.error.param]).toEqual([422, 'validation_failed', param])
  expect((await send('GET', `/events/${body.data.id}`)).body).toEqual(body)
})

test('slug and external_id are unique within the organisation, and not beyond', async () => {
  const [ours, theirs] = [await arrange(), await arrange()]
  const names = { name: 'Fair', slug: 'fair', external_id: 'crm-1' }
  const first = await ours.send('POST', '/events', names)
  expect(first.status).toBe(201)
  expect((await theirs.send('POST', '/events', names)).status).toBe(201)
  for (const [twice, param] of [
    [{ slug: 'fair' }, 'slug'],
    [{ external_id: 'crm-1' }, 'external_id'],
  ] as const) {
    const { status, body } = await ours.send('POST', '/events', { name: 'Other', ...twice })
    expect([status, body.error.code, body.error.param]).toEqual([409, 'already_exists', param])
    expect(body.error.details).toEqual({ id: first.body.data.id })
  }
  // Without a slug one is made that is free.
  expect((await ours.send('POST', '/events', { name: 'Fair' })).body.data.slug).toMatch(/^fair-[0-9a-z]{6}$/)
  expect((await ours.send('GET', '/events?external_id=crm-1')).body.data).toHaveLength(1)
})

test('a dry run of a cancellation names whom it touches and changes nothing; the real one cancels them', async () => {
  const { organisation, send } = await arrange()
  const event = await organisation.event()
  const [{ orderId, attendeeId }] = [await event.guest(), await event.guest()]
  const state = () =>
    row(
      `select e.status as event, o.status as order, a.status as attendee, e.version
       from public.events e join public.orders o on o.event_id = e.id join public.attendees a on a.order_id = o.id
       where o.id = $1 and a.id = $2`,
      [orderId, attendeeId],
    )
  const before = await state()

  const dry = await send('POST', `/events/${event.id}/cancel`, { dry_run: true })
  expect(dry.body).toMatchObject({ effect: { dry_run: true, orders: 2, attendees: 2 }, data: { status: 'published' } })
  expect(await state()).toEqual(before)

  const real = await send('POST', `/events/${event.id}/cancel`)
  expect(real.body).toMatchObject({
    effect: { dry_run: false, orders: 2, attendees: 2 },
    data: { status: 'cancelled' },
  })
  expect(await state()).toMatchObject({ event: 'cancelled', order: 'cancelled', attendee: 'cancelled' })
  expect(await event.sold()).toBe(0)
})

test('a dry run asked for in the query is not taken for the real thing', async () => {
  const { organisation, send } = await arrange()
  const event = await organisation.event()
  const { status, body } = await send('POST', `/events/${event.id}/cancel?dry_run=true`)
  expect([status, body.error.code, body.error.param]).toEqual([422, 'validation_failed', 'dry_run'])
  expect((await send('GET', `/events/${event.id}`)).body.data.status).toBe('published')
})

test('a dry run leaves no idempotency record, and its ETag is that of the event as it is', async () => {
  const { organisation, send } = await arrange()
  const event = await organisation.event()
  const headers = { 'Idempotency-Key': 'same' }
  const dry = await send('POST', `/events/${event.id}/cancel`, { dry_run: true }, headers)
  const { headers: read } = await send('GET', `/events/${event.id}`)
  expect(dry.headers.get('etag')?.split('-')[0]).toBe(read.get('etag')?.split('-')[0])
  const real = await send('POST', `/events/${event.id}/cancel`, undefined, headers)
  expect([real.status, real.headers.get('idempotent-replayed')]).toEqual([200, null])
})

test('cancelling one order before does not make cancelling many read rows over and over', async () => {
  const { organisation, send } = await arrange()
  const [small, large] = [await organisation.event(), await organisation.event()]
  const many = 500
  await small.guest()
  await studio.query(
    `insert into public.orders (event_id, name, email)
     select $1, 'Guest', 'guest@example.com' from generate_series(1, $2::integer)`,
    [large.id, many],
  )
  await studio.query(
    `insert into public.attendees (order_id, ticket_type_id, name, email)
     select o.id, $2, o.name, o.email from public.orders o where o.event_id = $1`,
    [large.id, large.ticketTypeId],
  )
  expect(await large.sold()).toBe(many)
  const client = await studio.connect()
  try {
    // One connection, one cached plan: the small event first, as in a pool.
    await client.query("update public.events set status = 'cancelled' where id = $1", [small.id])
    await client.query('begin')
    await client.query("update public.events set status = 'cancelled' where id = $1", [large.id])
    const { rows } = await client.query(
      'select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::integer as read from pg_stat_xact_user_tables',
    )
    await client.query('commit')
    expect(rows[0].read).toBeLessThan(many * 50)
  } finally {
    client.release()
  }
  expect((await send('GET', `/orders?event_id=${large.id}&status=completed`)).body.data).toEqual([])
  expect(await large.sold()).toBe(0)
})

test('nothing is answered as unchanged that only the version calls so', async () => {
  const { organisation, send } = await arrange()
  const event = await organisation.event()
  const path = `/ticket-types/${event.ticketTypeId}`
  const etag = (await send('GET', path)).headers.get('etag') as string
  await event.guest()
  const again = await send('GET', path, undefined, { 'If-None-Match': etag })
  expect([again.status, again.body.data.quantity_sold]).toEqual([200, 1])
})

test.each([
  [{ online_url: 'http://x.example/\ud800' }, 'online_url'],
  [{ online_url: 'https://user:secret@live.example/' }, 'online_url'],
  [{ online_url: 'https://live.example/\u202egpj.exe' }, 'online_url'],
  [{ currency: 'ZZZ' }, 'currency'],
  [{ metadata: { 'a\ud800': 1 } }, 'metadata'],
  [{ metadata: { ['k'.repeat(41)]: 1 } }, 'metadata'],
  [{ starts_at: '0000-01-01T00:00:00Z' }, 'starts_at'],
  [{ starts_at: '2027-01-01T00:00:00+23:59' }, 'starts_at'],
  [{ ends_at: '9999-12-31T23:59:59-14:00' }, 'ends_at'],
])('an event with %j is refused, naming %s', async (fields, param) => {
  const { send } = await refusing()
  const { status, body } = await send('POST', '/events', { name: 'Odd', ...fields })
  expect([status, body.error.code, body.error.param]).toEqual([422, 'validation_failed', param])
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

test('a repeated cancellation with the same idempotency key is the first answer again', async () => {
  const { organisation, send } = await arrange()
  const event = await organisation.event()
  await event.guest()
  const cancel = () => send('POST', `/events/${event.id}/cancel`, undefined, { 'Idempotency-Key': 'once' })
  const [first, second] = [await cancel(), await cancel()]
  expect(second.body).toEqual(first.body)
  expect(second.headers.get('idempotent-replayed')).toBe('true')
  expect((await send('POST', `/events/${event.id}/cancel`)).body.error.code).toBe('invalid_transition')
})

test("another organisation's event cannot be changed, published or cancelled", async () => {
  const [ours, theirs] = [await arrange(), await arrange()]
  const event = await theirs.organisation.event()
  for (const [method, path, body] of [
    ['PATCH', '', { name: 'Mine' }],
    ['POST', '/publish', undefined],
    ['POST', '/unpublish', { dry_run: true }],
    ['POST', '/cancel', { dry_run: true }],
    ['POST', '/complete', undefined],
    ['POST', '/ticket-types', { name: 'Mine' }],
    ['POST', '/promo-codes', { code: 'MINE', percent_off: 1 }],
    ['GET', '/promo-codes', undefined],
  ] as const) {
    const answer = await ours.send(method, `/events/${event.id}${path}`, body)
    expect([answer.status, answer.body.error.code, answer.body.error.param]).toEqual([404, 'not_found', 'event_id'])
  }
})

test('ticket types: an archived one is no longer issued, and a quantity below what is sold is refused', async () => {
  const { organisation, send } = await arrange()
  const event = await organisation.event()
  await event.guest()
  const path = `/ticket-types/${event.ticketTypeId}`
  const before = (await send('GET', path)).body.data
  const refused = await send('PATCH', path, { quantity: 0 })
  expect([refused.status, refused.body.error.code, refused.body.error.details]).toEqual([
    409,
    'quantity_below_sold',
    { quantity_sold: 1 },
  ])
  const archived = await send('PATCH', path, { status: 'archived', quantity: 1 })
  expect(archived.body.data).toMatchObject({
    sales_status: 'archived',
    quantity_available: 0,
    version: before.version + 1,
  })
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

test.each([
  [{ min_per_order: 5, max_per_order: 2 }, 'max_per_order'],
  [{ price: 1.5 }, 'price'],
  [{ price: -1 }, 'price'],
  [{ sales_start_at: '2027-01-02T00:00:00Z', sales_end_at: '2027-01-01T00:00:00Z' }, 'sales_end_at'],
])('a ticket type with %j is refused, naming %s', async (fields, param) => {
  const { event, send } = await refusing()
  const { status, body } = await send('POST', `/events/${event.id}/ticket-types`, { name: 'Odd', ...fields })
  expect([status, body.error.code, body.error.param]).toEqual([422, 'validation_failed', param])
})

const unseen = '\u3164\u2800\u00ad\u200e'

test.each<[string, object, string]>([
  ['/events', { name: unseen }, 'name'],
  ['/events', { name: 'Fair', venue: { name: unseen } }, 'venue.name'],
  ['/events/:event/ticket-types', { name: unseen }, 'name'],
  ['/events/:event/check-in-points', { name: unseen }, 'name'],
  ['/events/:event/waiting-list', { name: unseen, email: 'ada@example.com' }, 'name'],
])('at %s, %j has a name of which nothing is seen', async (path, body, param) => {
  const { event, send } = await refusing()
  const more = path.endsWith('waiting-list') && { ticket_type_id: event.ticketTypeId }
  const refused = await send('POST', path.replace(':event', event.id), { ...body, ...more })
  expect([refused.status, refused.body.error.code, refused.body.error.param]).toEqual([422, 'validation_failed', param])
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

test('promo codes: the same word in other letters is the same code, and the state follows dates, limit and status', async () => {
  const { organisation, send } = await arrange()
  const event = await organisation.event()
  const path = `/events/${event.id}/promo-codes`
  const created = await send('POST', path, { code: 'Spring', percent_off: 12.5, max_redemptions: 3 })
  expect(created.status).toBe(201)
  expect(created.body.data).toMatchObject({ code: 'Spring', percent_off: 12.5, state: 'valid', times_redeemed: 0 })

  const twice = await send('POST', path, { code: 'SPRING', percent_off: 5 })
  expect([twice.status, twice.body.error.code, twice.body.error.param]).toEqual([409, 'already_exists', 'code'])

  const change = (changes: unknown) => send('PATCH', `/promo-codes/${created.body.data.id}`, changes)
  expect((await change({ valid_from: '2999-01-01T00:00:00Z' })).body.data.state).toBe('upcoming')
  expect((await change({ valid_from: null, valid_until: '2020-01-01T00:00:00Z' })).body.data.state).toBe('expired')
  expect((await change({ status: 'disabled' })).body.data.state).toBe('disabled')
  expect((await send('GET', path)).body.data).toHaveLength(1)
})

const notOne = { percent_off: 10, amount_off: 500 }

test.each<[object, string]>([
  [notOne, 'amount_off'],
  [{}, 'percent_off'],
  [{ amount_off: null }, 'percent_off'],
  ...[0, -1, 4.5, '500', 100_000_000_001, 1e19].map((amount_off): [object, string] => [{ amount_off }, 'amount_off']),
])('a promo code with %j is refused, naming %s', async (discount, param) => {
  const { event, send } = await refusing()
  const { status, body } = await send('POST', `/events/${event.id}/promo-codes`, { code: 'ODD', ...discount })
  expect([status, body.error.code, body.error.param]).toEqual([422, 'validation_failed', param])
})

test('a promo code changes from a percentage to an amount and back in one edit, and is never both or neither', async () => {
  const { organisation, send } = await arrange()
  const event = await organisation.event()
  const { data: code } = (await send('POST', `/events/${event.id}/promo-codes`, { code: 'TEN', percent_off: 10 })).body
  expect(code).toMatchObject({ percent_off: 10, amount_off: null })
  const change = async (changes: object) => {
    const { status, body } = await send('PATCH', `/promo-codes/${code.id}`, changes)
    return status === 200 ? [body.data.percent_off, body.data.amount_off] : [status, body.error.code, body.error.param]
  }
  expect(await change({ percent_off: null, amount_off: 500 })).toEqual([null, 500])
  expect(await change({ amount_off: 700 })).toEqual([null, 700])
  expect(await change({ percent_off: 10 })).toEqual([422, 'validation_failed', 'amount_off'])
  expect(await change(notOne)).toEqual([422, 'validation_failed', 'amount_off'])
  expect(await change({ amount_off: null })).toEqual([422, 'validation_failed', 'percent_off'])
  expect(await change({ amount_off: null, percent_off: 12.5 })).toEqual([12.5, null])
})

test('a promo code is good only for ticket types of its event', async () => {
  const { organisation, send } = await arrange()
  const [event, other] = [await organisation.event(), await organisation.event()]
  const { status, body } = await send('POST', `/events/${event.id}/promo-codes`, {
    code: 'VIP',
    percent_off: 10,
    ticket_type_ids: [other.ticketTypeId],
  })
  expect([status, body.error.code, body.error.param]).toEqual([422, 'validation_failed', 'ticket_type_ids'])
})

test('an organiser who cancels an event in Studio cancels its orders, and paid ones become refund_due', async () => {
  const { organisation } = await arrange()
  const event = await organisation.event()
  const order = await event.payer()
  await studio.query('insert into public.payments (order_id, amount) values ($1, 4900)', [order.orderId])
  await studio.query("update public.events set status = 'cancelled' where id = $1", [event.id])
  expect(await row('select status, payment_status from public.orders where id = $1', [order.orderId])).toEqual({
    status: 'cancelled',
    payment_status: 'refund_due',
  })
})
