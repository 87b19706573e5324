// What an organiser does to a row in Studio: add one, edit some columns, look.

import { refusalOf, row, studio } from '../support/database.ts'
import type { TestEvent } from '../support/organisation.ts'

type Table = 'organisations' | 'events' | 'ticket_types' | 'orders' | 'attendees' | 'check_ins' | 'api_keys'

/** `edit('orders', id, 'name = $2', ['Mary'])`; the id is $1. */
export const edit = (table: Table, id: string, assignments: string, values: unknown[] = []) =>
  studio.query(`update public.${table} set ${assignments} where id = $1`, [id, ...values])

/** What refused the edit. */
export const refusalOfEdit = (...args: Parameters<typeof edit>) => refusalOf(edit(...args))

export const remove = (table: Table, id: string) => studio.query(`delete from public.${table} where id = $1`, [id])

/** `read('orders', id, 'status', 'amount_paid')` */
export const read = (table: Table, id: string, ...columns: string[]) =>
  row<Record<string, unknown>>(`select ${columns.join(', ')} from public.${table} where id = $1`, [id])

/** An order, and an attendee of it for each ticket type that is named. Pending while anything of `subtotal` is due. */
export async function addOrder(
  event: TestEvent,
  { subtotal = 0, discount = 0, paid = 0, sendEmail = true, ticketTypeIds = [event.ticketTypeId] } = {},
): Promise<{ id: string; attendeeIds: string[] }> {
  const { id } = await row<{ id: string }>(
    `insert into public.orders (event_id, name, email, subtotal, discount_total, send_email)
     values ($1, 'Buyer', 'buyer@example.com', $2, $3, $4) returning id`,
    [event.id, subtotal, discount, sendEmail],
  )
  if (paid > 0) await pay(id, paid)
  const attendeeIds: string[] = []
  for (const ticketTypeId of ticketTypeIds) attendeeIds.push(await addAttendee(id, ticketTypeId))
  return { id, attendeeIds }
}

/** Money that came in, in minor units. */
export const pay = (orderId: string, amount: number) =>
  studio.query('insert into public.payments (order_id, amount) values ($1, $2)', [orderId, amount])

export async function addAttendee(orderId: string, ticketTypeId: string): Promise<string> {
  const { id } = await row<{ id: string }>(
    `insert into public.attendees (order_id, ticket_type_id, name, email)
     values ($1, $2, 'Guest', 'guest@example.com') returning id`,
    [orderId, ticketTypeId],
  )
  return id
}
