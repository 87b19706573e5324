// get_event_summary: its figures against a recount, what a key needs for the money, and the timeline in the zone of the event.

import { expect, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { createOrganiser } from '../support/organiser.ts'
import { rest } from '../support/rest.ts'
import { edit } from '../support/studio.ts'

test('the figures agree with a recount while people register, pay, arrive and cancel', async () => {
  const { event, send } = await createOrganiser({ capacity: 60, quantity: 40 })
  const paid = await event.ticketType({ price: 4900, quantity: 30, name: 'Paid' })
  await send('POST', `/events/${event.id}/promo-codes`, { code: 'TEN', percent_off: 10 })
  const summary = async () => (await send('GET', `/events/${event.id}/summary`)).body.data

  const register = async (i: number) => {
    const payable =
      i % 2 === 0 ? { ticket_type_id: paid, payment_method: 'invoice', ...(i % 4 === 0 && { promo_code: 'TEN' }) } : {}
    const { body } = await send('POST', `/events/${event.id}/registrations`, {
      ticket_type_id: event.ticketTypeId,
      name: `Guest ${i}`,
      email: `guest${i}@example.com`,
      ...payable,
    })
    const { id, total, attendees } = body.data
    if (i % 8 === 0)
      await studio.query("insert into public.payments (order_id, amount, method) values ($1, $2, 'card')", [id, total])
    if (i % 8 === 4)
      await studio.query("insert into public.payments (order_id, amount, method) values ($1, 100, 'card')", [id])
    if (i % 3 === 0) await send('POST', '/check-ins', { event_id: event.id, code: attendees[0].ticket_code })
    if (i % 5 === 0) await send('POST', `/attendees/${attendees[0].id}/cancel`)
    if (i === 7) await edit('attendees', attendees[0].id, "ticket_email_status = 'bounced'")
  }
  await Promise.all([
    ...Array.from({ length: 24 }, (_, i) => register(i)),
    ...Array.from({ length: 6 }, async () => {
      const { tickets, ticket_types, timeline } = await summary()
      const sum = (figure: string) =>
        ticket_types.reduce((sum: number, type: Record<string, number>) => sum + (type[figure] ?? 0), 0)
      for (const figure of ['sold', 'pending_payment', 'checked_in', 'cancelled'])
        expect(sum(figure)).toBe(tickets[figure])
      expect(timeline[0]?.registrations ?? 0).toBe(tickets.sold + tickets.cancelled)
      expect(tickets.available).toBe(60 - tickets.sold)
    }),
  ])

  const recount = await row<Record<string, string>>(
    `select
       (select sum(quantity_sold) from public.ticket_types where event_id = $1) as sold,
       count(*) filter (where status = 'awaiting_payment') as pending_payment,
       count(*) filter (where status <> 'cancelled' and checked_in_at is not null) as checked_in,
       count(*) filter (where status = 'cancelled') as cancelled,
       (select sum(greatest(total - amount_paid, 0)) from public.orders where event_id = $1 and status <> 'cancelled') as due,
       (select sum(p.amount) from public.payments p join public.orders o on o.id = p.order_id where o.event_id = $1) as paid,
       (select sum(amount_paid - case status when 'cancelled' then 0 else total end)
         from public.orders where event_id = $1 and payment_status = 'refund_due') as refundable,
       sum(discount) filter (where status <> 'cancelled') as discount,
       count(*) filter (where status <> 'cancelled' and promo_code_id is not null) as redeemed
     from public.attendees where event_id = $1`,
    [event.id],
  )
  const { tickets, revenue, promo_codes, ticket_emails, timeline } = await summary()
  const counted = Object.fromEntries(Object.entries(recount).map(([figure, value]) => [figure, Number(value)]))
  expect(tickets).toMatchObject({
    sold: counted.sold,
    available: 60 - (counted.sold ?? 0),
    pending_payment: counted.pending_payment,
    checked_in: counted.checked_in,
    cancelled: counted.cancelled,
  })
  expect(revenue).toEqual({
    currency: 'EUR',
    due: counted.due,
    paid: counted.paid,
    refunded: 0,
    refundable: counted.refundable,
  })
  expect(counted.refundable).toBeGreaterThan(0)
  expect(promo_codes).toMatchObject([
    { code: 'TEN', times_redeemed: counted.redeemed, discount: counted.discount, max_redemptions: null },
  ])
  expect(ticket_emails).toEqual({ bounced: 1, failed: 0 })
  const bounced = await send('GET', `/attendees?event_id=${event.id}&ticket_email_status=bounced`)
  expect(bounced.body.data).toHaveLength(ticket_emails.bounced)
  expect(timeline.at(-1).arrivals).toBe(counted.checked_in)
})

test('money is for keys with orders:read', async () => {
  const { event, send } = await createOrganiser({}, 'events:read')
  await event.payer()
  await studio.query("insert into public.promo_codes (event_id, code, percent_off) values ($1, 'TEN', 10)", [event.id])
  const { data } = (await send('GET', `/events/${event.id}/summary`)).body
  expect(data).toMatchObject({
    revenue: null,
    promo_codes: [{ discount: null }],
    tickets: { sold: 1, pending_payment: 1, available: null },
  })
})

test('the timeline has the days and hours of the zone of the event, the newest 200', async () => {
  const { event, send } = await createOrganiser({}, 'events:read')
  const { attendeeId } = await event.guest()
  // One registration in each of 203 hours.
  await edit('events', event.id, "timezone = 'Asia/Kathmandu'")
  await studio.query(
    `insert into public.attendees (order_id, ticket_type_id, name, email, created_at)
     select a.order_id, a.ticket_type_id, a.name, a.email, a.created_at - make_interval(hours => i)
     from public.attendees a, generate_series(1, 202) i where a.id = $1`,
    [attendeeId],
  )
  const summary = async (interval: string) =>
    (await send('GET', `/events/${event.id}/summary?interval=${interval}`)).body.data
  const [days, hours] = [await summary('day'), await summary('hour')]
  // 5:45 ahead of UTC.
  expect(days.timeline[0].starts_at).toMatch(/T18:15:00.000Z$/)
  expect(hours.timeline[0].starts_at).toMatch(/:15:00.000Z$/)
  const registered = ({ timeline }: { timeline: { registrations: number }[] }) =>
    timeline.reduce((sum, { registrations }) => sum + registrations, 0)
  expect([days.timeline_is_complete, registered(days)]).toEqual([true, 203])
  expect([hours.timeline_is_complete, registered(hours), hours.timeline.length]).toEqual([false, 200, 200])
})

test('weeks begin on Monday in the zone of the event, and tell ticket types apart', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const other = await event.ticketType({ name: 'VIP' })
  await edit('events', event.id, "timezone = 'Asia/Kathmandu'")
  const times = ['2026-01-04T18:10:00Z', '2026-01-04T18:15:00Z', '2026-01-11T18:10:00Z', '2026-01-11T18:15:00Z']
  const { orderId } = await event.guest()
  for (const [n, time] of times.entries()) {
    await studio.query(
      `insert into public.attendees (order_id, ticket_type_id, name, email, created_at)
       select $1, $2, 'Guest', 'guest@example.com', $3`,
      [orderId, n === 2 ? other : event.ticketTypeId, time],
    )
  }
  const { body } = await rest(await organisation.key())('GET', `/events/${event.id}/summary?interval=week`)
  const { timeline } = body.data
  const general = (registrations: number) => ({ id: event.ticketTypeId, name: 'General', registrations })
  expect(timeline.slice(0, 3)).toEqual([
    { starts_at: '2025-12-28T18:15:00.000Z', registrations: 1, arrivals: 0, ticket_types: [general(1)] },
    {
      starts_at: '2026-01-04T18:15:00.000Z',
      registrations: 2,
      arrivals: 0,
      ticket_types: expect.arrayContaining([general(1), { id: other, name: 'VIP', registrations: 1 }]),
    },
    { starts_at: '2026-01-11T18:15:00.000Z', registrations: 1, arrivals: 0, ticket_types: [general(1)] },
  ])
})

