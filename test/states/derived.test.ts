// States that no column holds: they follow from dates, counts and status, each time they are read. One object after another is
// led through all of its values by edits in Studio, and read over REST, by itself and in its list.

import { expect, test } from 'vitest'
import { EventSchema } from '../../src/operations/events.ts'
import { PromoCodeSchema } from '../../src/operations/promo-codes.ts'
import { TicketTypeSchema } from '../../src/operations/ticket-types.ts'
import { row } from '../support/database.ts'
import { createOrganisation, type TestEvent } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'
import { edit, inOneTransaction } from '../support/studio.ts'
import { registering } from './registering.ts'

const earlier = "now() - interval '1 hour'"
const later = "now() + interval '1 hour'"
const evenLater = "now() + interval '2 hours'"

type Step = [assignments: string, value: string]

type Derived = {
  field: string
  values: readonly string[]
  table: 'events' | 'ticket_types' | 'promo_codes'
  /** The object, and the paths of itself and its list. */
  arrange: (event: TestEvent) => Promise<{ id: string; path: string; list: string }>
  steps: Step[]
}

const machines: Derived[] = [
  {
    field: 'phase',
    values: EventSchema.shape.phase.options,
    table: 'events',
    arrange: async ({ id }) => ({ id, path: `/events/${id}`, list: '/events' }),
    steps: [
      // Nothing of a draft takes place, whatever its dates.
      ['starts_at = null, ends_at = null', 'upcoming'],
      [`starts_at = ${earlier}`, 'upcoming'],
      ["starts_at = now() - interval '2 hours', ends_at = now()", 'upcoming'],
      [`starts_at = ${later}, ends_at = ${evenLater}`, 'upcoming'],
      // Of the others it is the clock's, which knows nothing of the status.
      ["status = 'published'", 'upcoming'],
      [`starts_at = ${earlier}`, 'ongoing'],
      ["starts_at = now() - interval '2 hours', ends_at = now()", 'ended'],
      [`starts_at = now(), ends_at = ${later}`, 'ongoing'],
      ["status = 'cancelled'", 'ongoing'],
    ],
  },
  {
    field: 'sales_status',
    values: TicketTypeSchema.shape.sales_status.options,
    table: 'ticket_types',
    arrange: async ({ id, ticketTypeId }) => ({
      id: ticketTypeId,
      path: `/ticket-types/${ticketTypeId}`,
      list: `/events/${id}/ticket-types`,
    }),
    steps: [
      ['description = null', 'on_sale'],
      [`sales_start_at = ${later}`, 'upcoming'],
      ['quantity = 0', 'upcoming'],
      [`sales_start_at = ${earlier}`, 'sold_out'],
      ['quantity = 1', 'on_sale'],
      [`sales_end_at = ${later}`, 'on_sale'],
      ['sales_end_at = now()', 'ended'],
      ['quantity = 0', 'ended'],
      ["status = 'archived'", 'archived'],
      [`sales_start_at = ${later}, sales_end_at = ${evenLater}`, 'archived'],
      ["status = 'active'", 'upcoming'],
      ['sales_start_at = now(), quantity = null', 'on_sale'],
    ],
  },
  {
    field: 'state',
    values: PromoCodeSchema.shape.state.options,
    table: 'promo_codes',
    arrange: async (event) => {
      const { id: eventId, ticketTypeId } = event
      const { id } = await row<{ id: string }>(
        "insert into public.promo_codes (event_id, code, percent_off) values ($1, 'HALF', 50) returning id",
        [eventId],
      )
      await edit('ticket_types', ticketTypeId, 'price = 3000')
      await edit('events', eventId, "status = 'published'")
      await inOneTransaction((hand) =>
        registering({ payment_method: 'invoice', promo_code: 'HALF' }).sql({ event }, hand),
      )
      return { id, path: `/promo-codes/${id}`, list: `/events/${eventId}/promo-codes` }
    },
    steps: [
      ['percent_off = 50', 'valid'],
      ['max_redemptions = 1', 'used_up'],
      [`valid_from = ${later}`, 'upcoming'],
      [`valid_from = ${earlier}`, 'used_up'],
      ['max_redemptions = 2', 'valid'],
      [`valid_until = ${later}`, 'valid'],
      ['valid_until = now()', 'expired'],
      ['max_redemptions = 1', 'expired'],
      ["status = 'disabled'", 'disabled'],
      [`valid_from = ${later}, valid_until = ${evenLater}`, 'disabled'],
      ["status = 'active'", 'upcoming'],
      ['valid_from = now(), max_redemptions = null', 'valid'],
    ],
  },
]

test.each(machines)(
  '$field of $table goes through all its values',
  async ({ field, values, table, arrange, steps }) => {
    const organisation = await createOrganisation()
    const send = rest(await organisation.key('events:read'))
    const { id, path, list } = await arrange(await organisation.event({ status: 'draft', capacity: 100 }))
    for (const [assignments, value] of steps) {
      await edit(table, id, assignments)
      const [alone, listed] = await Promise.all([send('GET', path), send('GET', list)])
      expect([assignments, alone.body.data[field]]).toEqual([assignments, value])
      expect([assignments, listed.body.data[0][field]]).toEqual([assignments, value])
    }
    // A value that is new, or that nothing leads to, is a failure of this table.
    expect(new Set(steps.map(([, value]) => value))).toEqual(new Set(values))
  },
)
