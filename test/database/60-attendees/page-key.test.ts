// What Postgres refuses the key of a registration page, whatever its form was made to send: tokens of its own, straight to PostgREST.

import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { row, studio } from '../../support/database.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { rest } from '../../support/rest.ts'
import { call, sign } from '../data-api-client.ts'

const ada = { name: 'Ada Lovelace', email: 'ada@example.com' }

async function arrange() {
  const organisation = await createOrganisation()
  const event = await organisation.event({ quantity: 5 })
  await studio.query(`update public.events set registration_page = 'by_link' where id = $1`, [event.id])
  const key = await row<{ id: string; family_id: string }>(
    'select id, family_id from public.api_keys where event_id = $1',
    [event.id],
  )
  const claims = {
    role: 'scope_attendees_write',
    source: 'page',
    organisation_id: organisation.id,
    api_key_id: key.id,
    family_id: key.family_id,
  }
  const token = await sign(claims)
  const register = (input: object) =>
    call('register_attendee', token, { event_id: event.id, ticket_type_id: event.ticketTypeId, ...ada, ...input })
  const written = async () =>
    Number(
      (await row<{ count: string }>('select count(*) from public.orders where organisation_id = $1', [organisation.id]))
        .count,
    )
  return { organisation, event, key, claims, register, written, token, send: rest(await organisation.key()) }
}

test('A page sells what it shows, for its price, to guests who answered, and for its own event', async () => {
  const { organisation, event, register, written, token, send } = await arrange()
  const other = await organisation.event()
  const hidden = await event.ticketType({ name: 'Speaker' })
  await studio.query(`update public.ticket_types set visibility = 'hidden' where id = $1`, [hidden])
  const priced = await event.ticketType({ price: 4900 })
  for (const [key, ask] of [
    ['diet', 'registration'],
    ['shirt', 'ticket_page'],
  ])
    await send('POST', `/events/${event.id}/questions`, {
      key,
      ask,
      label: 'Question',
      required: true,
      ticket_type_ids: [event.ticketTypeId],
    })
  await send('POST', `/events/${event.id}/promo-codes`, {
    code: 'TEN',
    percent_off: 10,
    ticket_type_ids: [hidden, priced],
  })
  await send('POST', `/events/${event.id}/promo-codes`, { code: 'OPEN', unlocks: true, ticket_type_ids: [hidden] })

  const answered = { answers: { diet: 'vegan' } }
  const paid = { payment_method: 'invoice' }
  const cases: [string, object, object][] = [
    ['another event', { event_id: other.id, ticket_type_id: other.ticketTypeId }, { status: 404, param: 'event_id' }],
    ['an unanswered question', {}, { status: 422, param: 'attendees.0.answers.diet' }],
    [
      'of the second guest',
      { attendees: [{ ...ada, ...answered }, ada] },
      { status: 422, param: 'attendees.1.answers.diet' },
    ],
    ['a priced ticket for nothing', { ticket_type_id: priced }, { status: 422, param: 'payment_method' }],
    [
      'a priced ticket for cash',
      { ticket_type_id: priced, payment_method: 'cash' },
      { status: 422, param: 'payment_method' },
    ],
    ['a hidden type', { ticket_type_id: hidden }, { status: 404, param: 'attendees.0.ticket_type_id' }],
    [
      'a hidden type by a discount',
      {
        attendees: [
          { ...ada, ticket_type_id: priced },
          { ...ada, ticket_type_id: hidden },
        ],
        ...paid,
        promo_code: 'TEN',
      },
      { status: 404, param: 'attendees.1.ticket_type_id' },
    ],
  ]
  for (const [what, input, refusal] of cases) expect(await register(input), what).toMatchObject(refusal)
  expect(
    await call('join_waiting_list', token, { event_id: other.id, ticket_type_id: other.ticketTypeId, ...ada }),
  ).not.toMatchObject({ status: 200 })
  expect(await written()).toBe(0)

  expect((await register(answered)).status).toBe(200)
  expect((await register({ ticket_type_id: hidden, ...paid, promo_code: 'OPEN' })).status).toBe(200)
  expect(
    await row('select times_redeemed from public.promo_codes where event_id = $1 and code = $2', [event.id, 'OPEN']),
  ).toEqual({ times_redeemed: 1 })
})

test('The key of a page does nothing else, and ends with the page', async () => {
  const { event, key, claims, register, written, token, send } = await arrange()
  const attendee = await event.guest()
  const refused = { status: 403, code: 'forbidden' }
  expect(await call('cancel_attendee', token, { attendee_id: attendee.attendeeId })).toMatchObject(refused)
  expect(await call('get_api_key', await sign({ ...claims, role: 'api_key' }))).toMatchObject(refused)
  // As an API key it is none.
  expect(
    await call('register_attendee', await sign({ ...claims, source: 'api' }), { event_id: event.id }),
  ).toMatchObject(refused)
  expect(await call('list_attendees', await sign({ ...claims, role: 'scope_attendees_read' }))).toMatchObject(refused)

  const page = (value: string) => send('PATCH', `/events/${event.id}`, { registration_page: value })
  await page('off')
  expect(await register({})).toMatchObject({ status: 404, param: 'event_id' })
  await page('public')
  expect((await register({})).status).toBe(200)
  await studio.query('update public.api_keys set revoked_at = now() where id = $1', [key.id])
  await page('by_link')
  expect(await register({})).toMatchObject({ status: 401, code: 'api_key_revoked' })
  const keys = async () =>
    (
      await studio.query(
        'select kind, revoked_at is null as is_valid from public.api_keys where event_id = $1 order by id',
        [event.id],
      )
    ).rows
  expect(await keys()).toEqual([{ kind: 'page', is_valid: false }])
  await page('off')
  await page('by_link')
  expect(await keys()).toEqual([
    { kind: 'page', is_valid: false },
    { kind: 'page', is_valid: true },
  ])
  expect(await written()).toBe(2)
})

test('A draft takes its key with it', async () => {
  const organisation = await createOrganisation()
  const send = rest(await organisation.key())
  const { body } = await send('POST', '/events', {
    name: 'Gala',
    registration_page: 'public',
    external_id: randomUUID(),
  })
  const { id } = body.data
  expect((await studio.query('select from public.api_keys where event_id = $1', [id])).rowCount).toBe(1)
  expect((await send('DELETE', `/events/${id}`)).status).toBe(200)
  expect((await studio.query('select from public.api_keys where event_id = $1', [id])).rowCount).toBe(0)
})
