// Check-in points: gates, days and workshops of an event, and the list that a scanner at one of them works from. SQL:
// supabase/schemas/80-check-ins/points.sql and 80-check-ins/door-list.sql.

import * as z from 'zod'
import { attendeeStatuses } from './attendees.ts'
import { changesOf, ifVersions, readAgain } from './changes.ts'
import { eventStatuses } from './events.ts'
import { answersAtDoor, currency, deleted, id, money, one, timestamp, versioned } from './fields.ts'
import { line, oneOf, ticketTypeIds, timestampInput } from './inputs.ts'
import { listOf, paging } from './lists.ts'
import type { Declared } from './operation.ts'

const admissions = ['once', 'once_per_day', 're_entry'] as const
const statuses = ['active', 'archived'] as const

export const CheckInPointSchema = z.strictObject({
  object: z.literal('check_in_point'),
  id: id('check-in point'),
  event_id: id('event'),
  name: z.string(),
  ticket_type_ids: z.array(id('ticket type')).describe('Admitted ticket types; empty: all.'),
  opens_at: timestamp.nullable().describe('null: always open before closes_at.'),
  closes_at: timestamp.nullable().describe('null: no closing time.'),
  admission: z
    .enum(admissions)
    .describe("once, once_per_day (in the event's time zone), or re_entry: an exit lets the ticket in again."),
  status: z.enum(statuses),
  ...versioned,
})

const pointEssentials = ['id', 'name', 'admission', 'opens_at', 'closes_at', 'ticket_type_ids', 'status']

export const listCheckInPoints = {
  name: 'list_check_in_points',
  title: 'List check-in points',
  description: 'Lists the gates, days and workshops of an event.',
  method: 'GET',
  path: '/events/{event_id}/check-in-points',
  scope: 'events:read',
  unlisted: true,
  lean: pointEssentials,
  input: z.strictObject({ event_id: id('event'), ...paging }),
  output: listOf(CheckInPointSchema),
} satisfies Declared

export const getCheckInPoint = {
  name: 'get_check_in_point',
  title: 'Get a check-in point',
  description: 'Returns one check-in point; list_check_in_points gives its id.',
  method: 'GET',
  path: '/check-in-points/{check_in_point_id}',
  scope: 'events:read',
  unlisted: true,
  input: z.strictObject({ check_in_point_id: id('check-in point') }),
  output: one(CheckInPointSchema),
} satisfies Declared

/** Fields that can be set at creation and changed later. */
export const pointFields = {
  name: line(200).describe('Such as Main gate, Saturday or a workshop.'),
  ticket_type_ids: ticketTypeIds.describe('Admitted ticket types; empty: all.'),
  opens_at: timestampInput.nullable().describe('Earlier scans are rejected: RFC 3339 with offset.'),
  closes_at: timestampInput.nullable().describe('Scans from this time on are rejected.'),
  admission: oneOf(admissions).describe('Default: once. re_entry: after an exit scan.'),
}

export const createCheckInPoint = {
  name: 'create_check_in_point',
  title: 'Create a check-in point',
  description:
    'Adds a check-in point to an event: a gate, a day or a workshop. Only name is needed: it admits every ticket once, at any time. For a door over several days, use one point with once_per_day.',
  method: 'POST',
  path: '/events/{event_id}/check-in-points',
  scope: 'events:write',
  unlisted: true,
  lean: pointEssentials,
  input: z
    .strictObject({ event_id: id('event'), ...pointFields })
    .partial()
    .required({ event_id: true, name: true }),
  output: one(CheckInPointSchema),
  hints: { destructive: false, idempotent: false, openWorld: false },
} satisfies Declared

