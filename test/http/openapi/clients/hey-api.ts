// A guest is registered and checked in with the client that @hey-api/openapi-ts makes.

import { createClient } from './generated/hey-api/client/index.ts'
import { checkIn, type GuestRegistration, listEvents, registerAttendee } from './generated/hey-api/index.ts'
import type { Story, Told } from './story.ts'

const guest = (ticket_type_id: string): GuestRegistration => ({
  ticket_type_id,
  name: 'Mary Jackson',
  email: 'mary@example.com',
  send_email: false,
})

export const tell: Story = async ({ apiUrl, key, eventId, ticketTypeId }): Promise<Told> => {
  const client = createClient({ baseUrl: `${apiUrl}/api/v1`, auth: key })
  const path = { event_id: eventId }
  const events = await listEvents({ client, query: { status: 'published', limit: 10 } })
  const headers = { 'Idempotency-Key': 'hey-api' }
  const order = await registerAttendee({ client, path, headers, body: guest(ticketTypeId) })
  const group = await registerAttendee({
    client,
    path,
    body: { ticket_type_id: ticketTypeId, attendees: [{ name: 'Melba Roy', email: 'melba@example.com' }] },
  })
  const body = { event_id: eventId, code: order.data?.data.attendees[0]?.ticket_code ?? '' }
  const arrival = await checkIn({ client, body })
  const { error } = await checkIn({ client, body })
  return {
    events: events.data?.data.length ?? 0,
    order: order.data?.data.status,
    group: group.data?.data.attendees.length ?? 0,
    arrival: arrival.data?.data.result,
    again: error?.error.code === 'already_checked_in' ? error.error.code : undefined,
  }
}
