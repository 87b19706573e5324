// Registering somebody, through both interfaces: one operation over REST, an order and its attendee in one transaction in Studio.

import type { Changes } from './snapshot.ts'
import { done, type Interfaces, type Subject } from './state-machine.ts'

type Terms = { payment_method?: 'invoice'; promo_code?: string }

/** One ticket of the event's first type; complimentary unless there is a payment method. */
export const registering = (terms: Terms = {}): Interfaces<Subject> => ({
  rest: (send, { event }) =>
    send('POST', `/events/${event.id}/registrations`, {
      ticket_type_id: event.ticketTypeId,
      name: 'Guest',
      email: 'guest@example.com',
      ...terms,
    }),
  sql: async ({ event }, hand) => {
    const { rows } = await hand.query<{ id: string }>(
      `insert into public.orders (event_id, name, email, payment_method, promo_code)
       values ($1, 'Guest', 'guest@example.com', $2, $3) returning id`,
      [event.id, terms.payment_method, terms.promo_code],
    )
    await hand.query(
      `insert into public.attendees (order_id, ticket_type_id, name, email)
       values ($1, $2, 'Guest', 'guest@example.com')`,
      [rows[0]?.id, event.ticketTypeId],
    )
  },
})

/** What it adds, where so many had registered before. */
function added(before: number, order: Changes, attendee: Changes, also: Changes = {}): Changes {
  const nth = before === 0 ? '' : ` ${before + 1}`
  const prefixed = (kind: string, changes: Changes) =>
    Object.fromEntries(Object.entries(changes).map(([column, value]) => [`${kind}${nth}.${column}`, value]))
  return {
    ...prefixed('order', order),
    ...prefixed('attendee', attendee),
    'ticket_type.quantity_sold': before + 1,
    ...also,
  }
}

/** The ticket is good, for nothing was to be paid for it: it was complimentary, or cost nothing in the end. */
export const registeredGuest = (before = 0, { price = 0, ...also }: { price?: number } & Changes = {}) =>
  done(
    added(
      before,
      { status: 'completed', payment_status: 'not_required', total: 0 },
      { status: 'active', price, discount: price, ticket_email_status: 'queued' },
      also,
    ),
  )

/** The ticket waits for its payment. */
export const registeredPayer = (price: number, { before = 0, discount = 0, also = {} as Changes } = {}) =>
  done(
    added(
      before,
      { status: 'pending', payment_status: 'awaiting_payment', total: price - discount },
      { status: 'awaiting_payment', price, discount, ticket_email_status: 'waiting' },
      also,
    ),
  )
