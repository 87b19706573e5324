// Endpoints that chose events: what they get, and what is refused as an event of theirs.

import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { enqueued, everyType } from '../support/outbox.ts'
import { rest } from '../support/rest.ts'
import { edit } from '../support/studio.ts'

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
    await edit('attendees', attendee.id, "ticket_email_status = 'failed'")
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
