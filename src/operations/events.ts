// Events. SQL: supabase/schemas/20-events/.

import * as z from 'zod'
import { dryRun, dryRunFirst, effect, fieldsOf, ifVersions, noChange, notice, notify, readAgain } from './changes.ts'
import { currency, deleted, id, money, one, ownFields, timestamp, versioned } from './fields.ts'
import {
  count,
  currencyInput,
  integer,
  line,
  oneOf,
  ownInputs,
  paragraphs,
  prose,
  timestampInput,
  webUrl,
} from './inputs.ts'
import { atOrAfter, before, listOf, nextPage, paging, searchInput } from './lists.ts'
import { locales } from './locales.ts'
import { type Declared, names } from './operation.ts'

export const eventStatuses = ['draft', 'published', 'cancelled', 'completed'] as const
const intervals = ['hour', 'day', 'week'] as const
/** What an event may let its guests do on the page of their ticket. */
export const guestActs = ['correct', 'answer', 'give_back', 'pass_on'] as const
/** Where the page to register on can be found. */
const registrationPages = ['off', 'by_link', 'public'] as const
const phases = ['upcoming', 'ongoing', 'ended'] as const

export const EventSchema = z.strictObject({
  object: z.literal('event'),
  id: id('event'),
  name: z.string(),
  slug: z.string(),
  description: z.string().nullable(),
  guest_notes: z
    .partialRecord(z.enum(locales), z.string())
    .describe("The organiser's own words for guests by language, in Markdown, in ticket e-mails and on their pages."),
  status: z.enum(eventStatuses),
  phase: z.enum(phases).describe('The current time relative to starts_at and ends_at; always upcoming for a draft.'),
  starts_at: timestamp.nullable(),
  ends_at: timestamp.nullable(),
  timezone: z.string().describe('IANA time zone of the event.'),
  locale: z.enum(locales).describe('Language of e-mails and pages for guests.'),
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
  waiting_list_offer_hours: z.int().describe('Hours for which a waiting-list offer holds a place.'),
  guests_may: z
    .array(z.enum(guestActs))
    .describe(
      'What guests may do by the link in their e-mails: correct (name, company), answer (change answers), give_back, pass_on.',
    ),
  guests_may_until: timestamp
    .nullable()
    .describe('When that ends; null: give_back and pass_on at starts_at, the others at ends_at.'),
  registration_page: z
    .enum(registrationPages)
    .describe('Page where guests register themselves; by_link: not listed by search engines.'),
  registration_url: z.string().nullable().describe('Its address; null: off.'),
  currency,
  payment_due_days: z.int().nullable().describe('Days until an unpaid order expires; null: no deadline.'),
  published_at: timestamp.nullable(),
  cancelling_since: timestamp.nullable().describe('Set while the requested cancellation of a large event is pending.'),
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
  lean: [...eventEssentials, 'venue.name', 'venue.city'],
  input: z.strictObject({
    search: searchInput.optional().describe('Name, slug, venue or city.'),
    status: oneOf(eventStatuses).optional().describe('Only events with this status.'),
    phase: oneOf(phases).optional().describe('Drafts are upcoming.'),
    starts_after: atOrAfter,
    starts_before: before,
    external_id: line(255).optional().describe('Only the event with this external_id.'),
    sort: oneOf(['created_at', 'starts_at']).optional().describe('starts_at: earliest first.'),
    ...paging,
  }),
  output: listOf(EventSchema),
} satisfies Declared

export const getEvent = {
  name: 'get_event',
  title: 'Get an event',
  description: 'Returns one event with all its fields.',
  method: 'GET',
  path: '/events/{event_id}',
  scope: 'events:read',
  unlisted: true,
  input: z.strictObject({ event_id: id('event') }),
  output: one(EventSchema),
} satisfies Declared

const ticketCounts = {
  sold: z.int().describe('Tickets that take a place, unpaid ones included and cancelled ones not.'),
  available: z
    .int()
    .nullable()
    .describe('How many more can be issued; null: unlimited. The total counts active ticket types.'),
  pending_payment: z.int().describe('Sold tickets whose order is unpaid.'),
  checked_in: z.int().describe('Sold tickets whose holder has arrived.'),
  inside: z.int().describe('Checked-in tickets without a later exit scan, on any day.'),
  cancelled: z.int().describe('Cancelled tickets, which sold leaves out.'),
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
        expected: z.int().describe('Tickets it admits, without cancelled ones.'),
        arrived: z.int().describe('Expected tickets that arrived on any day.'),
        arrived_today: z.int().describe("Arrivals today, in the event's time zone."),
        inside: z.int().describe('Arrivals (today, with once_per_day) without a later exit scan.'),
      }),
    )
    .describe('Active ones, oldest first.'),
  devices: z
    .array(
      z.strictObject({
        device: z.string().nullable().describe('Name at the time. null: it gave no name.'),
        check_in_point_id: id('check-in point').nullable().describe('null: the whole event.'),
        check_in_point: z.string().nullable().describe('Its name.'),
        entries: z.int().describe('Entries, without undone ones.'),
        exits: z.int().describe('Exits, without undone ones.'),
        rejected: z.int().describe('Rejected scans.'),
        last_scan_at: timestamp,
      }),
    )
    .describe('Devices by check-in point: the 20 with most scans.'),
  devices_left_out: z.int().describe('Number of other devices and points.'),
  revenue: z
    .strictObject({
      currency,
      due: money.describe('Amount due, in minor units.'),
      paid: money.describe('Sum of the payments that are not voided.'),
      refunded: money.describe('Money returned.'),
      refundable: money.describe('Money still to be returned.'),
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
        discount: money.nullable().describe('Total discount of these tickets. null: the key lacks orders:read.'),
      }),
    )
    .describe('The 200 most used.'),
  questions: z
    .array(
      z.strictObject({
        id: id('question'),
        key: z.string(),
        label: z.string(),
        answered: z.int(),
        options: z.array(z.strictObject({ key: z.string(), label: z.string(), answered: z.int() })).nullable(),
      }),
    )
    .describe(
      'Questions in use, with tickets that answered, by choice where there are choices; without cancelled tickets.',
    ),
  ticket_emails: z
    .strictObject({ bounced: z.int(), failed: z.int() })
    .describe('Tickets whose e-mail did not arrive: list_attendees finds them by event_id and ticket_email_status.'),
  interval: z.enum(intervals),
  timezone: z.string().describe('IANA time zone of the event, for the start of hours, days and weeks.'),
  timeline: z
    .array(
      z.strictObject({
        starts_at: timestamp,
        registrations: z.int().describe('Tickets registered, those cancelled since included.'),
        ticket_types: z
          .array(z.strictObject({ id: id('ticket type'), name: z.string(), registrations: z.int() }))
          .describe('Registrations by ticket type: the 20 with most.'),
        arrivals: z.int().describe('People who arrived, each once a day at their first entry.'),
      }),
    )
    .describe('The newest 200 hours, days or weeks (from Monday) with activity, oldest first.'),
  timeline_is_complete: z.boolean().describe('false: there are earlier ones.'),
})

