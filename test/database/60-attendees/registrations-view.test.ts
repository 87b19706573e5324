// A registration as one row of the view public.registrations: the same as one over REST, under the rights of whoever adds it.

import { beforeAll, expect, test } from 'vitest'
import { refusalOf, row, studio } from '../../support/database.ts'
import { overRest } from '../../support/interfaces.ts'
import { addPromoCode, edit, read } from '../../support/studio.ts'
import { send as sendToDataApi, sign } from '../data-api-client.ts'
import { outboxFixture, tell } from '../outbox-fixture.ts'
import { createTenant, join, signUp, type Tenant } from '../tenant-fixture.ts'

type Added = { order_id: string; attendee_id: string; reference: string; status: string; organisation_id: string }

const add = (values: Record<string, unknown>) => {
  const columns = Object.keys(values)
  return row<Added>(
    `insert into public.registrations (${columns.join(', ')}) values (${columns.map((_, i) => `$${i + 1}`).join(', ')})
     returning order_id, attendee_id, reference, status, organisation_id`,
    Object.values(values),
  )
}
const mary = { name: 'Mary Jackson', email: 'mary@example.com' }

/** E-mails of an order: kind, and whether it is due. */
const mailed = async (orderId: string) =>
  (
    await studio.query<{ kind: string; due: boolean }>(
      `select e.kind, e.next_attempt_at <= now() as due from public.emails e
       where e.order_id = $1 or e.attendee_id in (select a.id from public.attendees a where a.order_id = $1) order by e.kind`,
      [orderId],
    )
  ).rows

// What differs between two registrations of the same guest.
const mask = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (key, inner) =>
      ['id', 'order_id', 'reference', 'external_id', 'source'].includes(key) || /_at$/.test(key) ? typeof inner : inner,
    ),
  )

test.each([
  ['complimentary', {}],
  ['on invoice, with a code', { payment_method: 'invoice', promo_code: 'half', company: 'NASA', external_id: 'crm' }],
  ['on invoice, with nothing left to pay', { payment_method: 'invoice', promo_code: 'all' }],
  ['without e-mails', { payment_method: 'invoice', send_email: false, metadata: { table: 7 } }],
])('a row makes what a call makes, %s', async (_what, given) => {
  const { organisation, event, send, told, order } = await outboxFixture(overRest)
  const ticketTypeId = await event.ticketType({ price: 4900 })
  const codes = { half: await addPromoCode(event, 50), all: await addPromoCode(event, 100) }
  const { promo_code } = given as { promo_code?: keyof typeof codes }
  const guest = {
    ticket_type_id: ticketTypeId,
    ...mary,
    ...given,
    ...(promo_code && { promo_code: codes[promo_code] }),
  }
  await told()

  const called = (await send('POST', `/events/${event.id}/registrations`, guest)).body.data
  const calledNews = await told()
  // An external_id is for one order.
  await edit('orders', called.id, 'external_id = null')
  await edit('attendees', called.attendees[0].id, 'external_id = null')
  await told()
  const added = await add({ event_id: event.id, ...guest })
  const made = await order(added.order_id)
  expect(await told()).toEqual(calledNews.map(({ type }) => tell(type, made)))
  expect(mask(made)).toEqual(mask(calledNews.at(-1)?.data))
  expect(added).toMatchObject({
    organisation_id: organisation.id,
    reference: made.reference,
    status: (made.attendees as { status: string }[])[0]?.status,
  })
  expect(made).toMatchObject({ source: 'studio', external_id: 'external_id' in given ? 'crm' : null })
  // Nothing waits for more attendees.
  expect(await mailed(added.order_id)).toEqual(await mailed(called.id))
  expect((await mailed(added.order_id)).every(({ due }) => due)).toBe(true)
  expect(await row('select name, reference, status from public.registrations where order_id = $1', [made.id])).toEqual({
    name: mary.name,
    reference: made.reference,
    status: added.status,
  })
  expect(
    (await studio.query('select object_type, source from public.audit_entries where object_id = $1', [made.id])).rows,
  ).toEqual([{ object_type: 'order', source: 'studio' }])
})

