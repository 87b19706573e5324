// Which object has a value already is told by its id: of the same organisation, and of no other.

import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { refusalOf, studio } from '../support/database.ts'
import { createOrganisation, type TestEvent, type TestOrganisation } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'
import { addOrder, addPromoCode, edit, refusalOfEdit } from '../support/studio.ts'
import { actAs } from './actor.ts'
import { createTenant } from './tenant-fixture.ts'

const taken = (param: string, id: string | undefined) => ({
  sqlstate: 'PT409',
  code: 'already_exists',
  param,
  details: { id },
})

let organisation: TestOrganisation
let event: TestEvent
beforeAll(async () => {
  organisation = await createOrganisation()
  event = await organisation.event()
})

describe('the object that has it is named to an organiser', () => {
  test.each(['slug', 'external_id'])('%s of an event', async (param) => {
    const other = await organisation.event()
    const value = `value-${randomUUID()}`
    await edit('events', other.id, `${param} = $2`, [value])
    expect(await refusalOfEdit('events', event.id, `${param} = $2`, [value])).toEqual(taken(param, other.id))
    // Its own is no other's.
    await edit('events', other.id, `${param} = $2, name = 'Renamed'`, [value])
  })

  test('code of a promo code, in other letters', async () => {
    const [one, other] = [await addPromoCode(event, 10), await addPromoCode(event, 10)]
    const { rows } = await studio.query('select id from public.promo_codes where event_id = $1 and code = any ($2)', [
      event.id,
      [one, other],
    ])
    const again = 'update public.promo_codes set code = upper($2) where event_id = $1 and code = $3'
    const refusal = await refusalOf(studio.query(again, [event.id, other, one]))
    expect(refusal).toEqual(taken('code', expect.any(String) as unknown as string))
    expect(rows.map(({ id }) => id)).toContain((refusal as { details?: { id: string } }).details?.id)
  })

  test('external_id of a ticket type, of an order, and of an attendee', async () => {
    const [one, other] = [await addOrder(event), await addOrder(event)]
    for (const [table, mine, theirs] of [
      ['ticket_types', await event.ticketType(), await event.ticketType()],
      ['orders', one.id, other.id],
      ['attendees', one.attendeeIds[0] ?? '', other.attendeeIds[0] ?? ''],
    ] as const) {
      const value = randomUUID()
      await edit(table, theirs, 'external_id = $2', [value])
      expect(await refusalOfEdit(table, mine, 'external_id = $2', [value])).toEqual(taken('external_id', theirs))
    }
  })
})

test('whoever adds rows by hand may say what happens on conflict', async () => {
  const value = randomUUID()
  const insert = `insert into public.orders (event_id, name, email, external_id) values ($1, $3, 'b@example.com', $2)
    on conflict (organisation_id, external_id) where external_id is not null`
  await studio.query(`${insert} do nothing`, [event.id, value, 'First'])
  await studio.query(`${insert} do nothing`, [event.id, value, 'Second'])
  await studio.query(`${insert} do update set name = excluded.name`, [event.id, value, 'Third'])
  const { rows } = await studio.query('select name from public.orders where external_id = $1', [value])
  expect(rows).toEqual([{ name: 'Third' }])
  const addEvent = "insert into public.events (organisation_id, name, external_id) values ($1, 'New', $2)"
  await studio.query(addEvent, [organisation.id, value])
  expect(await refusalOf(studio.query(addEvent, [organisation.id, value]))).toMatchObject({ code: 'already_exists' })
})

test('an order that is given the external_id of a cancelled one is told which it is, and what to do', async () => {
  const external_id = randomUUID()
  const send = rest(await organisation.key())
  const [{ orderId: former }, { orderId: present }] = [await event.guest(), await event.guest()]
  const change = async (id: string, changes: object) => (await send('PATCH', `/orders/${id}`, changes)).body.error
  await change(former, { external_id })
  expect(await change(present, { external_id })).toMatchObject({ details: { id: former } })
  await send('POST', `/orders/${former}/cancel`)
  expect(await change(present, { external_id })).toMatchObject({
    code: 'already_exists',
    details: { object: 'order', id: former },
    hint: 'A cancelled order has it. Change or clear the external_id of that order.',
  })
  await change(former, { external_id: null })
  expect(await change(present, { external_id })).toBeUndefined()
})

