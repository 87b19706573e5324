// An organisation, its outbox, and both interfaces to it: each notification is compared with what a read over REST answers of the
// same object at that moment.

import type { EventActions } from '../support/interfaces.ts'
import { createOrganisation, type TestEvent } from '../support/organisation.ts'
import { listenIn, type Told } from '../support/outbox.ts'
import { rest } from '../support/rest.ts'

type Object = Record<string, unknown> & { id: string }

export async function outboxFixture(
  open: (send: ReturnType<typeof rest>, event: TestEvent) => EventActions,
  options?: { status?: 'draft' | 'published' },
) {
  const organisation = await createOrganisation()
  const event = await organisation.event(options)
  const send = rest(await organisation.key())
  const read = async (path: string): Promise<Object> => (await send('GET', path)).body.data
  const told = await listenIn(organisation.id)
  return {
    organisation,
    event,
    send,
    told,
    actions: open(send, event),
    theEvent: () => read(`/events/${event.id}`),
    order: (id: string) => read(`/orders/${id}`),
    paymentsOf: async (orderId: string) => (await read(`/orders/${orderId}`)).payments as Object[],
    attendee: async (id: string) => asNotified(await read(`/attendees/${id}`)),
    /** Of an order: with their codes. */
    attendeesOf: async (orderId: string): Promise<(Object & { ticket_code: string })[]> =>
      (await send('GET', `/attendees?order_id=${orderId}`)).body.data.map(asNotified),
    /** Registers, and drops the notifications of it. */
    registered: async (...args: Parameters<EventActions['register']>) => {
      const id = await open(send, event).register(...args)
      await told()
      return id
    },
  }
}

/** An attendee as whoever may read them sees them, but for the ticket page. */
const asNotified = (attendee: Object): Object => ({ ...attendee, ticket_url: null })

export const tell = (type: string, data: Record<string, unknown>): Told => ({ type, data })
