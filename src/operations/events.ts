// Events. SQL: supabase/schemas/20-events/.

import * as z from 'zod'
import { dryRun, dryRunFirst, effect, fieldsOf, ifVersions, noChange, notice, notify, readAgain } from './changes.ts'
import { currency, deleted, id, money, one, ownFields, timestamp, versioned } from './fields.ts'
import { count, currencyInput, integer, line, oneOf, ownInputs, paragraphs, timestampInput, webUrl } from './inputs.ts'
import { listOf, nextPage, paging, searchInput } from './lists.ts'
import { locales } from './locales.ts'
import { names, type Operation } from './operation.ts'

export const eventStatuses = ['draft', 'published', 'cancelled', 'completed'] as const
const intervals = ['hour', 'day', 'week'] as const
const phases = ['upcoming', 'ongoing', 'ended'] as const

export const EventSchema = z.strictObject({
  object: z.literal('event'),
  id: id('event'),
  name: z.string(),
  slug: z.string(),
  description: z.string().nullable(),
  status: z.enum(eventStatuses),
  phase: z.enum(phases).describe('The current time relative to starts_at and ends_at; of a draft always upcoming.'),
  starts_at: timestamp.nullable(),
  ends_at: timestamp.nullable(),
  timezone: z.string().describe('IANA time zone of the event.'),
  locale: z.enum(locales).describe('Language in which guests are written to.'),
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
  capacity: z.int().nullable().describe('Places over all ticket types; null: no limit.'),
  waiting_list_offer_hours: z.int().describe('For how many hours a place that the waiting list offers is held.'),
  currency,
  payment_due_days: z.int().nullable().describe('Days until an unpaid order expires; null: no deadline.'),
  published_at: timestamp.nullable(),
  cancelling_since: timestamp.nullable().describe('Set while a large event is yet to be cancelled, as was asked for.'),
  cancelled_at: timestamp.nullable(),
  completed_at: timestamp.nullable(),
  ...ownFields,
  ...versioned,
})

const eventEssentials = ['id', 'name', 'status', 'starts_at', 'ends_at', 'capacity']

export const listEvents = {
  name: 'list_events',
  title: 'List events',
  description: `Lists events of any status, newest first. ${nextPage}`,
  method: 'GET',
  path: '/events',
  scope: 'events:read',
  toolset: 'events',
  lean: [...eventEssentials, 'venue.name', 'venue.city'],
  input: z.strictObject({
    search: searchInput.optional().describe('Name, slug, venue or city.'),
    status: oneOf(eventStatuses).optional().describe('Only events with this status.'),
    phase: oneOf(phases).optional().describe('Drafts are upcoming.'),
    starts_after: timestampInput.optional().describe('Included: RFC 3339 with offset.'),
    starts_before: timestampInput.optional().describe('Not included.'),
    external_id: line(255).optional().describe('Only the event with this identifier of yours.'),
    sort: oneOf(['created_at', 'starts_at']).optional().describe('starts_at: earliest first.'),
    ...paging,
  }),
  output: listOf(EventSchema),
} satisfies Operation

export const getEvent = {
  name: 'get_event',
  title: 'Get an event',
  description: 'Returns one event with all its fields.',
  method: 'GET',
  path: '/events/{event_id}',
  scope: 'events:read',
  toolset: 'events',
  unlisted: true,
  input: z.strictObject({ event_id: id('event') }),
  output: one(EventSchema),
} satisfies Operation

const ticketCounts = {
  sold: z.int().describe('Tickets that hold a place: those to be paid included, cancelled ones not.'),
  available: z
    .int()
    .nullable()
    .describe('How many more can be issued; null: unlimited. In total, of active ticket types.'),
  pending_payment: z.int().describe('Of sold, those whose order is not paid yet.'),
  checked_in: z.int().describe('Of sold, those whose holder has arrived.'),
  inside: z.int().describe('Of checked_in, those whose holder did not leave by an exit scan, on any day.'),
  cancelled: z.int().describe('Tickets that were cancelled; they are not in sold.'),
}

