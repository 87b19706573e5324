// The same deeds by two interfaces: over REST, and as rows that an organiser edits in Studio. What holds for either
// is tested through both. A deed that is refused throws the code of the refusal.

import pg from 'pg'
import { during, row, studio } from './database.ts'
import type { TestEvent } from './organisation.ts'
import type { rest } from './rest.ts'

export type Registration = { guests?: number; ticketTypeId?: string; invoice?: boolean; promoCode?: string }
export type EventStatus = 'draft' | 'published' | 'cancelled' | 'completed'

export type EventActions = {
  /** The id of the order. */
  register(registration?: Registration): Promise<string>
  pay(orderId: string, amount: number): Promise<unknown>
  cancelOrder(orderId: string): Promise<unknown>
  cancelAttendee(attendeeId: string): Promise<unknown>
  rename(attendeeId: string, name: string): Promise<unknown>
  /** To somebody else, who gets a ticket of their own. */
  transfer(attendeeId: string): Promise<unknown>
  scan(code: string): Promise<{ id: string; result: string }>
  undo(checkInId: string): Promise<unknown>
  renameEvent(name: string): Promise<unknown>
  setStatus(status: EventStatus): Promise<unknown>
}

const ada = { name: 'Ada', email: 'ada@example.com' }

export function overRest(send: ReturnType<typeof rest>, event: TestEvent): EventActions {
  const act = async (method: string, path: string, body?: object) => {
    const answer = await send(method, path, body)
    if (answer.status >= 400) throw new Error(answer.body.error.code)
    return answer.body.data
  }
  return {
    register: async ({ guests = 1, ticketTypeId = event.ticketTypeId, invoice = false, promoCode } = {}) =>
      (
        await act('POST', `/events/${event.id}/registrations`, {
          ticket_type_id: ticketTypeId,
          attendees: Array.from({ length: guests }, (_, i) => ({ name: `Guest ${i}`, email: `g${i}@example.com` })),
          ...(invoice && { payment_method: 'invoice' }),
          ...(promoCode !== undefined && { promo_code: promoCode }),
        })
      ).id,
    pay: (orderId, amount) => act('POST', `/orders/${orderId}/payments`, { amount }),
    cancelOrder: (orderId) => act('POST', `/orders/${orderId}/cancel`),
    cancelAttendee: (attendeeId) => act('POST', `/attendees/${attendeeId}/cancel`),
    rename: (attendeeId, name) => act('PATCH', `/attendees/${attendeeId}`, { name }),
    transfer: (attendeeId) => act('PATCH', `/attendees/${attendeeId}`, { ...ada, reissue_ticket: true }),
    scan: async (code) => {
      // A rejected scan is not 2xx, and is a row like any other.
      const { body } = await send('POST', '/check-ins', { event_id: event.id, code })
      return body.data ?? body.error.details.check_in
    },
    undo: (checkInId) => act('POST', `/check-ins/${checkInId}/undo`),
    renameEvent: (name) => act('PATCH', `/events/${event.id}`, { name }),
    setStatus: (status) => {
      const verb = { draft: 'unpublish', published: 'publish', cancelled: 'cancel', completed: 'complete' }[status]
      return act('POST', `/events/${event.id}/${verb}`)
    },
  }
}

export function inStudio(_send: unknown, event: TestEvent): EventActions {
  const act = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work
    } catch (error) {
      if (error instanceof pg.DatabaseError && error.code?.startsWith('PT')) {
        throw new Error(JSON.parse(error.detail ?? '{}').code, { cause: error })
      }
      throw error
    }
  }
  const edit = (table: string, id: string, assignments: string, values: unknown[] = []) =>
    act(studio.query(`update public.${table} set ${assignments} where id = $1`, [id, ...values]))
  return {
    // In one transaction: the outbox tells of an order what there is of it when that ends.
    register: ({ guests = 1, ticketTypeId = event.ticketTypeId, invoice = false, promoCode = null } = {}) =>
      act(
        during(async (client) => {
          const { rows } = await client.query<{ id: string }>(
            `insert into public.orders (event_id, name, email, payment_method, promo_code)
             values ($1, 'Guest 0', 'g0@example.com', $2, $3) returning id`,
            [event.id, invoice ? 'invoice' : null, promoCode],
          )
          const id = rows[0]?.id ?? ''
          await client.query(
            `insert into public.attendees (order_id, ticket_type_id, name, email)
             select $1, $2, 'Guest ' || i, 'g' || i || '@example.com' from generate_series(0, $3 - 1) i`,
            [id, ticketTypeId, guests],
          )
          await client.query('commit')
          return id
        }),
      ),
    pay: (orderId, amount) =>
      act(studio.query('insert into public.payments (order_id, amount) values ($1, $2)', [orderId, amount])),
    cancelOrder: (orderId) => edit('orders', orderId, "status = 'cancelled'"),
    cancelAttendee: (attendeeId) => edit('attendees', attendeeId, "status = 'cancelled'"),
    rename: (attendeeId, name) => edit('attendees', attendeeId, 'name = $2', [name]),
    transfer: (attendeeId) =>
      edit('attendees', attendeeId, 'name = $2, email = $3, ticket_code = null', [ada.name, ada.email]),
    scan: (code) =>
      act(row('insert into public.check_ins (event_id, code) values ($1, $2) returning id, result', [event.id, code])),
    undo: (checkInId) => edit('check_ins', checkInId, 'undone_at = now()'),
    renameEvent: (name) => edit('events', event.id, 'name = $2', [name]),
    setStatus: (status) => edit('events', event.id, 'status = $2', [status]),
  }
}

export const interfaces = [
  ['over REST', overRest],
  ['in Studio', inStudio],
] as const
