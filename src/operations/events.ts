// Events and their ticket types. SQL: supabase/schemas/04_events.sql and 05_ticket_types.sql.

import * as z from 'zod'
import type { Operation } from '../operation.ts'
import { currency, externalId, id, listOf, metadata, money, one, paging, timestamp } from './fields.ts'

export const eventStatuses = ['draft', 'published', 'cancelled', 'completed'] as const

export const EventSchema = z.strictObject({
  object: z.literal('event'),
  id: id('event'),
  name: z.string(),
  slug: z.string(),
  description: z.string().nullable(),
  status: z.enum(eventStatuses),
  phase: z.enum(['upcoming', 'ongoing', 'ended']).describe('Where the clock stands between starts_at and ends_at.'),
  starts_at: timestamp.nullable(),
  ends_at: timestamp.nullable(),
  timezone: z.string().describe('IANA time zone the event is held in.'),
  venue: z
    .strictObject({
      name: z.string().nullable(),
      address: z.string().nullable(),
      city: z.string().nullable(),
      postcode: z.string().nullable(),
      country: z.string().nullable().describe('ISO 3166-1 alpha-2.'),
    })
    .nullable(),
  online_url: z.string().nullable(),
  capacity: z.int().nullable().describe('Places over all ticket types; null is no limit but theirs.'),
  currency,
  published_at: timestamp.nullable(),
  cancelled_at: timestamp.nullable(),
  completed_at: timestamp.nullable(),
  external_id: externalId,
  metadata,
  created_at: timestamp,
  updated_at: timestamp,
})

export const TicketTypeSchema = z.strictObject({
  object: z.literal('ticket_type'),
  id: id('ticket type'),
  event_id: id('event'),
  name: z.string(),
  description: z.string().nullable(),
  price: money,
  currency,
  quantity: z.int().nullable().describe('How many there are; null is unlimited.'),
  quantity_sold: z.int(),
  quantity_available: z
    .int()
    .nullable()
    .describe("What is left, the event's own capacity counted in; null is unlimited."),
  min_per_order: z.int(),
  max_per_order: z.int(),
  sales_start_at: timestamp.nullable(),
  sales_end_at: timestamp.nullable(),
  visibility: z.enum(['public', 'hidden']),
  status: z.enum(['active', 'archived']),
  sales_status: z.enum(['upcoming', 'on_sale', 'sold_out', 'ended', 'archived']),
  position: z.int(),
  external_id: externalId,
  metadata,
  created_at: timestamp,
  updated_at: timestamp,
})

export const listEvents = {
  name: 'list_events',
  title: 'List events',
  summary: 'Events of the organisation, newest first.',
  description:
    'Lists the events of the organisation, newest first, optionally only those with one status. Use it to find an event_id. When has_more is true, call again with cursor set to next_cursor.',
  method: 'GET',
  path: '/events',
  scope: 'events:read',
  input: z.strictObject({
    status: z
      .enum(eventStatuses, `must be one of ${eventStatuses.join(', ')}`)
      .optional()
      .describe('Only events with this status.'),
    ...paging,
  }),
  output: listOf(EventSchema),
} satisfies Operation

export const getEvent = {
  name: 'get_event',
  title: 'Get an event',
  summary: 'One event.',
  description: 'Reads one event by its identifier. On not_found, find the identifier with list_events.',
  method: 'GET',
  path: '/events/{event_id}',
  scope: 'events:read',
  input: z.strictObject({ event_id: id('event') }),
  output: one(EventSchema),
} satisfies Operation

export const listTicketTypes = {
  name: 'list_ticket_types',
  title: 'List ticket types',
  summary: 'All ticket types of an event, with what is left of each.',
  description:
    'Lists all ticket types of an event, hidden and archived ones too, in the order the organiser gave them. Use it to find a ticket_type_id before register_attendee: sales_status on_sale means that it can be issued now, and quantity_available says how many are left (null: unlimited).',
  method: 'GET',
  path: '/events/{event_id}/ticket-types',
  scope: 'events:read',
  input: z.strictObject({ event_id: id('event') }),
  output: listOf(TicketTypeSchema),
} satisfies Operation