export const EventSummarySchema = z.strictObject({
  object: z.literal('event_summary'),
  event_id: id('event'),
  tickets: z.strictObject(ticketCounts).describe('Over all ticket types.'),
  ticket_types: z
    .array(z.strictObject({ id: id('ticket type'), name: z.string(), ...ticketCounts }))
    .describe("The first 200, in the organiser's order."),
  check_in_points: z
    .array(
      z.strictObject({
        id: id('check-in point'),
        name: z.string(),
        expected: z.int().describe('Tickets that it admits: those that are not cancelled.'),
        arrived: z.int().describe('Of expected, those that came in, on any day.'),
        arrived_today: z.int().describe("Of arrived, those that came in today, in the event's time zone."),
        inside: z.int().describe('Of arrived (today, with once_per_day), those that did not leave by an exit scan.'),
      }),
    )
    .describe('Active ones, the oldest first.'),
  devices: z
    .array(
      z.strictObject({
        device: z.string().nullable().describe('As it was called then. null: it gave no name.'),
        check_in_point_id: id('check-in point').nullable().describe('null: the event as such.'),
        check_in_point: z.string().nullable().describe('Its name.'),
        entries: z.int().describe('Scans that let somebody in, without those undone.'),
        exits: z.int().describe('Scans that let somebody out, without those undone.'),
        rejected: z.int().describe('Scans that were refused.'),
        last_scan_at: timestamp,
      }),
    )
    .describe('Who scanned where: the 20 with most scans.'),
  devices_left_out: z.int().describe('How many more devices, each at a point, have scanned.'),
  revenue: z
    .strictObject({
      currency,
      due: money.describe('Still to be paid, in minor units.'),
      paid: money.describe('Sum of the payments that are not voided.'),
      refunded: money.describe('Of paid, what was returned.'),
      refundable: money.describe('Of paid, what is still to be returned.'),
    })
    .nullable()
    .describe('In the currency of the event. null: the key lacks orders:read.'),
  promo_codes: z
    .array(
      z.strictObject({
        id: id('promo code'),
        code: z.string(),
        times_redeemed: z.int().describe('Tickets that use it.'),
        max_redemptions: z.int().nullable(),
        discount: money.nullable().describe('Discount that these tickets got. null: the key lacks orders:read.'),
      }),
    )
    .describe('The 200 most used.'),
  ticket_emails: z
    .strictObject({ bounced: z.int(), failed: z.int() })
    .describe('Tickets whose e-mail did not arrive: list_attendees finds them by event_id and ticket_email_status.'),
  interval: z.enum(intervals),
  timezone: z.string().describe('IANA time zone of the event, in which hours, days and weeks begin.'),
  timeline: z
    .array(
      z.strictObject({
        starts_at: timestamp,
        registrations: z.int().describe('Tickets registered, also those cancelled since.'),
        ticket_types: z
          .array(z.strictObject({ id: id('ticket type'), name: z.string(), registrations: z.int() }))
          .describe('Of registrations: the 20 ticket types with most.'),
        arrivals: z.int().describe('People who came in, each once a day, when first on that day.'),
      }),
    )
    .describe('Hours, days or weeks (from Monday) in which something happened, oldest first: the newest 200.'),
  timeline_is_complete: z.boolean().describe('false: there are earlier ones.'),
})

export const getEventSummary = {
  name: 'get_event_summary',
  title: 'Get the figures of an event',
  description:
    'How an event is doing: tickets by type, also over time, money (with orders:read), arrivals by check-in point, scans by device, promo codes, bounces.',
  method: 'GET',
  path: '/events/{event_id}/summary',
  scope: 'events:read',
  toolset: 'events',
  lean: names(`
    * devices.device devices.check_in_point devices.entries devices.exits devices.rejected devices.last_scan_at
    timeline.starts_at timeline.registrations timeline.arrivals
    timeline.ticket_types.name timeline.ticket_types.registrations
  `),
  input: z.strictObject({
    event_id: id('event'),
    interval: oneOf(intervals).default('day').describe('Steps of the timeline.'),
  }),
  output: one(EventSummarySchema),
  heavy: true,
} satisfies Operation

/** Fields that can be set at creation and changed later. */
export const eventFields = {
  name: line(200).describe('Name of the event.'),
  slug: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,98}[a-z0-9])?$/, 'must be lower-case letters, digits and hyphens, at most 100')
    .describe('For URLs, unique.'),
  description: paragraphs(20_000).nullable().describe('Description of the event.'),
  starts_at: timestampInput.nullable().describe('RFC 3339 with offset.'),
  ends_at: timestampInput.nullable().describe('RFC 3339 with offset.'),
  timezone: line(100).describe('IANA time zone, such as Europe/Berlin.'),
  locale: oneOf(locales).describe('Language for guests.'),
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
    .describe('In a change, what is left out stays; null clears.'),
  online_url: webUrl.nullable().describe('URL of an online event.'),
  capacity: count(1).nullable().describe('Over all ticket types; null: no limit.'),
  waiting_list_offer_hours: integer(1, 720).describe('Default 24.'),
  currency: currencyInput.describe('ISO 4217; fixed by an order.'),
  payment_due_days: integer(1, 365).nullable().describe('Until an unpaid order expires; null: never.'),
  ...ownInputs,
}

