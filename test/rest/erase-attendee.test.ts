import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { createOrganiser } from '../support/organiser.ts'
import { addEndpoint, enqueued, listenIn } from '../support/outbox.ts'
import { rest } from '../support/rest.ts'
import { edit } from '../support/studio.ts'
import { tracesFromNow } from '../support/traces.ts'

// In no other test's rows.
const mark = randomUUID().slice(0, 8)
const person = {
  name: `Wilhelmina ${mark}`,
  email: `wilhelmina-${mark}@harvard.example`,
  company: `Observatory ${mark} Ltd`,
}
const contact = { external_id: `contact-${mark}`, metadata: { phone: `+1 ${mark}` } }

async function arrange(attendees: object[] = [person]) {
  const { organisation, event, send } = await createOrganiser()
  const endpointId = await addEndpoint(organisation.id)
  const { body } = await send(
    'POST',
    `/events/${event.id}/registrations`,
    { ticket_type_id: event.ticketTypeId, attendees, external_id: 'order-1' },
    { 'Idempotency-Key': `registration-of-${organisation.id}` },
  )
  await enqueued(organisation.id)
  return { organisation, event, send, endpointId, order: body.data, attendees: body.data.attendees }
}

test('after an erasure no table holds the name, the address or the company of the person', async () => {
  const tracesOf = await tracesFromNow()
  const { organisation, event, send, endpointId, order, attendees } = await arrange([{ ...person, ...contact }])
  const [{ id, ticket_code }] = attendees
  // Every place that a name gets to: an edit, a scan, a delivery with its response, an e-mail that failed.
  await send('PATCH', `/attendees/${id}`, { company: `${person.company} (Boston)` }, { 'Idempotency-Key': 'edit' })
  await send('PATCH', `/attendees/${id}`, { company: person.company })
  await send('POST', '/check-ins', { event_id: event.id, code: ticket_code }, { 'Idempotency-Key': 'scan' })
  await edit('orders', order.id, 'company = $2', [person.company])
  await studio.query('update public.webhook_deliveries set last_response_body = $2 where webhook_endpoint_id = $1', [
    endpointId,
    `Thank you, ${person.name}`,
  ])
  await studio.query('update public.emails set sent_to = $2, last_error = $3 where attendee_id = $1', [
    id,
    person.email,
    `550 ${person.email} unknown`,
  ])
  const before = await tracesOf(mark)
  const logs = ['idempotency_records.outcome', 'audit_entries.changes', 'notifications.data', 'emails.last_error']
  for (const column of [...logs, 'webhook_deliveries.last_response_body', 'attendees.name', 'orders.company'])
    expect(before.join()).toContain(column)

  const news = await listenIn(organisation.id)
  const figures = () =>
    row(
      `select o.total::int, o.status, t.quantity_sold, a.status as ticket, a.checked_in
       from public.orders o join public.attendees a on a.order_id = o.id join public.ticket_types t on t.id = a.ticket_type_id
       where o.id = $1`,
      [order.id],
    )
  const untouched = await figures()
  const { status, body } = await send('POST', `/attendees/${id}/erase`, {}, { 'Idempotency-Key': 'erase' })
  expect([status, body.data]).toMatchObject([200, { attendee_id: id, attendees: 1, orders: 1, ticket_emails: 1 }])
  expect(body.data.notifications).toBeGreaterThan(3)
  expect(await tracesOf(mark)).toEqual([])
  expect(await figures()).toEqual(untouched)
  // E-mails that the courier keeps as files go, too.
  const { ids } = await row<{ ids: string[] }>(
    'select array_agg(id) as ids from public.emails where attendee_id = $1',
    [id],
  )
  const erased = await row<{ erased: string[] }>('select api.erased_emails($1) as erased', [[...ids, randomUUID()]])
  expect(erased.erased).toEqual(ids)
  expect(await news()).toMatchObject([
    {
      type: 'attendee.erased',
      data: { id, name: 'Erased', email: 'erased@erased.invalid', company: null, metadata: {} },
    },
    { type: 'order.updated', data: { name: 'Erased', external_id: null, attendees: [{ name: 'Erased' }] } },
  ])
  // The key is still known: the registration is not made a second time.
  const again = await send(
    'POST',
    `/events/${event.id}/registrations`,
    { ticket_type_id: event.ticketTypeId, attendees: [{ ...person, ...contact }], external_id: 'order-1' },
    { 'Idempotency-Key': `registration-of-${organisation.id}` },
  )
  expect([again.headers.get('idempotent-replayed'), again.body.data.attendees[0].name]).toEqual(['true', 'Erased'])
  const scan = { event_id: event.id, code: ticket_code }
  const scanned = await send('POST', '/check-ins', scan, { 'Idempotency-Key': 'scan' })
  expect(scanned.body.data.attendee).toMatchObject({ name: 'Erased', answers: {} })
  expect((await send('POST', `/attendees/${id}/erase`)).body.error.code).toBe('attendee_erased')
  expect((await send('PATCH', `/attendees/${id}`, { name: 'Somebody' })).body.error.code).toBe('attendee_erased')
})

test.each([person.email, 'annie@harvard.example'])(
  'of a group only the person goes, whose address is %s; another who bought for them stays',
  async (email) => {
    const annie = { name: 'Annie Cannon', email: 'annie@harvard.example' }
    const { send, order, attendees } = await arrange([annie, { ...person, email }])
    await send('POST', `/attendees/${attendees[1].id}/erase`)
    const { body } = await send('GET', `/orders/${order.id}`)
    expect(body.data).toMatchObject({
      ...annie,
      attendees: [
        { ...annie, erased_at: null },
        { name: 'Erased', email: 'erased@erased.invalid', erased_at: expect.any(String) },
      ],
    })
  },
)

test('a contact who is written in another way is the person of the only ticket under the address', async () => {
  const { event, send } = await arrange()
  const { body } = await send('POST', `/events/${event.id}/registrations`, {
    ticket_type_id: event.ticketTypeId,
    name: 'C. Payne',
    email: 'cecilia@harvard.example',
    attendees: [{ name: 'Cecilia Payne', email: 'Cecilia@harvard.example' }],
  })
  const erased = await send('POST', `/attendees/${body.data.attendees[0].id}/erase`)
  expect(erased.body.data).toMatchObject({ orders: 1, kept: [{ what: 'orders' }, { what: 'tickets' }] })
  expect((await send('GET', `/orders/${body.data.id}`)).body.data).toMatchObject({ name: 'Erased' })
})

test('a person is erased by the function alone, and of no other organisation', async () => {
  const { attendees } = await arrange()
  const stranger = rest(await (await createOrganisation()).key())
  expect((await stranger('POST', `/attendees/${attendees[0].id}/erase`)).status).toBe(404)
  const byHand = edit('attendees', attendees[0].id, 'erased_at = now()')
  await expect(byHand).rejects.toMatchObject({ code: 'PT409' })
  const { rows } = await studio.query('select public.erase_attendee($1) as receipt', [attendees[0].id])
  expect(rows).toMatchObject([{ receipt: { attendees: 1, orders: 1 } }])
})
