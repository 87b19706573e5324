// Ticket types: active and archived, both ways, whatever was sold; and who can still be registered, by sales_status.

import { TicketTypeSchema } from '../../src/operations/ticket-types.ts'
import type { TestEvent, TestOrganisation } from '../support/organisation.ts'
import { edit } from '../support/studio.ts'
import { registeredGuest, registeredPayer, registering } from './registering.ts'
import { columnOf, done, type Interfaces, refused, type Subject, testStateMachine, unchanged } from './state-machine.ts'

const price = 3000

/** The ticket type of an event, after something was done and then set. */
const ticketTypeThat =
  (assignments?: string, work: (event: TestEvent) => Promise<unknown> = async () => {}) =>
  async (organisation: TestOrganisation): Promise<Subject> => {
    const event = await organisation.event()
    await edit('ticket_types', event.ticketTypeId, 'price = $2', [price])
    await work(event)
    if (assignments) await edit('ticket_types', event.ticketTypeId, assignments)
    return { event }
  }

const guest = (event: TestEvent) => event.guest()
const idOf = ({ event }: Subject) => event.ticketTypeId

const states = {
  'active on_sale': ticketTypeThat(),
  'active on_sale, with one left': ticketTypeThat('quantity = 2', guest),
  'active upcoming': ticketTypeThat("sales_start_at = now() + interval '1 hour'"),
  'active ended': ticketTypeThat("sales_end_at = now() - interval '1 hour'"),
  'active sold_out': ticketTypeThat('quantity = 1', guest),
  'active sold_out, for the event is full': ticketTypeThat(undefined, async (event) => {
    await event.guest()
    await edit('events', event.id, 'capacity = 1')
  }),
  'archived archived': ticketTypeThat("status = 'archived'"),
  'archived archived, of a cancelled event': ticketTypeThat("status = 'archived'", (event) =>
    edit('events', event.id, "status = 'cancelled'"),
  ),
}

const setTo = (status: string): Interfaces<Subject> => ({
  rest: (send, it) => send('PATCH', `/ticket-types/${idOf(it)}`, { status }),
  sql: (it, hand) => edit('ticket_types', idOf(it), 'status = $2', [status], hand),
})

// A change of fields over REST is a save, as in Studio: from a status to itself it is not refused, and does nothing.
const isActive = { 'to active': unchanged, 'to archived': done({ 'ticket_type.status': 'archived' }) }
const isArchived = { 'to active': done({ 'ticket_type.status': 'active' }), 'to archived': unchanged }

const registers = (before = 0) => ({
  'registering a guest': registeredGuest(before),
  'registering a payer': registeredPayer(price, { before }),
})
const registersNobody = (cell: ReturnType<typeof refused>) => ({
  'registering a guest': cell,
  'registering a payer': cell,
})
const refusedFor = (code: string, moment: object = {}) =>
  registersNobody(refused(code, { param: 'ticket_type_id', details: { ticket_type_id: 'ticket_type', ...moment } }))

testStateMachine({
  name: 'a ticket type',
  dimensions: [
    { values: 'ticket_type_status', read: columnOf(idOf, 'status'), settable: true },
    {
      values: TicketTypeSchema.shape.sales_status.options,
      read: async (it, _before, send) => (await send('GET', `/ticket-types/${idOf(it)}`)).body.data.sales_status,
    },
  ],
  unreachable: {
    'active archived': 'archived is what it is called when it is archived',
    'archived upcoming': 'an archived one is archived, whatever its dates',
    'archived on_sale': 'an archived one is archived, whatever its dates',
    'archived sold_out': 'an archived one is archived, whatever was sold',
    'archived ended': 'an archived one is archived, whatever its dates',
  },
  states,
  transitions: {
    'to active': setTo('active'),
    'to archived': setTo('archived'),
    'registering a guest': registering(),
    'registering a payer': registering({ payment_method: 'invoice' }),
  },
  table: {
    'active on_sale': { ...isActive, ...registers() },
    'active on_sale, with one left': { ...isActive, ...registers(1) },
    'active upcoming': {
      ...isActive,
      ...refusedFor('sales_not_started', { sales_start_at: 'ticket_type.sales_start_at' }),
    },
    'active ended': { ...isActive, ...refusedFor('sales_ended', { sales_end_at: 'ticket_type.sales_end_at' }) },
    'active sold_out': { ...isActive, ...refusedFor('sold_out') },
    'active sold_out, for the event is full': {
      ...isActive,
      ...registersNobody(refused('sold_out', { param: 'event_id' })),
    },
    'archived archived': { ...isArchived, ...refusedFor('ticket_type_archived') },
    'archived archived, of a cancelled event': {
      ...isArchived,
      ...registersNobody(refused('event_not_published', { param: 'event_id', details: { status: 'cancelled' } })),
    },
  },
})
