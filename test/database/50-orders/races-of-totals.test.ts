// Totals are the sums of the tickets that stand, also when two of an order are changed by hand at the same moment: an update
// that waits for a row sees its new version, but would go on with sums it had made before.

import { expect, test } from 'vitest'
import { row, studio } from '../../support/database.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { rest } from '../../support/rest.ts'
import { addOrder, pay } from '../../support/studio.ts'
import { meanwhile } from '../meanwhile.ts'

async function orderOf(tickets: number) {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const { id, attendeeIds } = await addOrder(event, {
    subtotal: 4900,
    ticketTypeIds: Array.from({ length: tickets }, () => event.ticketTypeId),
  })
  const [first = '', second = ''] = attendeeIds
  return { organisation, event, id, first, second }
}

const cancel = (id: string) => studio.query("update public.attendees set status = 'cancelled' where id = $1", [id])

const totals = (id: string) =>
  row(
    `select o.status, o.payment_status, o.subtotal::int,
       (select coalesce(sum(a.price), 0)::int from public.attendees a where a.order_id = o.id and a.status <> 'cancelled') as standing
     from public.orders o where o.id = $1`,
    [id],
  )

const pending = { status: 'pending', payment_status: 'awaiting_payment' }

const cancelled =
  (id: string): Parameters<typeof meanwhile>[0] =>
  (client) =>
    client.query("update public.attendees set status = 'cancelled' where id = $1", [id])

test('two tickets cancelled by hand at once are both taken off', async () => {
  const { id, first, second } = await orderOf(3)
  await meanwhile(cancelled(first), () => cancel(second))
  expect(await totals(id)).toEqual({ ...pending, subtotal: 4900, standing: 4900 })
})

test('one cancelled over the API while another is cancelled by hand is taken off, too', async () => {
  const { organisation, id, first, second } = await orderOf(3)
  const send = rest(await organisation.key())
  await meanwhile(cancelled(first), async () => {
    expect((await send('POST', `/attendees/${second}/cancel`)).status).toBe(200)
  })
  expect(await totals(id)).toEqual({ ...pending, subtotal: 4900, standing: 4900 })
})

test('an order is not completed by a cancellation past a ticket that is being added', async () => {
  const { event, id, first } = await orderOf(2)
  await pay(id, 4900)
  const add = `insert into public.attendees (order_id, ticket_type_id, name, email) values ($1, $2, 'Late', 'late@example.com')`
  await meanwhile(
    (client) => client.query(add, [id, event.ticketTypeId]),
    () => cancel(first),
  )
  expect(await totals(id)).toEqual({
    status: 'pending',
    payment_status: 'partially_paid',
    subtotal: 9800,
    standing: 9800,
  })
})

test('of two who cancel the last two tickets, the second cancels the order', async () => {
  const { id, first, second } = await orderOf(2)
  await meanwhile(cancelled(first), () => cancel(second))
  expect(await totals(id)).toMatchObject({ status: 'cancelled', payment_status: 'not_required', standing: 0 })
})