export const getEventSummary = {
  name: 'get_event_summary',
  title: 'Get the figures of an event',
  description:
    'Figures of an event: tickets by type and over time, money (with orders:read), arrivals by check-in point, scans by device, promo codes, bounces.',
  method: 'GET',
  path: '/events/{event_id}/summary',
  scope: 'events:read',
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
} satisfies Declared

/** Fields that can be set at creation and changed later. */
export const eventFields = {
  name: line(200).describe('Name of the event.'),
  slug: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,98}[a-z0-9])?$/, 'must be lower-case letters, digits and hyphens, at most 100')
    .describe('For URLs, unique.'),
  description: paragraphs(20_000).nullable().describe('Description of the event.'),
  guest_notes: z
    .partialRecord(oneOf(locales), prose(5000))
    .nullable()
    .describe('Your own words for guests by language, in Markdown: {"en":"Bring **ID**."}.'),
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
    .describe('In a change, missing members stay; null clears.'),
  online_url: webUrl.nullable().describe('URL of an online event.'),
  capacity: count(1).nullable().describe('Over all ticket types; null: no limit.'),
  waiting_list_offer_hours: integer(1, 720).describe('Default 24.'),
  guests_may: z.array(oneOf(guestActs)).describe('What guests may do themselves.'),
  guests_may_until: timestampInput.nullable().describe('null: until the event.'),
  registration_page: oneOf(registrationPages).describe('Page to register on: registration_url.'),
  currency: currencyInput.describe('ISO 4217; fixed once there is an order.'),
  payment_due_days: integer(1, 365).nullable().describe('Until an unpaid order expires; null: never.'),
  ...ownInputs,
}

