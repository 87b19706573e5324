// What an organiser does to a row in Studio: add one, edit some columns, look.

import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { idOf, refusalOf, row, studio } from './database.ts'
import type { TestEvent } from './organisation.ts'

type Table =
  | 'organisations'
  | 'events'
  | 'ticket_types'
  | 'promo_codes'
  | 'orders'
  | 'attendees'
  | 'check_ins'
  | 'api_keys'
  | 'webhook_endpoints'
  | 'waiting_list_entries'

/** What runs a statement: any connection, or one that is in a transaction. */
export type Hand = Pick<pg.ClientBase, 'query'>

/** `edit('orders', id, 'name = $2', ['Mary'])`; the id is $1. */
export const edit = (table: Table, id: string, assignments: string, values: unknown[] = [], hand: Hand = studio) =>
  hand.query(`update public.${table} set ${assignments} where id = $1`, [id, ...values])

/** What refused the edit. */
export const refusalOfEdit = (...args: Parameters<typeof edit>) => refusalOf(edit(...args))

export const remove = (table: Table, id: string, hand: Hand = studio) =>
  hand.query(`delete from public.${table} where id = $1`, [id])

/** `read('orders', id, 'status', 'amount_paid')` */
export const read = (table: Table, id: string, ...columns: string[]) =>
  row<Record<string, unknown>>(`select ${columns.join(', ')} from public.${table} where id = $1`, [id])

/** An order, and an attendee of it for each ticket type that is named. With a subtotal, the first ticket type costs that, and
 * the order is to be paid by invoice. */
export async function addOrder(
  event: TestEvent,
  { subtotal = 0, discount = 0, paid = 0, sendEmail = true, ticketTypeIds = [event.ticketTypeId] } = {},
): Promise<{ id: string; attendeeIds: string[] }> {
  if (subtotal > 0) {
    await studio.query('update public.ticket_types set price = $2 where id = $1', [ticketTypeIds[0], subtotal])
  }
  const promoCode = discount > 0 ? await addPromoCode(event, (discount * 100) / subtotal) : null
  const id = await idOf(
    `insert into public.orders (event_id, name, email, payment_method, promo_code, send_email)
     select $1, 'Buyer', 'buyer@example.com', $2, $3, $4 returning id`,
    [event.id, subtotal > 0 ? 'invoice' : null, promoCode, sendEmail],
  )
  const attendeeIds: string[] = []
  for (const ticketTypeId of ticketTypeIds) attendeeIds.push(await addAttendee(id, ticketTypeId))
  if (paid > 0) await pay(id, paid)
  return { id, attendeeIds }
}

/** The code of a new promo code. */
export async function addPromoCode(event: TestEvent, percentOff: number): Promise<string> {
  const { code } = await row<{ code: string }>(
    `insert into public.promo_codes (event_id, code, percent_off) select $1, $2, $3 returning code`,
    [event.id, randomUUID(), percentOff.toFixed(2)],
  )
  return code
}

/** Money that came in, in minor units. */
export const pay = (orderId: string, amount: number, hand: Hand = studio) =>
  hand.query('insert into public.payments (order_id, amount) values ($1, $2)', [orderId, amount])

export const addAttendee = (orderId: string, ticketTypeId: string): Promise<string> =>
  idOf(
    `insert into public.attendees (order_id, ticket_type_id, name, email)
     values ($1, $2, 'Guest', 'guest@example.com') returning id`,
    [orderId, ticketTypeId],
  )

/** Statements that stand or fall together, as in the SQL editor. */
export async function inOneTransaction<T>(work: (hand: Hand) => Promise<T>): Promise<T> {
  const client = await studio.connect()
  try {
    await client.query('begin')
    const result = await work(client)
    await client.query('commit')
    return result
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}
