// Endpoints that chose events, and the types about payments, e-mails and ticket types that are sold out.

import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { BouncedEmailSchema } from '../../src/operations/notifications.ts'
import { PaymentSchema } from '../../src/operations/orders.ts'
import { TicketTypeSchema } from '../../src/operations/ticket-types.ts'
import { studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { enqueued, everyType, listenIn, logOf } from '../support/outbox.ts'
import { rest } from '../support/rest.ts'

const url = 'https://hooks.example.com/usher'

test('an endpoint gets what belongs to its events, of every type; one without events gets all', async () => {
  const organisation = await createOrganisation()
  const send = rest(await organisation.key())
  const [chosen, other] = [await organisation.event({ quantity: 1 }), await organisation.event({ quantity: 1 })]
  const create = async (event_ids?: string[]) =>
    (await send('POST', '/webhook-endpoints', { url, types: everyType, event_ids })).body.data
  const narrow = await create([chosen.id])
  const wide = await create()
  expect([narrow.event_ids, wide.event_ids]).toEqual([[chosen.id], []])

  for (const { id, ticketTypeId } of [chosen, other]) {
    await send('PATCH', `/events/${id}`, { name: 'Renamed' })
    const { body } = await send('POST', `/events/${id}/registrations`, {
      ticket_type_id: ticketTypeId,
      name: 'Mary Jackson',
      email: 'mary@example.com',
    })
    const [attendee] = body.data.attendees
    await send('POST', '/check-ins', { event_id: id, code: attendee.ticket_code })
    await studio.query("update public.attendees set ticket_email_status = 'failed' where id = $1", [attendee.id])
  }

  const deliveredTo = async (endpointId: string) => {
    await enqueued(organisation.id)
    return (
      await studio.query<{ event_id: string; type: string }>(
        `select coalesce(n.data ->> 'event_id', n.data ->> 'id') as event_id, n.type
         from public.webhook_deliveries d join public.notifications n on n.id = d.notification_id
         where d.webhook_endpoint_id = $1 order by n.transaction_id, n.type::text`,
        [endpointId],
      )
    ).rows
  }
  const ofEvent = (id: string) =>
    [
      'event.updated',
      'order.completed',
      'order.created',
      'ticket_type.sold_out',
      'attendee.checked_in',
      'email.bounced',
    ].map((type) => ({ event_id: id, type }))
  expect(await deliveredTo(narrow.id)).toEqual(ofEvent(chosen.id))
  expect(await deliveredTo(wide.id)).toEqual([...ofEvent(chosen.id), ...ofEvent(other.id)])

  // A change counts for what happens from then on.
  await send('PATCH', `/events/${other.id}`, { name: 'Before' })
  await send('PATCH', `/webhook-endpoints/${narrow.id}`, { event_ids: [other.id] })
  await send('PATCH', `/events/${chosen.id}`, { name: 'Not sent' })
  await send('PATCH', `/events/${other.id}`, { name: 'After' })
  expect((await deliveredTo(narrow.id)).slice(6)).toEqual([{ event_id: other.id, type: 'event.updated' }])
})

test.each<[string, (ours: string, theirs: string) => unknown[], number, string]>([
  ["another organisation's event", (ours, theirs) => [ours, theirs], 404, 'event_ids'],
  ['an event that is none', () => [randomUUID()], 404, 'event_ids'],
  ['what is no identifier', () => ['main'], 422, 'event_ids.0'],
  ['101 events', () => Array.from({ length: 101 }, () => randomUUID()), 422, 'event_ids'],
])('%s is refused', async (_what, choose, status, param) => {
  const [ours, theirs] = [await createOrganisation(), await createOrganisation()]
  const send = rest(await ours.key())
  const event_ids = choose((await ours.event()).id, (await theirs.event()).id)
  const { status: answered, body } = await send('POST', '/webhook-endpoints', {
    url,
    types: ['event.updated'],
    event_ids,
  })
  expect([answered, body.error.param]).toEqual([status, param])
})

test('each payment notifies once, before the order completes, in the shape that the order shows', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const { orderId } = await event.payer()
  const send = rest(await organisation.key())
  const news = await listenIn(organisation.id)
  const pay = (amount: number) =>
    send('POST', `/orders/${orderId}/payments`, { amount }, { 'Idempotency-Key': `pay-${amount}` })
  await pay(900)
  await pay(900)
  const { body } = await pay(4000)
  const told = await news()
  expect(told.map(({ type }) => type)).toEqual([
    'attendee.updated',
    'order.completed',
    'payment.recorded',
    'payment.recorded',
  ])
  const payments = told.filter(({ type }) => type === 'payment.recorded').map(({ data }) => PaymentSchema.parse(data))
  expect(payments).toEqual(body.data.payments)
})

test('a ticket type is sold out once for each time that its last place is taken', async () => {
  const organisation = await createOrganisation()
  const { id, ticketTypeId, guest } = await organisation.event({ quantity: 2 })
  const send = rest(await organisation.key())
  const soldOut = async () =>
    (await logOf(organisation.id))
      .filter(({ type }) => type === 'ticket_type.sold_out')
      .map(({ data }) => TicketTypeSchema.parse(data))
  await guest()
  expect(await soldOut()).toEqual([])
  const last = await guest()
  expect(await soldOut()).toMatchObject([
    { id: ticketTypeId, event_id: id, quantity_available: 0, sales_status: 'sold_out' },
  ])

  await send('POST', `/attendees/${last.attendeeId}/cancel`)
  await guest()
  expect(await soldOut()).toHaveLength(2)

  await send('PATCH', `/ticket-types/${ticketTypeId}`, { quantity: 3 })
  await send('PATCH', `/ticket-types/${ticketTypeId}`, { name: 'Renamed' })
  expect(await soldOut()).toHaveLength(2)
  await send('PATCH', `/ticket-types/${ticketTypeId}`, { quantity: 2 })
  expect(await soldOut()).toHaveLength(3)
})

test('an e-mail that bounces or fails notifies, with the kind of e-mail and the reason', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const { attendeeId, orderId } = await event.guest()
  const news = await listenIn(organisation.id)
  for (const [status, error] of [
    ['sent', null],
    ['bounced', '550 no such user'],
    ['bounced', '550 again'],
    ['queued', null],
    ['failed', 'not an address'],
  ]) {
    await studio.query(
      'update public.attendees set ticket_email_status = $2, ticket_email_last_error = $3 where id = $1',
      [attendeeId, status, error],
    )
  }
  const told = (await news()).map(({ type, data }) => [type, BouncedEmailSchema.parse(data)])
  const email = {
    kind: 'ticket',
    event_id: event.id,
    order_id: orderId,
    attendee_id: attendeeId,
    to: 'guest@example.com',
  }
  expect(told).toMatchObject([
    ['email.bounced', { ...email, status: 'bounced', error: '550 no such user' }],
    ['email.bounced', { ...email, status: 'failed', error: 'not an address' }],
  ])
})