test('people are counted on each day on which they came, once, at each point and by the clock of the event', async () => {
  const { event, send } = await createOrganiser({ madeAt: '2026-04-01' }, 'events:read', 'checkin:write')
  const { rows: points } = await studio.query<{ id: string }>(
    `insert into public.check_in_points (event_id, name, admission)
     values ($1, 'Gate', 'once_per_day'), ($1, 'Hall', 're_entry') returning id`,
    [event.id],
  )
  const [gate, hall] = points.map(({ id }) => id)
  const [ann, bea, cay] = [await event.guest(), await event.guest(), await event.guest()]
  const scan = async (attendeeId: string, point: string | undefined, time: string, direction = 'entry') => {
    const { result } = await row<{ result: string }>(
      `insert into public.check_ins (event_id, check_in_point_id, attendee_id, scanned_at, direction)
       values ($1, $2, $3, $4, $5) returning result`,
      [event.id, point, attendeeId, time, direction],
    )
    expect(result).toBe('accepted')
  }
  // In Berlin, at 22:30 UTC, the next day has begun.
  await scan(ann.attendeeId, gate, '2026-05-01T10:15:00Z')
  await scan(bea.attendeeId, gate, '2026-05-01T10:45:00Z')
  await scan(cay.attendeeId, gate, '2026-05-01T11:45:00Z')
  await scan(ann.attendeeId, hall, '2026-05-01T12:00:00Z')
  await scan(ann.attendeeId, hall, '2026-05-01T13:00:00Z', 'exit')
  await scan(ann.attendeeId, hall, '2026-05-01T14:00:00Z')
  await scan(ann.attendeeId, gate, '2026-05-01T22:30:00Z')
  await scan(bea.attendeeId, undefined, '2026-05-02T07:00:00Z')
  await scan(bea.attendeeId, gate, '2026-05-02T08:00:00Z')
  await edit('attendees', cay.attendeeId, "status = 'cancelled'")

  const summary = async (interval: string) => {
    const { data } = (await send('GET', `/events/${event.id}/summary?interval=${interval}`)).body
    const arrivals = data.timeline
      .filter((step: { arrivals: number }) => step.arrivals > 0)
      .map((step: { starts_at: string; arrivals: number }) => [step.starts_at, step.arrivals])
    return { arrivals, points: data.check_in_points }
  }
  const [days, hours] = [await summary('day'), await summary('hour')]
  expect(days.arrivals).toEqual([
    ['2026-04-30T22:00:00.000Z', 2],
    ['2026-05-01T22:00:00.000Z', 2],
  ])
  expect(hours.arrivals).toEqual([
    ['2026-05-01T10:00:00.000Z', 2],
    ['2026-05-01T22:00:00.000Z', 1],
    ['2026-05-02T07:00:00.000Z', 1],
  ])
  expect(days.points).toMatchObject([
    { name: 'Gate', arrived: 2, arrived_today: 0, inside: 0 },
    { name: 'Hall', arrived: 1, arrived_today: 0, inside: 1 },
  ])
  for (const code of [ann.code, bea.code]) {
    await send('POST', '/check-ins', { event_id: event.id, code, check_in_point_id: gate })
  }
  expect((await summary('day')).points[0]).toMatchObject({ arrived: 2, arrived_today: 2, inside: 2 })

  // What Studio shows, whose sessions are in UTC.
  const { rows: seen } = await studio.query(
    `select check_in_point, day::text, hour::text, arrived::int from public.arrivals
     where event_id = $1 and day < '2026-06-01'`,
    [event.id],
  )
  expect(seen.map((line) => Object.values(line))).toEqual([
    ['Gate', '2026-05-01', '2026-05-01 12:00:00', 2],
    ['Hall', '2026-05-01', '2026-05-01 14:00:00', 1],
    ['Gate', '2026-05-02', '2026-05-02 00:00:00', 1],
    [null, '2026-05-02', '2026-05-02 09:00:00', 1],
    ['Gate', '2026-05-02', '2026-05-02 10:00:00', 1],
  ])
})

