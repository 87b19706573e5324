// The waiting list: who joins, who is offered what when a place is given back, and what becomes of an offer.

import { expect, test } from 'vitest'
import { brokenRules } from '../properties/invariants.ts'
import { during, refusalOf, row, studio } from '../support/database.ts'
import type { TestEvent } from '../support/organisation.ts'
import { createOrganiser } from '../support/organiser.ts'
import { edit } from '../support/studio.ts'

/** A sold-out event: two places of one ticket type, both taken. */
async function soldOut(options: { capacity?: number; quantity?: number } = { quantity: 2 }) {
  const { organisation, event, send } = await createOrganiser(options)
  const guests = [await event.guest(), await event.guest()]
  const join = (name: string, ticketTypeId = event.ticketTypeId, more: object = {}) =>
    send('POST', `/events/${event.id}/waiting-list`, {
      ticket_type_id: ticketTypeId,
      name,
      email: `${name.toLowerCase()}@example.com`,
      ...more,
    })
  const joined = async (...args: Parameters<typeof join>): Promise<string> => (await join(...args)).body.data.id
  const register = (ticketTypeId = event.ticketTypeId) =>
    send('POST', `/events/${event.id}/registrations`, {
      ticket_type_id: ticketTypeId,
      name: 'Early Bird',
      email: 'bird@example.com',
    })
  const statuses = async () =>
    (await send('GET', `/events/${event.id}/waiting-list`)).body.data.map(
      ({ name, status, position }: { name: string; status: string; position: number | null }) =>
        [name, status, position].filter((value) => value !== null).join(' '),
    )
  return { organisation, event, send, guests, join, joined, register, statuses }
}

const counters = (event: TestEvent) =>
  row('select quantity, quantity_sold as sold, quantity_held as held from public.ticket_types where id = $1', [
    event.ticketTypeId,
  ])

/** What the organisation was notified of, of its waiting list. */
const notified = async (organisationId: string) =>
  (
    await studio.query<{ told: string }>(
      `select replace(type::text, 'waiting_list_entry.', '') || ' ' || (data ->> 'name') as told
       from public.notifications where organisation_id = $1 and type::text like 'waiting_list%' order by id`,
      [organisationId],
    )
  ).rows.map(({ told }) => told)

/** What the courier does, until no offer of the event is overdue: other tests do the same, and leave out what is locked. */
async function expire(event: TestEvent): Promise<void> {
  for (let i = 0; i < 20; i++) {
    await studio.query('select api.expire_waiting_list_offers()')
    const { rowCount } = await studio.query(
      "select from public.waiting_list_entries where event_id = $1 and status = 'offered' and offer_expires_at <= now()",
      [event.id],
    )
    if (rowCount === 0) return
  }
}

test('a place that is given back is offered to whoever came first, and held for them until they accept', async () => {
  const { organisation, event, send, guests, join, register, statuses } = await soldOut()
  const { body: first } = await join('Ann', event.ticketTypeId, {
    company: 'IBM',
    external_id: 'crm-1',
    metadata: { a: 1 },
  })
  expect(first.data).toMatchObject({ status: 'waiting', position: 1, offered_at: null, company: 'IBM' })
  expect((await join('Bea')).body.data.position).toBe(2)

  await send('POST', `/attendees/${guests[0]?.attendeeId}/cancel`)
  expect(await statuses()).toEqual(['Ann offered', 'Bea waiting 1'])
  const { body: offered } = await send('GET', `/waiting-list-entries/${first.data.id}`)
  const hours = (Date.parse(offered.data.offer_expires_at) - Date.parse(offered.data.offered_at)) / 3_600_000
  expect(hours).toBe(24)
  expect(await counters(event)).toEqual({ quantity: 2, sold: 1, held: 1 })
  const { body: types } = await send('GET', `/events/${event.id}/ticket-types`)
  expect(types.data[0]).toMatchObject({ quantity_held: 1, quantity_available: 0, sales_status: 'sold_out' })
  expect(await register()).toMatchObject({ status: 409, body: { error: { code: 'sold_out' } } })

  const accept = `/waiting-list-entries/${first.data.id}/accept`
  const { status, body: order } = await send('POST', accept)
  expect(status).toBe(201)
  expect(order.data).toMatchObject({ status: 'completed', name: 'Ann', external_id: 'crm-1' })
  expect(order.data.attendees[0]).toMatchObject({
    name: 'Ann',
    company: 'IBM',
    external_id: 'crm-1',
    metadata: { a: 1 },
  })
  expect(await counters(event)).toEqual({ quantity: 2, sold: 2, held: 0 })
  expect((await send('GET', `/waiting-list-entries/${first.data.id}`)).body.data).toMatchObject({
    status: 'accepted',
    order_id: order.data.id,
    attendee_id: order.data.attendees[0].id,
  })
  expect(await send('POST', accept)).toMatchObject({
    status: 409,
    body: { error: { code: 'not_offered', details: { status: 'accepted' } } },
  })
  expect(await notified(organisation.id)).toEqual(['created Ann', 'created Bea', 'offered Ann', 'accepted Ann'])
  // Once, when the second guest came: no place was on sale since.
  const { rowCount } = await studio.query(
    "select from public.notifications where organisation_id = $1 and type = 'ticket_type.sold_out'",
    [organisation.id],
  )
  expect(rowCount).toBe(1)
})

