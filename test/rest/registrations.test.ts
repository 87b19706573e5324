import { randomUUID } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { createOrganisation, type TestOrganisation } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'

let organisation: TestOrganisation
let key: string

beforeAll(async () => {
  organisation = await createOrganisation()
  key = await organisation.key()
})

const guest = { name: 'Mary Jackson', email: 'mary@example.com' }

test('a registration answers 201 with a completed complimentary order and its attendee', async () => {
  const event = await organisation.event()
  const send = rest(await organisation.key('attendees:write'))

  const { status, body, headers } = await send('POST', `/events/${event.id}/registrations`, {
    ticket_type_id: event.ticketTypeId,
    ...guest,
    company: 'NASA',
  })

  expect(status).toBe(201)
  expect(headers.get('idempotent-replayed')).toBeNull()
  expect(body.data).toMatchObject({
    object: 'order',
    status: 'completed',
    payment_status: 'not_required',
    total: 0,
    amount_due: 0,
    source: 'api',
    company: 'NASA',
  })
  expect(body.data.reference).toMatch(/^[0-9A-HJKMNP-TV-Z]{8}$/)
  expect(body.data.attendees).toHaveLength(1)
  expect(body.data.attendees[0]).toMatchObject({
    ...guest,
    company: 'NASA',
    status: 'active',
    ticket_type_id: event.ticketTypeId,
    checked_in_at: null,
    ticket_email: { status: 'queued' },
  })
  expect(await event.sold()).toBe(1)
})

test('send_email false is recorded: the ticket e-mail is not requested', async () => {
  const event = await organisation.event()
  const { body } = await rest(key)('POST', `/events/${event.id}/registrations`, {
    ticket_type_id: event.ticketTypeId,
    ...guest,
    send_email: false,
  })
  expect(body.data.attendees[0].ticket_email.status).toBe('not_requested')
  expect(await row('select send_email from public.orders where id = $1', [body.data.id])).toEqual({ send_email: false })
})

test('company may be null, and names are trimmed', async () => {
  const event = await organisation.event()
  const { status, body } = await rest(key)('POST', `/events/${event.id}/registrations`, {
    ticket_type_id: event.ticketTypeId,
    name: '  Zoë Müller ',
    email: ' zoe@example.com ',
    company: null,
  })
  expect(status).toBe(201)
  expect(body.data.attendees[0]).toMatchObject({ name: 'Zoë Müller', email: 'zoe@example.com', company: null })
})

test('every bad field is named at once, and nothing is registered', async () => {
  const event = await organisation.event()
  const { status, body } = await rest(key)('POST', `/events/${event.id}/registrations`, {
    ticket_type_id: 'general',
    name: ' ',
    email: 'mary',
    send_email: 'no',
    vip: true,
  })
  expect(status).toBe(422)
  expect(body.error.code).toBe('validation_failed')
  expect(body.error.details.fields.map((f: { param: string }) => f.param).sort()).toEqual([
    'email',
    'name',
    'send_email',
    'ticket_type_id',
    'vip',
  ])
  expect(await event.sold()).toBe(0)
})

test.each([
  ['a NUL character', 'Mary\u0000Jackson'],
  ['a line break', 'Mary\r\nBcc: everyone@example.com'],
  ['half a surrogate pair', 'Mary \ud800'],
  ['201 characters', 'x'.repeat(201)],
  ['nothing that is seen', '\u3164\u2800\u00ad\u200e'],
])('a name with %s is refused by name', async (_what, name) => {
  const event = await organisation.event()
  const { status, body } = await rest(key)('POST', `/events/${event.id}/registrations`, {
    ticket_type_id: event.ticketTypeId,
    name,
    email: 'mary@example.com',
  })
  expect([status, body.error.code, body.error.param]).toEqual([422, 'validation_failed', 'name'])
})

test('missing fields are said to be required', async () => {
  const event = await organisation.event()
  const { status, body } = await rest(key)('POST', `/events/${event.id}/registrations`, {})
  expect(status).toBe(422)
  expect(body.error.message).toBe('ticket_type_id is required; name is required; email is required')
})

test('an unknown event, and a ticket type of another event, are not found', async () => {
  const [event, other] = await Promise.all([organisation.event(), organisation.event()])
  const send = rest(key)

  const unknown = await send('POST', `/events/${randomUUID()}/registrations`, {
    ticket_type_id: event.ticketTypeId,
    ...guest,
  })
  expect([unknown.status, unknown.body.error.code, unknown.body.error.param]).toEqual([404, 'not_found', 'event_id'])

  const mixed = await send('POST', `/events/${event.id}/registrations`, {
    ticket_type_id: other.ticketTypeId,
    ...guest,
  })
  expect([mixed.status, mixed.body.error.code, mixed.body.error.param]).toEqual([404, 'not_found', 'ticket_type_id'])
})

test('a sold-out ticket type and a full event are refused, and sell nothing', async () => {
  const [small, full] = await Promise.all([organisation.event({ quantity: 1 }), organisation.event({ capacity: 1 })])
  const send = rest(key)

  for (const [event, param] of [
    [small, 'ticket_type_id'],
    [full, 'event_id'],
  ] as const) {
    const register = () =>
      send('POST', `/events/${event.id}/registrations`, { ticket_type_id: event.ticketTypeId, ...guest })
    expect((await register()).status).toBe(201)
    const { status, body } = await register()
    expect([status, body.error.code, body.error.param]).toEqual([409, 'sold_out', param])
    expect(await event.sold()).toBe(1)
    expect(await row('select count(*)::int as orders from public.orders where event_id = $1', [event.id])).toEqual({
      orders: 1,
    })
  }
})

test.each([
  ["status = 'archived'", 'ticket_type_archived'],
  ["sales_start_at = now() + interval '1 hour'", 'sales_not_started'],
  ["sales_end_at = now() - interval '1 hour'", 'sales_ended'],
])('a ticket type with %s is refused as %s', async (change, code) => {
  const event = await organisation.event()
  await studio.query(`update public.ticket_types set ${change} where id = $1`, [event.ticketTypeId])
  const { status, body } = await rest(key)('POST', `/events/${event.id}/registrations`, {
    ticket_type_id: event.ticketTypeId,
    ...guest,
  })
  expect([status, body.error.code, body.error.param]).toEqual([409, code, 'ticket_type_id'])
  expect(await event.sold()).toBe(0)
})

test.each(['draft', 'cancelled', 'completed'] as const)('an event that is %s takes nobody', async (status) => {
  const event = await organisation.event({ status: status === 'draft' ? 'draft' : 'published' })
  if (status !== 'draft') await studio.query('update public.events set status = $2 where id = $1', [event.id, status])
  const answer = await rest(key)('POST', `/events/${event.id}/registrations`, {
    ticket_type_id: event.ticketTypeId,
    ...guest,
  })
  expect([answer.status, answer.body.error.code]).toEqual([409, 'event_not_published'])
  expect(answer.body.error.details).toEqual({ status })
})