export const createEvent = {
  name: 'create_event',
  title: 'Create an event',
  description:
    'Creates a draft. Only name is required; defaults: timezone UTC, locale en, currency EUR. Publishing needs starts_at, ends_at and a ticket type.',
  method: 'POST',
  path: '/events',
  errors: ['already_exists'],
  scope: 'events:write',
  lean: [...eventEssentials, 'slug', 'timezone', 'currency', 'registration_url'],
  input: z.strictObject(eventFields).partial().required({ name: true }),
  output: one(EventSchema),
  hints: { destructive: false, idempotent: false, openWorld: false },
} satisfies Declared

export const updateEvent = {
  name: 'update_event',
  title: 'Change an event',
  description: `Changes fields of an event. Only notify e-mails attendees: ask first. ${readAgain}`,
  method: 'PATCH',
  path: '/events/{event_id}',
  errors: ['capacity_below_sold', 'event_has_orders', 'already_exists'],
  scope: 'events:write',
  confirmed: 'by_effect',
  lean: [...eventEssentials, 'registration_url'],
  input: z
    .strictObject({
      event_id: id('event'),
      changes: z.strictObject(eventFields).partial().describe(fieldsOf('create_event')),
      ...notice,
      notify: notify.describe('Who is e-mailed in ten minutes about changes of name, dates, venue or online_url.'),
      if_version: ifVersions,
    })
    .refine(({ changes, notify, dry_run }) => Object.keys(changes).length > 0 || (notify ?? dry_run) !== undefined, {
      path: ['changes'],
      error: noChange,
    }),
  output: one(EventSchema).extend({ effect: effect.optional() }),
  hints: { destructive: true, idempotent: true, openWorld: true },
} satisfies Declared

export const publishEvent = {
  name: 'publish_event',
  title: 'Publish an event',
  description:
    'Opens a draft or a completed event for registrations. On event_not_publishable add the dates or the ticket type that param names.',
  method: 'POST',
  path: '/events/{event_id}/publish',
  errors: ['invalid_transition', 'event_not_publishable', 'event_ended'],
  scope: 'events:write',
  lean: [...eventEssentials, 'registration_url'],
  input: z.strictObject({ event_id: id('event') }),
  output: one(EventSchema),
  hints: { destructive: false, idempotent: false, openWorld: true },
} satisfies Declared

export const unpublishEvent = {
  name: 'unpublish_event',
  title: 'Unpublish an event',
  description:
    'Returns a published event to draft. On event_has_orders close registration with sales_end_at of its ticket types, or with complete_event. Call it with dry_run first.',
  method: 'POST',
  path: '/events/{event_id}/unpublish',
  errors: ['invalid_transition', 'event_has_orders'],
  scope: 'events:write',
  unlisted: true,
  lean: eventEssentials,
  input: z.strictObject({ event_id: id('event'), dry_run: dryRun }),
  output: one(EventSchema).extend({ effect }),
  hints: { destructive: true, idempotent: false, openWorld: true },
} satisfies Declared

export const cancelEvent = {
  name: 'cancel_event',
  title: 'Cancel an event',
  description: `Cancels an event with all its orders and tickets permanently; paid money becomes refund_due. ${dryRunFirst}`,
  method: 'POST',
  path: '/events/{event_id}/cancel',
  errors: ['invalid_transition'],
  scope: 'events:write',
  confirmed: 'always',
  lean: [...eventEssentials, 'cancelling_since'],
  later: 'The event has more than 5,000 tickets and will be cancelled within minutes.',
  input: z.strictObject({ event_id: id('event'), ...notice }),
  output: one(EventSchema).extend({ effect }),
  hints: { destructive: true, idempotent: false, openWorld: true },
} satisfies Declared

export const completeEvent = {
  name: 'complete_event',
  title: 'Complete an event',
  description:
    'Closes a published event to registrations. Its waiting list and offers end without an e-mail. Confirm with the person first; until ends_at publish_event reopens the event.',
  method: 'POST',
  path: '/events/{event_id}/complete',
  errors: ['invalid_transition'],
  scope: 'events:write',
  confirmed: 'by_effect',
  lean: eventEssentials,
  input: z.strictObject({ event_id: id('event') }),
  output: one(EventSchema),
  hints: { destructive: true, idempotent: false, openWorld: true },
} satisfies Declared

export const deleteEvent = {
  name: 'delete_event',
  title: 'Delete an event',
  description: 'Deletes a draft without orders, with all of its set-up, permanently. Confirm with the person first.',
  method: 'DELETE',
  path: '/events/{event_id}',
  errors: ['in_use'],
  scope: 'events:write',
  unlisted: true,
  input: z.strictObject({ event_id: id('event') }),
  output: deleted('event', 'event'),
  hints: { destructive: true, idempotent: false, openWorld: true },
} satisfies Declared