test('an offer that is not accepted goes to the next, after its deadline or when it is declined', async () => {
  const { organisation, event, send, guests, joined, statuses } = await soldOut()
  const [ann, bea] = [await joined('Ann'), await joined('Bea')]
  await joined('Cay')
  await edit('events', event.id, 'waiting_list_offer_hours = 2')
  await edit('attendees', guests[0]?.attendeeId ?? '', "status = 'cancelled'")
  const past = '2026-01-01T00:00:00Z'
  await send('PATCH', `/waiting-list-entries/${ann}`, { offer_expires_at: past })
  // Late, though the courier has not been there yet.
  expect(await send('POST', `/waiting-list-entries/${ann}/accept`)).toMatchObject({
    status: 409,
    body: { error: { code: 'offer_expired', details: { offer_expires_at: '2026-01-01T00:00:00.000Z' } } },
  })
  await expire(event)
  expect(await statuses()).toEqual(['Ann expired', 'Bea offered', 'Cay waiting 1'])
  expect((await send('POST', `/waiting-list-entries/${ann}/accept`)).body.error.code).toBe('offer_expired')

  expect((await send('POST', `/waiting-list-entries/${bea}/cancel`)).body.data.status).toBe('cancelled')
  expect(await statuses()).toEqual(['Ann expired', 'Bea cancelled', 'Cay offered'])
  expect((await send('POST', `/waiting-list-entries/${bea}/cancel`)).body.error.code).toBe('invalid_transition')
  expect(await counters(event)).toEqual({ quantity: 2, sold: 1, held: 1 })

  // Whoever missed an offer may wait again, at the end.
  await joined('Ann')
  expect(await statuses()).toEqual(['Ann expired', 'Bea cancelled', 'Cay offered', 'Ann waiting 1'])
  expect((await notified(organisation.id)).slice(3)).toEqual([
    'offered Ann',
    'expired Ann',
    'offered Bea',
    'cancelled Bea',
    'offered Cay',
    'created Ann',
  ])
  const { rows } = await studio.query(
    `select w.name from public.emails e join public.waiting_list_entries w on w.id = e.waiting_list_entry_id
     where e.organisation_id = $1 and e.kind = 'waiting_list_offer' order by e.id`,
    [organisation.id],
  )
  expect(rows.map(({ name }) => name)).toEqual(['Ann', 'Bea', 'Cay'])
})

test('an event that somebody changes at this moment holds up no offer of another that expires', async () => {
  const [changed, other] = [await soldOut(), await soldOut()]
  const offered = async ({ guests, joined }: typeof other) => {
    const id = await joined('Ann')
    await edit('attendees', guests[0]?.attendeeId ?? '', "status = 'cancelled'")
    return id
  }
  const end = (id: string, at: string) => edit('waiting_list_entries', id, 'offer_expires_at = $2', [at])
  const [first, second] = [await offered(changed), await offered(other)]
  await during(async (editor) => {
    await editor.query('select private.lock_event_exclusive($1)', [changed.event.id])
    await end(first, '2000-01-01T00:00:00Z')
    await end(second, '2001-01-01T00:00:00Z')
    await expire(other.event)
    expect(await changed.statuses()).toEqual(['Ann offered'])
    expect(await other.statuses()).toEqual(['Ann expired'])
  })
  await expire(changed.event)
  expect(await changed.statuses()).toEqual(['Ann expired'])
})