export const updateCheckInPoint = {
  name: 'update_check_in_point',
  title: 'Change a check-in point',
  description: `Changes a check-in point; status archived closes it permanently: confirm with the person. On in_use it has scans, which fix its admission: create another. ${readAgain}`,
  method: 'PATCH',
  path: '/check-in-points/{check_in_point_id}',
  errors: ['in_use'],
  scope: 'events:write',
  unlisted: true,
  lean: pointEssentials,
  input: z.strictObject({
    check_in_point_id: id('check-in point'),
    changes: changesOf({ ...pointFields, status: z.enum(statuses, 'must be active or archived') }),
    if_version: ifVersions,
  }),
  output: one(CheckInPointSchema),
  hints: { destructive: true, idempotent: true, openWorld: false },
} satisfies Declared

export const deleteCheckInPoint = {
  name: 'delete_check_in_point',
  title: 'Delete a check-in point',
  description: 'Deletes a check-in point without scans. On in_use archive it with update_check_in_point.',
  method: 'DELETE',
  path: '/check-in-points/{check_in_point_id}',
  errors: ['in_use'],
  scope: 'events:write',
  unlisted: true,
  input: z.strictObject({ check_in_point_id: id('check-in point') }),
  output: deleted('check_in_point', 'check-in point'),
  hints: { destructive: true, idempotent: false, openWorld: false },
} satisfies Declared

const DoorTicketSchema = z.strictObject({
  attendee_id: id('attendee'),
  code_hash: z
    .string()
    .describe(
      'SHA-256 of the salt followed by the ticket code (upper case, no spaces or hyphens), in base64url without padding.',
    ),
  name: z.string(),
  company: z.string().nullable(),
  ticket_type_id: id('ticket type'),
  status: z.enum(attendeeStatuses),
  reference: z.string().describe('Reference of the order, for search.'),
  order: z
    .strictObject({ id: id('order'), amount_due: money, currency })
    .nullable()
    .describe('Amount due for the order of an unpaid ticket; null for keys without orders:write.'),
  entries: z
    .array(
      z.strictObject({
        check_in_point_id: id('check-in point').nullable().describe('null: the whole event.'),
        scanned_at: timestamp,
        exited_at: timestamp.nullable().describe('null: still inside.'),
        day: z.string().nullable().describe('At a point with once_per_day, the day it counts for: YYYY-MM-DD.'),
        check_in_id: id('check-in').describe('The id for undo_check_in.'),
      }),
    )
    .describe('Accepted and not undone; the latest one for the whole event and at a point with re_entry.'),
  answers: answersAtDoor,
})

export const DoorListSchema = z.strictObject({
  object: z.literal('door_list'),
  event: z.strictObject({
    id: id('event'),
    name: z.string(),
    status: z.enum(eventStatuses),
    starts_at: timestamp.nullable(),
    ends_at: timestamp.nullable(),
    timezone: z.string(),
    accent_colour: z.string().nullable().describe('Colour of the organisation, such as #26306b, or null.'),
    livemode: z.boolean().describe('false: of a test organisation, whose ticket codes begin TEST-.'),
  }),
  server_time: timestamp,
  salt: z.string().describe('Salt of code_hash; the same for each event and key.'),
  complete: z.boolean().describe('true: a list from the start, which replaces all known tickets. false: changes.'),
  tickets_total: z
    .int()
    .describe('Number of tickets of the event. If you know more, read the list again without a cursor.'),
  points: z.array(CheckInPointSchema).describe('All check-in points of the event, archived ones included.'),
  ticket_types: z.array(z.strictObject({ id: id('ticket type'), name: z.string() })),
  tickets: z.array(DoorTicketSchema).describe('At most 1,000. Each replaces your data of its ticket.'),
  has_more: z.boolean().describe('true: send next_cursor at once. false: send it later for changes.'),
  next_cursor: z.string(),
})

export const getDoorList = {
  name: 'get_door_list',
  title: 'Get the door list',
  description: 'Tickets of an event for an offline scanner, with hashed codes, or changes since a cursor.',
  method: 'GET',
  path: '/events/{event_id}/door-list',
  scope: 'checkin:write',
  mcp: false,
  compressed: true,
  input: z.strictObject({
    event_id: id('event'),
    cursor: paging.cursor.describe('next_cursor of an earlier answer: the rest, or changes since.'),
  }),
  output: one(DoorListSchema),
} satisfies Declared
