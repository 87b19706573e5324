// For each operation, arguments that succeed on a published event. Whoever adds an operation adds a line.

import { row } from '../support/database.ts'
import type { TestEvent } from '../support/organisation.ts'

type Arguments = Record<string, unknown>

export const examples: Record<string, (event: TestEvent) => Arguments | Promise<Arguments>> = {
  get_api_key: () => ({}),
  list_events: () => ({ status: 'published', limit: 10 }),
  get_event: ({ id }) => ({ event_id: id }),
  list_ticket_types: ({ id }) => ({ event_id: id }),
  register_attendee: ({ id, ticketTypeId }) => ({
    event_id: id,
    ticket_type_id: ticketTypeId,
    name: 'Mary Jackson',
    email: 'mary@example.com',
    company: 'NASA',
    send_email: false,
  }),
  check_in: async (event) => ({ event_id: event.id, code: (await event.guest()).code, device: 'Gate 1' }),
  undo_check_in: async (event) => ({ check_in_id: await acceptedScan(event) }),
}

/** A guest let in by hand, in Studio. */
async function acceptedScan(event: TestEvent): Promise<string> {
  const { code } = await event.guest()
  const { id } = await row<{ id: string }>(
    'insert into public.check_ins (event_id, code) values ($1, $2) returning id',
    [event.id, code],
  )
  return id
}
