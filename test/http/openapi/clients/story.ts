// Guests are registered and one is checked in, with the client of docs/guides/typescript-client.md.

import { createUsher, dataOf, every } from './generated/usher.ts'
import type { components } from './generated/usher-api.ts'

type Place = { url: string; key: string; eventId: string; ticketTypeId: string }

/** The fields that an organiser's own code passes around have names. */
const guest = (ticket_type_id: string): components['schemas']['GuestRegistration'] => ({
  ticket_type_id,
  name: 'Mary Jackson',
  email: 'mary@example.com',
  send_email: false,
})

export async function tell({ url, key, eventId, ticketTypeId }: Place) {
  const usher = createUsher({ url, key })
  const params = { path: { event_id: eventId } }
  const { data: order } = dataOf(
    await usher.POST('/events/{event_id}/registrations', { params, body: guest(ticketTypeId) }),
  )
  const attendees = [
    { name: 'Melba Roy', email: 'melba@example.com' },
    { name: 'Annie Easley', email: 'annie@example.com' },
  ]
  const { data: group } = dataOf(
    await usher.POST('/events/{event_id}/registrations', { params, body: { ticket_type_id: ticketTypeId, attendees } }),
  )
  const guests: string[] = []
  const query = { event_id: eventId, limit: 2 }
  const listed = every((cursor) => usher.GET('/attendees', { params: { query: { ...query, cursor } } }))
  for await (const { name } of listed) guests.push(name)

  const body = { event_id: eventId, code: order.attendees[0]?.ticket_code ?? '' }
  const arrival = await usher.POST('/check-ins', { body })
  const { error } = await usher.POST('/check-ins', { body })
  return {
    order: order.status,
    group: group.attendees.length,
    guests,
    arrival: arrival.data?.data.result,
    again: error?.error.code === 'already_checked_in' ? error.error.code : undefined,
  }
}