test('a guest who was typed with blanks is the one of a list without them, and so is what they were registered for', async () => {
  const { event, send } = await outboxFixture(overRest)
  // As if 200 rows had been typed before: mistakes are not explained any more.
  const { slug, id } = await row<{ slug: string; id: string }>(
    `with typed as (insert into public.ticket_types (event_id, name) select $1, 'Standard ' returning event_id, id)
     select e.slug, t.id from typed t join public.events e on e.id = t.event_id`,
    [event.id],
  )
  for (const name of ['Standard', ' STANDARD\u00a0', 'Stan\u00addard']) {
    expect(await row('select public.the_ticket_type($1, $2) as id', [slug, name]), name).toEqual({ id })
  }
  await add({ event_id: event.id, ticket_type_id: id, name: 'Anna Doppelt ', email: 'anna@example.com ' })
  const guest = { name: 'Anna Doppelt', email: 'anna@example.com' }
  const { body } = await send('POST', `/events/${event.id}/attendees/import`, {
    ticket_type_id: id,
    attendees: [guest],
  })
  expect(body.data.results).toMatchObject([{ result: 'unchanged' }])
})

test('a row that breaks a rule is refused as a call is, names its column, and leaves nothing', async () => {
  const { organisation, event, told } = await outboxFixture(overRest)
  const other = await (await outboxFixture(overRest)).event
  const full = await event.ticketType({ quantity: 0 })
  const guest = { event_id: event.id, ticket_type_id: event.ticketTypeId, ...mary }
  const nobody = '00000000-0000-0000-0000-000000000000'
  for (const [values, code, param] of [
    [{ ...guest, event_id: nobody }, 'not_found', 'event_id'],
    [{ ...guest, event_id: null }, 'validation_failed', 'event_id'],
    [{ ...guest, ticket_type_id: null }, 'validation_failed', 'ticket_type_id'],
    [{ ...guest, ticket_type_id: other.ticketTypeId }, 'not_found', 'ticket_type_id'],
    [{ ...guest, ticket_type_id: full }, 'sold_out', 'ticket_type_id'],
    [{ ...guest, promo_code: 'NONE', payment_method: 'invoice' }, 'not_found', 'promo_code'],
    [{ ...guest, name: null }, 'validation_failed', 'name'],
    [{ ...guest, email: 'mary' }, 'validation_failed', 'email'],
    [{ ...guest, reference: 'ABCDEFGH' }, 'read_only_field', 'reference'],
    [{ ...guest, status: 'active' }, 'read_only_field', 'status'],
  ] as const) {
    expect([values, await refusalOf(add(values))]).toEqual([values, expect.objectContaining({ code, param })])
  }
  expect(await told()).toEqual([])
  const { rows } = await studio.query('select from public.orders where organisation_id = $1', [organisation.id])
  expect(rows).toEqual([])
})

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant()
})

test('an owner or manager adds a row over the Data API, and nobody else does', async () => {
  const guest = { event_id: tenant.event.id, ticket_type_id: tenant.event.ticketTypeId, ...mary }
  const addAs = async (role: 'owner' | 'manager' | 'door' | 'viewer' | null, body: object = guest) => {
    const person = await signUp()
    if (role !== null) await join(tenant.id, person, role)
    return sendToDataApi(
      {
        method: 'POST',
        path: '/registrations?select=order_id,status',
        body,
        headers: { 'Content-Profile': 'public', Prefer: 'return=representation' },
      },
      await sign({ ...person, role: 'authenticated' }),
    )
  }
  for (const role of ['owner', 'manager'] as const) {
    const { status, body } = await addAs(role)
    expect([role, status, body]).toMatchObject([role, 201, [{ status: 'active' }]])
    const [{ order_id }] = body as [{ order_id: string }]
    expect(await read('orders', order_id, 'status', 'source')).toEqual({ status: 'completed', source: 'studio' })
  }
  for (const role of ['door', 'viewer'] as const) expect((await addAs(role)).status, role).toBe(403)
  // Whoever is no member learns nothing of the event.
  expect(await addAs(null)).toMatchObject({ status: 404, code: 'not_found', param: 'event_id' })
  expect(await addAs('owner', { ...guest, attendee_id: tenant.attendeeId })).toMatchObject({
    status: 409,
    code: 'read_only_field',
    param: 'attendee_id',
  })
})
