// How each type of notification comes about over REST. A new type needs one line in `recipes`.

import { bouncingAddress } from '../../courier/email.ts'
import type { NotificationType } from '../../operations/webhook-endpoints.ts'

/** The order of an answer; of other objects only the id is used. */
type Order = Record<'id' | 'created_at', string> & {
  attendees: [{ id: string; ticket_code: string }]
  payments: { id: string }[]
}
export type Act = (method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: object) => Promise<Order>
/** Waits until the courier has brought an object, or the first of a list, to this status. */
export type Until = (path: string, status: string) => Promise<void>
type Steps = ReturnType<typeof steps>

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
const guest = { name: 'Mary Jackson', email: 'mary@example.com' }
const price = 4900

export function steps(act: Act, until: Until) {
  const event = async (ticketType = {}) => {
    const times = { timezone: 'UTC', starts_at: inDays(30), ends_at: inDays(31) }
    const { id } = await act('POST', '/events', { name: 'Trigger', ...times })
    const { id: ticketTypeId } = await act('POST', `/events/${id}/ticket-types`, { name: 'Regular', ...ticketType })
    await act('POST', `/events/${id}/publish`)
    return { id, ticketTypeId }
  }
  const register = async (more = {}, ticketType = {}) => {
    const { id, ticketTypeId } = await event(ticketType)
    const order = await act('POST', `/events/${id}/registrations`, { ticket_type_id: ticketTypeId, ...guest, ...more })
    return { order, attendee: order.attendees[0], eventId: id, ticketTypeId }
  }
  const unpaid = async () => (await register({ payment_method: 'invoice' }, { price })).order
  const paid = async () => act('POST', `/orders/${(await unpaid()).id}/payments`, { amount: price })
  const expired = async () => {
    const { id, created_at } = await unpaid()
    // The server has fractions of a millisecond.
    const payment_due_at = new Date(Date.parse(created_at) + 1).toISOString()
    await act('PATCH', `/orders/${id}`, { payment_due_at, expire_now: true })
    await until(`/orders/${id}`, 'cancelled')
    return id
  }
  const scan = async () => {
    const { eventId, attendee } = await register()
    const gate = await act('POST', `/events/${eventId}/check-in-points`, { name: 'Gate', admission: 're_entry' })
    const code = { event_id: eventId, code: attendee.ticket_code, check_in_point_id: gate.id }
    return { code, checkIn: await act('POST', '/check-ins', code) }
  }
  const waiting = async () => {
    const { eventId, ticketTypeId } = await register({}, { quantity: 1 })
    const person = { name: 'Annie Easley', email: 'annie@example.com', ticket_type_id: ticketTypeId }
    const { id } = await act('POST', `/events/${eventId}/waiting-list`, person)
    return { entry: `/waiting-list-entries/${id}`, ticketTypeId }
  }
  const offered = async () => {
    const { entry, ticketTypeId } = await waiting()
    await act('PATCH', `/ticket-types/${ticketTypeId}`, { quantity: 2 })
    return entry
  }
  return { act, until, event, register, unpaid, paid, expired, scan, waiting, offered }
}

export const recipes = {
  'order.created': (on) => on.unpaid(),
  'order.completed': (on) => on.register(),
  'order.cancelled': async (on) => on.act('POST', `/orders/${(await on.register()).order.id}/cancel`),
  'order.expired': (on) => on.expired(),
  'order.reopened': async (on) => on.act('POST', `/orders/${await on.expired()}/reopen`),
  'order.updated': async (on) => on.act('PATCH', `/orders/${(await on.unpaid()).id}`, { company: 'Langley' }),
  'attendee.created': async (on) => {
    const { order, ticketTypeId } = await on.register({ payment_method: 'invoice' }, { price })
    await on.act('POST', `/orders/${order.id}/attendees`, { ...guest, ticket_type_id: ticketTypeId })
  },
  'attendee.checked_in': (on) => on.scan(),
  'attendee.checked_out': async (on) => on.act('POST', '/check-ins', { ...(await on.scan()).code, direction: 'exit' }),
  'attendee.check_in_undone': async (on) => on.act('POST', `/check-ins/${(await on.scan()).checkIn.id}/undo`),
  'attendee.updated': async (on) =>
    on.act('PATCH', `/attendees/${(await on.register()).attendee.id}`, { company: 'Langley' }),
  'attendee.cancelled': async (on) => on.act('POST', `/attendees/${(await on.register()).attendee.id}/cancel`),
  'attendee.erased': async (on) => on.act('POST', `/attendees/${(await on.register()).attendee.id}/erase`),
  'event.published': (on) => on.event(),
  'event.updated': async (on) => on.act('PATCH', `/events/${(await on.event()).id}`, { description: 'Updated.' }),
  'event.cancelled': async (on) => on.act('POST', `/events/${(await on.event()).id}/cancel`),
  'payment.recorded': (on) => on.paid(),
  'payment.voided': async (on) => on.act('POST', `/payments/${(await on.paid()).payments[0]?.id}/void`),
  'refund.recorded': async (on) => {
    const { id } = await on.paid()
    await on.act('POST', `/orders/${id}/cancel`)
    await on.act('POST', `/orders/${id}/refunds`, { amount: price })
  },
  'email.bounced': async (on) => {
    const { order } = await on.register({ email: bouncingAddress })
    await on.until(`/emails?order_id=${order.id}`, 'failed')
  },
  'ticket_type.sold_out': (on) => on.register({}, { quantity: 1 }),
  'waiting_list_entry.created': (on) => on.waiting(),
  'waiting_list_entry.offered': (on) => on.offered(),
  'waiting_list_entry.accepted': async (on) => on.act('POST', `${await on.offered()}/accept`),
  'waiting_list_entry.expired': async (on) => {
    const entry = await on.offered()
    await on.act('PATCH', entry, { offer_expires_at: new Date(0).toISOString() })
    await on.until(entry, 'expired')
  },
  'waiting_list_entry.cancelled': async (on) => on.act('POST', `${(await on.waiting()).entry}/cancel`),
  'webhook_endpoint.test': async (on) => {
    // No such host exists: RFC 2606.
    const endpoint = { url: 'https://hooks.example/', types: ['event.updated'] }
    const { id } = await on.act('POST', '/webhook-endpoints', endpoint)
    await on.act('POST', `/webhook-endpoints/${id}/test`)
    await on.act('DELETE', `/webhook-endpoints/${id}`)
  },
} satisfies Record<NotificationType, (on: Steps) => Promise<unknown>>
