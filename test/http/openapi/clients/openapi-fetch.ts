// A guest is registered and checked in with the client that openapi-typescript and openapi-fetch make.

import createClient from 'openapi-fetch'
import type { components, paths } from './generated/openapi-typescript.ts'

type Place = { apiUrl: string; key: string; eventId: string; ticketTypeId: string }

/** The fields that an organiser's own code passes around have names. */
const guest = (ticket_type_id: string): components['schemas']['GuestRegistration'] => ({
  ticket_type_id,
  name: 'Mary Jackson',
  email: 'mary@example.com',
  send_email: false,
})

export async function tell({ apiUrl, key, eventId, ticketTypeId }: Place) {
  const client = createClient<paths>({ baseUrl: `${apiUrl}/api/v1`, headers: { Authorization: `Bearer ${key}` } })
  const events = await client.GET('/events', { params: { query: { status: 'published', limit: 10 } } })
  const params = { path: { event_id: eventId }, header: { 'Idempotency-Key': 'openapi-fetch' } }
  const order = await client.POST('/events/{event_id}/registrations', { params, body: guest(ticketTypeId) })
  const group = await client.POST('/events/{event_id}/registrations', {
    params: { path: { event_id: eventId } },
    body: { ticket_type_id: ticketTypeId, attendees: [{ name: 'Melba Roy', email: 'melba@example.com' }] },
  })
  const code = order.data?.data.attendees[0]?.ticket_code ?? ''
  const body = { event_id: eventId, code }
  const arrival = await client.POST('/check-ins', { body })
  const { error } = await client.POST('/check-ins', { body })
  return {
    events: events.data?.data.length,
    order: order.data?.data.status,
    group: group.data?.data.attendees.length,
    arrival: arrival.data?.data.result,
    again: error?.error.code === 'already_checked_in' ? error.error.code : undefined,
  }
}