test('more places, of a ticket type or of the event, are offered at once, in the order of joining', async () => {
  const { event, send, joined, statuses } = await soldOut({ capacity: 2 })
  const other = await event.ticketType({ quantity: 1 })
  await joined('Ann')
  await joined('Bea', other)
  await joined('Cay', other)
  await joined('Dot')
  await send('PATCH', `/events/${event.id}`, { capacity: 4 })
  expect(await statuses()).toEqual(['Ann offered', 'Bea offered', 'Cay waiting 1', 'Dot waiting 1'])
  // The other ticket type is full by itself: the next place of the event goes to whom it can.
  await edit('events', event.id, 'capacity = 5')
  expect(await statuses()).toEqual(['Ann offered', 'Bea offered', 'Cay waiting 1', 'Dot offered'])
  await edit('events', event.id, 'capacity = null')
  await send('PATCH', `/ticket-types/${other}`, { quantity: 2 })
  expect(await statuses()).toEqual(['Ann offered', 'Bea offered', 'Cay offered', 'Dot offered'])
  // What is held counts as taken.
  const lower = await send('PATCH', `/ticket-types/${other}`, { quantity: 1 })
  expect(lower.body.error).toMatchObject({
    code: 'quantity_below_sold',
    details: { quantity_sold: 0, quantity_held: 2 },
  })
  const fewer = await send('PATCH', `/events/${event.id}`, { capacity: 5 })
  expect(fewer.body.error).toMatchObject({ code: 'capacity_below_sold', details: { places_taken: 6 } })
})

test('whoever can register, waits already or is too late cannot join', async () => {
  const { event, send, join, joined } = await soldOut()
  const free = await event.ticketType()
  expect(await join('Ann', free)).toMatchObject({
    status: 409,
    body: { error: { code: 'not_sold_out', param: 'ticket_type_id', details: { ticket_type_id: free } } },
  })
  const ann = await joined('Ann')
  expect((await join('ANN')).body.error).toMatchObject({ code: 'already_exists', param: 'email', details: { id: ann } })
  expect((await join('Bea', crypto.randomUUID())).body.error).toMatchObject({
    code: 'not_found',
    param: 'ticket_type_id',
  })
  expect((await join('Bea', event.ticketTypeId, { email: 'bea' })).body.error).toMatchObject({
    code: 'validation_failed',
    param: 'email',
  })
  expect((await send('POST', `/waiting-list-entries/${ann}/accept`)).body.error).toMatchObject({
    code: 'not_offered',
    details: { status: 'waiting' },
  })
  const early = { offer_expires_at: '2030-01-01T00:00:00Z' }
  expect((await send('PATCH', `/waiting-list-entries/${ann}`, early)).body.error.code).toBe('read_only_field')
  expect((await send('PATCH', `/waiting-list-entries/${ann}`, { name: 'Anna' })).body.data).toMatchObject({
    name: 'Anna',
    position: 1,
  })

  await edit('ticket_types', event.ticketTypeId, "status = 'archived'")
  expect((await join('Bea')).body.error.code).toBe('ticket_type_archived')
  await edit('ticket_types', event.ticketTypeId, "status = 'active', sales_end_at = now()")
  expect((await join('Bea')).body.error.code).toBe('sales_ended')
  await edit('ticket_types', event.ticketTypeId, "sales_end_at = null, sales_start_at = now() + interval '1 hour'")
  expect((await join('Bea')).body.error.code).toBe('sales_not_started')
  await edit('ticket_types', event.ticketTypeId, 'sales_start_at = null, min_per_order = 2')
  expect((await join('Bea')).body.error.code).toBe('quantity_not_allowed')
  await edit('events', event.id, "starts_at = now() - interval '2 days', ends_at = now() - interval '1 day'")
  expect((await join('Bea')).body.error.code).toBe('event_ended')
  await edit('events', event.id, "ends_at = now() + interval '1 day', status = 'completed'")
  expect((await join('Bea')).body.error.code).toBe('event_not_published')
})

test('an event that was completed by mistake is published again, and whoever waited stays off its list', async () => {
  const { event, send, guests, joined, join, statuses } = await soldOut()
  for (const name of ['Ann', 'Bea']) await joined(name)
  await send('POST', `/attendees/${guests[0]?.attendeeId}/cancel`)
  expect(await statuses()).toEqual(['Ann offered', 'Bea waiting 1'])
  expect((await send('POST', `/events/${event.id}/complete`)).status).toBe(200)
  const { status, body } = await send('POST', `/events/${event.id}/publish`)
  expect([status, body.data.status, body.data.completed_at]).toEqual([200, 'published', null])
  expect(await statuses()).toEqual(['Ann cancelled', 'Bea cancelled'])
  expect(await counters(event)).toEqual({ quantity: 2, sold: 1, held: 0 })
  expect((await join('Cay')).body.error.code).toBe('not_sold_out')
})