export const createEvent = {
  name: 'create_event',
  title: 'Create an event',
  description:
    'Creates a draft. Only name is needed; default: timezone UTC, locale en, currency EUR. To publish it takes starts_at, ends_at and a ticket type.',
  method: 'POST',
  path: '/events',
  errors: ['already_exists'],
  scope: 'events:write',
  toolset: 'events',
  lean: [...eventEssentials, 'slug', 'timezone', 'currency'],
  input: z.strictObject(eventFields).partial().required({ name: true }),
  output: one(EventSchema),
  hints: { destructive: false, idempotent: false, openWorld: false },
} satisfies Operation

export const updateEvent = {
  name: 'update_event',
  title: 'Change an event',
  description: `Changes fields of an event. Only notify tells attendees: ask first. ${readAgain}`,
  method: 'PATCH',
  path: '/events/{event_id}',
  errors: ['capacity_below_sold', 'event_has_orders', 'already_exists'],
  scope: 'events:write',
  toolset: 'events',
  confirmed: 'by_effect',
  lean: eventEssentials,
  input: z
    .strictObject({
      event_id: id('event'),
      changes: z.strictObject(eventFields).partial().describe(fieldsOf('create_event')),
      ...notice,
      notify: notify.describe('Whom to e-mail in ten minutes what changed (name, dates, venue, online_url).'),
      if_version: ifVersions,
    })
    .refine(({ changes, notify, dry_run }) => Object.keys(changes).length > 0 || (notify ?? dry_run) !== undefined, {
      path: ['changes'],
      error: noChange,
    }),
  output: one(EventSchema).extend({ effect: effect.optional() }),
  hints: { destructive: true, idempotent: true, openWorld: true },
} satisfies Operation

export const publishEvent = {
  name: 'publish_event',
  title: 'Publish an event',
  description:
    'Opens a draft, or again a completed event, for registrations. On event_not_publishable add what param names: dates or a ticket type.',
  method: 'POST',
  path: '/events/{event_id}/publish',
  errors: ['invalid_transition', 'event_not_publishable', 'event_ended'],
  scope: 'events:write',
  toolset: 'events',
  lean: eventEssentials,
  input: z.strictObject({ event_id: id('event') }),
  output: one(EventSchema),
  hints: { destructive: false, idempotent: false, openWorld: true },
} satisfies Operation

export const unpublishEvent = {
  name: 'unpublish_event',
  title: 'Unpublish an event',
  description:
    'Returns a published event to draft. On event_has_orders close registration by sales_end_at of its ticket types, or complete_event. First call it with dry_run.',
  method: 'POST',
  path: '/events/{event_id}/unpublish',
  errors: ['invalid_transition', 'event_has_orders'],
  scope: 'events:write',
  toolset: 'events',
  unlisted: true,
  lean: eventEssentials,
  input: z.strictObject({ event_id: id('event'), dry_run: dryRun }),
  output: one(EventSchema).extend({ effect }),
  hints: { destructive: true, idempotent: false, openWorld: true },
} satisfies Operation

export const cancelEvent = {
  name: 'cancel_event',
  title: 'Cancel an event',
  description: `Cancels an event with all its orders and tickets, permanently; what was paid becomes refund_due. ${dryRunFirst}`,
  method: 'POST',
  path: '/events/{event_id}/cancel',
  errors: ['invalid_transition'],
  scope: 'events:write',
  toolset: 'events',
  confirmed: 'always',
  lean: [...eventEssentials, 'cancelling_since'],
  later: 'The event has more than 5,000 tickets, and will be cancelled within minutes.',
  input: z.strictObject({ event_id: id('event'), ...notice }),
  output: one(EventSchema).extend({ effect }),
  hints: { destructive: true, idempotent: false, openWorld: true },
} satisfies Operation

export const completeEvent = {
  name: 'complete_event',
  title: 'Complete an event',
  description:
    'Closes a published event that is over to registrations. Its waiting list ends, offers too, and nobody on it is told. Confirm with the person first; until ends_at publish_event reverts the rest.',
  method: 'POST',
  path: '/events/{event_id}/complete',
  errors: ['invalid_transition'],
  scope: 'events:write',
  toolset: 'events',
  confirmed: 'by_effect',
  lean: eventEssentials,
  input: z.strictObject({ event_id: id('event') }),
  output: one(EventSchema),
  hints: { destructive: true, idempotent: false, openWorld: true },
} satisfies Operation

export const deleteEvent = {
  name: 'delete_event',
  title: 'Delete an event',
  description:
    'Deletes a draft without orders, and all that was set up for it, permanently. Confirm with the person first.',
  method: 'DELETE',
  path: '/events/{event_id}',
  errors: ['in_use'],
  scope: 'events:write',
  toolset: 'events',
  unlisted: true,
  input: z.strictObject({ event_id: id('event') }),
  output: deleted('event', 'event'),
  hints: { destructive: true, idempotent: false, openWorld: true },
} satisfies Operation
