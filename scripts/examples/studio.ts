// What an organiser does in Studio, for the steps of the story that REST has no operation for.

import type pg from 'pg'

/** An order to be paid for, with nobody on it yet. @returns its identifier. */
export async function addInvoiceOrder(database: pg.ClientBase, eventId: string): Promise<string> {
  const { rows } = await database.query<{ id: string }>(
    `insert into public.orders (event_id, name, email, company, subtotal)
     values ($1, 'Christine Darden', 'christine@example.com', 'Langley', 4900) returning id`,
    [eventId],
  )
  if (!rows[0]) throw new Error('the order was not added')
  return rows[0].id
}