test('devices are told apart by name and point, those that scan most first', async () => {
  const { organisation, event, send } = await createOrganiser({}, 'events:read', 'checkin:write')
  const { rows } = await studio.query<{ id: string; name: string }>(
    `insert into public.check_in_points (event_id, name, admission)
     values ($1, 'Gate', 'once'), ($1, 'Hall', 're_entry') returning id, name`,
    [event.id],
  )
  const point = Object.fromEntries(rows.map(({ id, name }) => [name, id]))
  const [ann, bea, cay] = [await event.guest(), await event.guest(), await event.guest()]
  const scan = async (device: string | null, at: string | null, code: string, direction = 'entry') => {
    const check_in_point_id = at === null ? null : point[at]
    const answer = await send('POST', '/check-ins', { event_id: event.id, code, device, check_in_point_id, direction })
    return answer.body.data?.id
  }
  await scan('North, Ada', 'Gate', ann.code)
  await scan('North, Ada', 'Gate', ann.code)
  await scan('North, Ada', 'Gate', bea.code)
  const undone = await scan('North, Ada', 'Gate', cay.code)
  expect((await send('POST', `/check-ins/${undone}/undo`)).status).toBe(200)
  await scan('North, Ada', 'Hall', ann.code)
  await scan('North, Ada', 'Hall', ann.code, 'exit')
  await scan(null, null, ann.code)
  await studio.query("update public.check_in_points set status = 'archived' where id = $1", [point.Hall])
  const other = await organisation.event()
  await send('POST', '/check-ins', { event_id: other.id, code: (await other.guest()).code, device: 'Elsewhere' })

  const summary = async () => (await send('GET', `/events/${event.id}/summary`)).body.data
  const { devices, devices_left_out } = await summary()
  const nowhere = { check_in_point_id: null, check_in_point: null }
  expect(devices).toMatchObject([
    { device: 'North, Ada', check_in_point: 'Gate', entries: 2, exits: 0, rejected: 1 },
    { device: 'North, Ada', check_in_point_id: point.Hall, check_in_point: 'Hall', entries: 1, exits: 1, rejected: 0 },
    { device: null, ...nowhere, entries: 1, exits: 0, rejected: 0 },
  ])
  expect(devices_left_out).toBe(0)
  const { at } = await row<{ at: Date }>(
    'select max(scanned_at) as at from public.check_ins where event_id = $1 and device is null',
    [event.id],
  )
  expect(devices[2].last_scan_at).toBe(at.toISOString())

  await studio.query(
    `insert into public.check_ins (event_id, code, device) select $1, 'NOBODY', 'Scanner ' || i from generate_series(1, 22) i`,
    [event.id],
  )
  const many = await summary()
  expect([many.devices.length, many.devices_left_out]).toEqual([20, 5])
  expect(many.devices.slice(0, 2)).toEqual(devices.slice(0, 2))
})