test('a caller who registers somebody again is told which order it was, and which attendee', async () => {
  const send = rest(await organisation.key())
  const external_id = randomUUID()
  const guest = { name: 'Guest', email: 'guest@example.com', external_id }
  const path = `/events/${event.id}/registrations`
  const register = (body: object) => send('POST', path, { ticket_type_id: event.ticketTypeId, ...body })
  const { body: first } = await register(guest)
  const error = (answer: { status: number; body: { error: { code: string; param: string; details: unknown } } }) => [
    answer.status,
    answer.body.error.code,
    answer.body.error.param,
    answer.body.error.details,
  ]
  expect(error(await register(guest))).toEqual([409, 'already_exists', 'external_id', { id: first.data.id }])
  const group = await register({ attendees: [{ name: 'Another', email: 'another@example.com' }, guest] })
  const attendee = first.data.attendees[0].id
  expect(error(group)).toEqual([409, 'already_exists', 'external_id', { id: attendee }])
  const { body: other } = await register({ name: 'Other', email: 'other@example.com' })
  const change = await send('PATCH', `/attendees/${other.data.attendees[0].id}`, { external_id })
  expect(error(change)).toEqual([409, 'already_exists', 'external_id', { id: attendee }])
})

describe('nothing is notified another organisation', () => {
  test('whatever it has, the value is free here', async () => {
    const theirs = await (await createOrganisation()).event()
    const value = `value-${randomUUID()}`
    await edit('events', theirs.id, 'slug = $2, external_id = $2', [value])
    await edit('events', event.id, 'slug = $2, external_id = $2', [value])
  })

  test('whoever adds an event for it is refused all the same, whether it has the slug or not', async () => {
    const [us, them] = [await createTenant(), await createTenant()]
    await edit('events', them.event.id, "slug = 'taken', external_id = 'taken'")
    const insert = "insert into public.events (organisation_id, name, slug, external_id) values ($1, 'New', $2, $2)"
    for (const [role, claims] of [
      ['authenticated', us.owner],
      ['scope_events_write', us.claims],
    ] as const) {
      await actAs(role, claims, async ({ refusal }) => {
        for (const slug of ['taken', 'free']) {
          expect(await refusal(insert, [them.id, slug])).toEqual({ sqlstate: '42501' })
        }
      })
    }
  })

  test('an event of it is one that does not exist to whoever adds a promo code, whichever codes it has', async () => {
    const [us, them] = [await createTenant(), await createTenant()]
    const insert =
      'insert into public.promo_codes (organisation_id, event_id, code, percent_off) values ($1, $2, $3, 10)'
    const notFound = { sqlstate: 'PT404', code: 'not_found', param: 'event_id' }
    for (const [role, claims] of [
      ['authenticated', us.owner],
      ['authenticated', us.member],
      ['scope_events_write', us.claims],
    ] as const) {
      await actAs(role, claims, async ({ refusal }) => {
        for (const whose of [us.id, them.id, null]) {
          for (const [eventId, code] of [
            [them.event.id, 'FRIENDS'],
            [them.event.id, 'UNUSED'],
            [randomUUID(), 'FRIENDS'],
          ]) {
            expect(await refusal(insert, [whose, eventId, code])).toEqual(notFound)
          }
        }
        const ours = await refusal(insert, [us.id, us.event.id, 'friends'])
        expect(ours).toMatchObject({ code: 'already_exists', param: 'code' })
      })
    }
  })

  test('nor whether a ticket type of it has a price, to whoever adds an attendee', async () => {
    const [us, them] = [await createTenant(), await createTenant()]
    const order = await addOrder(us.event, { subtotal: 100, paid: 100 })
    const priced = await them.event.ticketType({ price: 100 })
    const insert = `insert into public.attendees (organisation_id, event_id, order_id, ticket_type_id, name, email)
      values ($1, $2, $3, $4, 'Guest', 'guest@example.com')`
    await actAs('scope_attendees_write', us.claims, async ({ refusal }) => {
      for (const ticketTypeId of [priced, them.event.ticketTypeId, randomUUID()]) {
        expect(await refusal(insert, [us.id, us.event.id, order.id, ticketTypeId])).toEqual({ sqlstate: '23503' })
      }
    })
  })
})
