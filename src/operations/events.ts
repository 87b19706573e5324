// Events. SQL: supabase/schemas/09_events.sql and 10_event_operations.sql.

import * as z from 'zod'
import type { Operation } from '../operation.ts'
import {
  changesOf,
  control,
  count,
  currency,
  currencyInput,
  dryRun,
  effect,
  externalId,
  externalIdInput,
  id,
  ifVersions,
  line,
  listOf,
  metadata,
  metadataInput,
  one,
  paging,
  paragraphs,
  timestamp,
  timestampInput,
  version,
} from './fields.ts'

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
  version,
  created_at: timestamp,
  updated_at: timestamp,
})

export const listEvents = {
  name: 'list_events',
  title: 'List events',
  summary: 'Events of the organisation, newest first.',
  description:
    'Lists the events of the organisation, newest first, optionally only those with one status or with your own external_id. Use it to find an event_id. When has_more is true, call again with cursor set to next_cursor.',
  method: 'GET',
  path: '/events',
  scope: 'events:read',
  input: z.strictObject({
    status: z
      .enum(eventStatuses, `must be one of ${eventStatuses.join(', ')}`)
      .optional()
      .describe('Only events with this status.'),
    external_id: line(255).optional().describe('Only the event with this identifier of yours.'),
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

/** What can be set of an event, at creation and after. */
const eventFields = {
  name: line(200).describe('Name of the event.'),
  slug: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,98}[a-z0-9])?$/, 'must be lower-case letters, digits and hyphens, at most 100')
    .describe('Short name for addresses, unique within the organisation.'),
  description: paragraphs(20_000).nullable().describe('What it is about.'),
  starts_at: timestampInput.nullable().describe('When it starts: RFC 3339 with offset.'),
  ends_at: timestampInput.nullable().describe('When it ends, after starts_at: RFC 3339 with offset.'),
  timezone: line(100).describe('IANA time zone, such as Europe/Berlin.'),
  venue: z
    .strictObject({
      name: line(200).nullish(),
      address: line(500).nullish(),
      city: line(200).nullish(),
      postcode: line(20).nullish(),
      country: z
        .string()
        .regex(/^[A-Z]{2}$/, 'must be an ISO 3166-1 code of two capital letters')
        .nullish(),
    })
    .nullable()
    .describe('Where it is. In a change, members left out stay, null clears one, and null for venue clears all.'),
  online_url: line(2000, new RegExp(String.raw`^https?://[^\s${control}]+$`), 'must be an http or https URL')
    .nullable()
    .describe('Where it is online.'),
  capacity: count(1).nullable().describe('Places over all ticket types; null: no limit but theirs.'),
  currency: currencyInput.describe('ISO 4217; fixed once there is an order.'),
  external_id: externalIdInput,
  metadata: metadataInput,
}

export const createEvent = {
  name: 'create_event',
  title: 'Create an event',
  summary: 'Add an event, as a draft.',
  description:
    'Creates an event as a draft. Only the name is needed; slug is made from it, timezone defaults to UTC and currency to EUR. Before publish_event it needs starts_at and ends_at, and a ticket type (create_ticket_type).',
  method: 'POST',
  path: '/events',
  scope: 'events:write',
  input: z.strictObject(eventFields).partial().required({ name: true }),
  output: one(EventSchema),
  hints: { destructive: false, idempotent: false },
} satisfies Operation

export const updateEvent = {
  name: 'update_event',
  title: 'Change an event',
  summary: 'Change fields of an event; what is left out stays, null clears.',
  description:
    'Changes fields of an event. On capacity_below_sold ask for a higher number; on event_has_orders the currency is fixed; on version_mismatch read the event again. To change the status use publish_event, unpublish_event, cancel_event or complete_event.',
  method: 'PATCH',
  path: '/events/{event_id}',
  scope: 'events:write',
  input: z.strictObject({ event_id: id('event'), changes: changesOf(eventFields), if_version: ifVersions }),
  output: one(EventSchema),
  hints: { destructive: true, idempotent: true },
} satisfies Operation

export const publishEvent = {
  name: 'publish_event',
  title: 'Publish an event',
  summary: 'Open a draft for registrations.',
  description:
    'Opens a draft event for registrations. On event_not_publishable set what param names (dates with update_event, or a ticket type with create_ticket_type) and call again.',
  method: 'POST',
  path: '/events/{event_id}/publish',
  scope: 'events:write',
  input: z.strictObject({ event_id: id('event') }),
  output: one(EventSchema),
  hints: { destructive: false, idempotent: false },
} satisfies Operation

export const unpublishEvent = {
  name: 'unpublish_event',
  title: 'Unpublish an event',
  summary: 'Take an event back to draft while nobody has an order.',
  description:
    'Takes a published event back to draft. On event_has_orders it is too late: the event can only be cancelled. Try it first with dry_run.',
  method: 'POST',
  path: '/events/{event_id}/unpublish',
  scope: 'events:write',
  input: z.strictObject({ event_id: id('event'), dry_run: dryRun }),
  output: one(EventSchema).extend({ effect }),
  hints: { destructive: true, idempotent: false },
} satisfies Operation

export const cancelEvent = {
  name: 'cancel_event',
  title: 'Cancel an event',
  summary: 'Cancel an event with all its orders and tickets, for good.',
  description:
    'Cancels a published event for good, and with it all its orders and tickets; paid orders become refund_due. Call it with dry_run first and tell the person how many orders and attendees effect names; only then call it without.',
  method: 'POST',
  path: '/events/{event_id}/cancel',
  scope: 'events:write',
  input: z.strictObject({ event_id: id('event'), dry_run: dryRun }),
  output: one(EventSchema).extend({ effect }),
  hints: { destructive: true, idempotent: false },
} satisfies Operation

export const completeEvent = {
  name: 'complete_event',
  title: 'Complete an event',
  summary: 'Close an event: nobody can be registered any more.',
  description:
    'Closes a published event, normally once it is over: nobody can be registered any more. It cannot be reopened, so confirm with the person first.',
  method: 'POST',
  path: '/events/{event_id}/complete',
  scope: 'events:write',
  input: z.strictObject({ event_id: id('event') }),
  output: one(EventSchema),
  hints: { destructive: true, idempotent: false },
} satisfies Operation
