// Ticket types. SQL: supabase/schemas/30-ticket-types/.

import * as z from 'zod'
import { changesOf, fieldsOf, ifVersions, readAgain } from './changes.ts'
import { currency, id, money, one, ownFields, timestamp, versioned } from './fields.ts'
import { count, line, minorUnits, ownInputs, paragraphs, timestampInput } from './inputs.ts'
import { listOf, paging } from './lists.ts'
import { type Declared, names } from './operation.ts'

const visibilities = ['public', 'hidden'] as const
export const ticketTypeStatuses = ['active', 'archived'] as const

export const TicketTypeSchema = z.strictObject({
  object: z.literal('ticket_type'),
  id: id('ticket type'),
  event_id: id('event'),
  name: z.string(),
  description: z.string().nullable(),
  price: money,
  currency,
  quantity: z.int().nullable().describe('Number of tickets; null: unlimited.'),
  quantity_sold: z.int(),
  quantity_held: z.int().describe('Places held for waiting-list offers.'),
  quantity_available: z.int().nullable().describe("Tickets left, within the event's capacity; null: unlimited."),
  min_per_order: z.int(),
  max_per_order: z.int().nullable(),
  sales_start_at: timestamp.nullable(),
  sales_end_at: timestamp.nullable(),
  visibility: z.enum(visibilities),
  status: z.enum(ticketTypeStatuses),
  sales_status: z.enum(['upcoming', 'on_sale', 'sold_out', 'ended', 'archived']),
  position: z.int(),
  ...ownFields,
  ...versioned,
})

const ticketTypeEssentials = names(`
  id name price quantity quantity_sold quantity_available sales_status sales_start_at sales_end_at visibility
`)

export const listTicketTypes = {
  name: 'list_ticket_types',
  title: 'List ticket types',
  description: 'Lists ticket types of an event; those with sales_status on_sale can be issued.',
  method: 'GET',
  path: '/events/{event_id}/ticket-types',
  scope: 'events:read',
  lean: ticketTypeEssentials,
  input: z.strictObject({
    event_id: id('event'),
    ...paging,
    limit: paging.limit.unwrap().default(100).describe('Items on a page.'),
  }),
  output: listOf(TicketTypeSchema),
} satisfies Declared

export const getTicketType = {
  name: 'get_ticket_type',
  title: 'Get a ticket type',
  description: 'Returns one ticket type, with its availability.',
  method: 'GET',
  path: '/ticket-types/{ticket_type_id}',
  scope: 'events:read',
  unlisted: true,
  input: z.strictObject({ ticket_type_id: id('ticket type') }),
  output: one(TicketTypeSchema),
} satisfies Declared

/** Fields that can be set at creation and changed later. */
export const ticketTypeFields = {
  name: line(200).describe('Name of the ticket type.'),
  description: paragraphs(20_000).nullable().describe('What it includes.'),
  price: minorUnits(0, 100_000_000_000).describe('Minor units (cents); 0 is free.'),
  quantity: count(0).nullable().describe('null: unlimited.'),
  min_per_order: count(1).describe('Default 1.'),
  max_per_order: count(1).nullable().describe('null: no limit.'),
  sales_start_at: timestampInput.nullable().describe('null: when the event is published.'),
  sales_end_at: timestampInput.nullable().describe('Exclusive; null: when the event closes.'),
  visibility: z.enum(visibilities, 'must be public or hidden').describe('hidden: not public, but can be issued.'),
  position: count(0).describe('Position in the list, from 0.'),
  ...ownInputs,
}

export const createTicketType = {
  name: 'create_ticket_type',
  title: 'Create a ticket type',
  description:
    'Adds a ticket type to an event. Only name is required; without price and quantity it is free and unlimited.',
  method: 'POST',
  path: '/events/{event_id}/ticket-types',
  errors: ['already_exists'],
  scope: 'events:write',
  lean: ticketTypeEssentials,
  input: z
    .strictObject({ event_id: id('event'), ...ticketTypeFields })
    .partial()
    .required({ event_id: true, name: true }),
  output: one(TicketTypeSchema),
  hints: { destructive: false, idempotent: false, openWorld: false },
} satisfies Declared

export const updateTicketType = {
  name: 'update_ticket_type',
  title: 'Change a ticket type',
  description: `Changes a ticket type. status archived stops its sale; its tickets stay valid. New places are offered by e-mail to the waiting list. ${readAgain}`,
  method: 'PATCH',
  path: '/ticket-types/{ticket_type_id}',
  errors: ['quantity_below_sold', 'already_exists'],
  scope: 'events:write',
  lean: ticketTypeEssentials,
  input: z.strictObject({
    ticket_type_id: id('ticket type'),
    changes: changesOf({
      ...ticketTypeFields,
      status: z.enum(ticketTypeStatuses, 'must be active or archived'),
    }).describe(fieldsOf('create_ticket_type', ', and status')),
    if_version: ifVersions,
  }),
  output: one(TicketTypeSchema),
  hints: { destructive: true, idempotent: true, openWorld: true },
} satisfies Declared
