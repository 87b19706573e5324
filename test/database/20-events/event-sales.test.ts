// public.event_sales, the view of what is sold and left of each ticket type.

import { expect, test } from 'vitest'
import { studio } from '../../support/database.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { rest } from '../../support/rest.ts'

test.each([
  ['has no limit', undefined, [null, 2]],
  ['has room', 20, [19, 2]],
  ['allows fewer than the ticket type', 2, [1, 1]],
  ['is full', 1, [0, 0]],
])('what is left of a ticket type is what can be registered, where the event %s', async (_what, capacity, left) => {
  const organisation = await createOrganisation()
  const event = await organisation.event({ ...(capacity && { capacity }), quantity: 3 })
  await event.ticketType({ name: 'Unlimited' })
  await event.guest()
  const { rows } = await studio.query<{ id: string; available: number | null }>(
    'select ticket_type_id as id, available from public.event_sales where event_id = $1 order by ticket_type desc',
    [event.id],
  )
  expect(rows.map(({ available }) => available)).toEqual(left)
  const { body } = await rest(await organisation.key('events:read'))('GET', `/events/${event.id}/ticket-types`)
  const told = body.data.map((type: { id: string; quantity_available: number | null }) => [
    type.id,
    type.quantity_available,
  ])
  expect(Object.fromEntries(rows.map(({ id, available }) => [id, available]))).toEqual(Object.fromEntries(told))
})
