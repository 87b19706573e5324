// Places are counted by triggers. Whatever a test did, they must equal a count of the rows.

import { expect } from 'vitest'
import { studio } from '../support/database.ts'
import type { TestEvent } from '../support/organisation.ts'

/** Holds quantity_sold of every ticket type of the event against its attendees who are not cancelled. */
export async function expectExactCounts(event: TestEvent): Promise<void> {
  const { rows } = await studio.query<{ name: string; counted: number; recounted: number }>(
    `select t.name, t.quantity_sold as counted,
       (select count(*)::int from public.attendees a where a.ticket_type_id = t.id and a.status <> 'cancelled') as recounted
     from public.ticket_types t where t.event_id = $1 order by t.id`,
    [event.id],
  )
  expect(rows.map(({ name, counted }) => [name, counted])).toEqual(rows.map(({ name, recounted }) => [name, recounted]))
}