test('a quantity that is raised by hand gives way to whoever is giving a place back', async () => {
  const { event, guests, joined, statuses } = await soldOut()
  for (const name of ['Ann', 'Bea', 'Cay']) await joined(name)
  const raise = () => edit('ticket_types', event.ticketTypeId, 'quantity = 3')
  const raised = await during(async (leaving) => {
    await leaving.query('select private.lock_event_capacity($1)', [event.id])
    const waiting = refusalOf(raise())
    await new Promise((resolve) => setTimeout(resolve, 150))
    await leaving.query("update public.attendees set status = 'cancelled' where id = $1", [guests[0]?.attendeeId])
    await leaving.query('commit')
    return waiting
  })
  expect(raised).toMatchObject({ sqlstate: 'PT503', code: 'temporarily_unavailable' })
  await raise()
  expect(await statuses()).toEqual(['Ann offered', 'Bea offered', 'Cay waiting 1'])
})

test('nobody waits for an event that is cancelled', async () => {
  const { event, send, guests, joined, statuses } = await soldOut()
  await joined('Ann')
  await joined('Bea')
  await send('POST', `/orders/${guests[0]?.orderId}/cancel`)
  await send('POST', `/events/${event.id}/cancel`)
  expect(await statuses()).toEqual(['Ann cancelled', 'Bea cancelled'])
  expect(await counters(event)).toEqual({ quantity: 2, sold: 0, held: 0 })
})

test('whoever accepted and is erased is erased from the waiting list as well', async () => {
  const { organisation, send, guests, joined } = await soldOut()
  const ann = await joined('Ann')
  await send('POST', `/attendees/${guests[0]?.attendeeId}/cancel`)
  const { body } = await send('POST', `/waiting-list-entries/${ann}/accept`)
  await send('POST', `/attendees/${body.data.attendees[0].id}/erase`)
  const { rows } = await studio.query(
    `select to_jsonb(w)::text as kept from public.waiting_list_entries w where w.id = $1
     union all select data::text from public.notifications where organisation_id = $2 and data ->> 'id' = $1::text`,
    [ann, organisation.id],
  )
  expect(rows).toHaveLength(4)
  for (const { kept } of rows) expect(kept).not.toMatch(/ann/i)
  // The offer's e-mail too, where the courier keeps it as a file.
  const { offers, erased } = await row<{ offers: string[]; erased: string[] }>(
    `select array_agg(id) as offers, api.erased_emails(array_agg(id)) as erased
     from public.emails where waiting_list_entry_id = $1`,
    [ann],
  )
  expect(offers).toHaveLength(1)
  expect(erased).toEqual(offers)
})

test('a capacity is not set below the places that a raised quantity offers at the same moment', async () => {
  const { event, joined, statuses } = await soldOut({ capacity: 5, quantity: 2 })
  await joined('Ann')
  const lowered = await during(async (organiser) => {
    await organiser.query('update public.ticket_types set quantity = 3 where id = $1', [event.ticketTypeId])
    const waiting = refusalOf(edit('events', event.id, 'capacity = 2'))
    await new Promise((resolve) => setTimeout(resolve, 150))
    await organiser.query('commit')
    return waiting
  })
  expect(lowered).toMatchObject({ code: 'capacity_below_sold', details: { places_taken: 3 } })
  expect(await statuses()).toEqual(['Ann offered'])
  expect(await brokenRules(event.id)).toEqual([])
})

test.each([
  ['a ticket type', { quantity: 10 }],
  ['an event', { capacity: 10 }],
])('of %s that is sold out, no place that is given back goes to anybody but who waited longest', async (_, options) => {
  const { event, send, guests, joined, register } = await soldOut(options)
  for (let i = 0; i < 8; i++) guests.push(await event.guest())
  const waiting = await Promise.all(Array.from({ length: 12 }, (_, i) => joined(`Guest${i}`)))
  const inLine = [...waiting].sort()
  // Everybody at once: ten leave, others want their places, and two leave the list.
  const answers = await Promise.all([
    ...guests.map(({ orderId }) => send('POST', `/orders/${orderId}/cancel`)),
    ...Array.from({ length: 12 }, () => register()),
    ...inLine.slice(0, 2).map((id) => send('POST', `/waiting-list-entries/${id}/cancel`)),
  ])
  const registered = answers.slice(10, 22).map(({ status, body }) => `${status} ${body.error?.code}`)
  expect(new Set(registered)).toEqual(new Set(['409 sold_out']))
  const { body } = await send('GET', `/events/${event.id}/waiting-list?status=offered`)
  expect(body.data.map(({ id }: { id: string }) => id)).toEqual(inLine.slice(2))
  const accepted = await Promise.all(inLine.map((id) => send('POST', `/waiting-list-entries/${id}/accept`)))
  expect(accepted.map(({ status }) => status)).toEqual([409, 409, ...Array(10).fill(201)])
  expect(await brokenRules(event.id)).toEqual([])
})
