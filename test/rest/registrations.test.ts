import { beforeAll, expect, test } from 'vitest'
import { createOrganisation, type TestOrganisation } from '../support/organisation.ts'
import { invalid, problemOf, rest } from '../support/rest.ts'

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
  expect(
    problemOf(
      await rest(key)('POST', `/events/${event.id}/registrations`, {
        ticket_type_id: event.ticketTypeId,
        name,
        email: 'mary@example.com',
      }),
    ),
  ).toEqual(invalid('name'))
})
