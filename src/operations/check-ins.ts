// The door. SQL: supabase/schemas/23_check_ins.sql and 24_check_in_operations.sql.

import * as z from 'zod'
import type { Operation } from '../operation.ts'
import { id, line, listOf, one, paging, timestamp, timestampInput } from './fields.ts'

export const checkInReasons = [
  'not_found',
  'wrong_event',
  'already_checked_in',
  'cancelled',
  'unpaid',
  'event_cancelled',
] as const

const checkInResults = ['accepted', 'rejected'] as const

export const CheckInSchema = z.strictObject({
  object: z.literal('check_in'),
  id: id('check-in'),
  event_id: id('event'),
  result: z.enum(checkInResults),
  reason: z.enum(checkInReasons).nullable(),
  attendee: z
    .strictObject({
      object: z.literal('attendee'),
      id: id('attendee'),
      event_id: id('event'),
      name: z.string(),
      company: z.string().nullable(),
      status: z.enum(['active', 'awaiting_payment', 'cancelled']),
      ticket_type: z.strictObject({ object: z.literal('ticket_type'), id: id('ticket type'), name: z.string() }),
      checked_in_at: timestamp.nullable().describe('When they came in.'),
    })
    .nullable()
    .describe('Who the ticket is for; null when no ticket has the code.'),
  device: z.string().nullable(),
  scan_id: z.string().nullable().describe('What an offline scanner calls the scan.'),
  scanned_at: timestamp,
  undone_at: timestamp.nullable(),
  created_at: timestamp,
  updated_at: timestamp,
})

export const checkIn = {
  name: 'check_in',
  title: 'Check a ticket in',
  summary: 'Let a person in by the code of their ticket, exactly once.',
  description:
    'Checks a person in at an event by the code read from their ticket. Only a successful answer lets them in. Every refusal is logged and says who the ticket is for: already_checked_in (details say when they came in first), wrong_event, cancelled, unpaid, event_cancelled, and not_found when no ticket has this code. Never call it to look a ticket up: a success counts as an entry (undo_check_in takes it back).',
  method: 'POST',
  path: '/check-ins',
  scope: 'checkin:write',
  input: z.strictObject({
    event_id: id('event at which the person is checked in'),
    code: line(200).describe('Ticket code scanned from the QR code; case, blanks and hyphens do not matter.'),
    device: line(100).nullish().describe('Which scanner or gate, for the log.'),
  }),
  output: one(CheckInSchema),
  hints: { destructive: false, idempotent: false },
} satisfies Operation

export const undoCheckIn = {
  name: 'undo_check_in',
  title: 'Undo a check-in',
  summary: 'Take an accepted check-in back, so that the ticket can be scanned again.',
  description:
    'Takes an accepted check-in back, by the id that check_in answered, so that the ticket can be scanned again. check_in_not_accepted: the scan was rejected, there is nothing to undo. check_in_already_undone: it was undone before.',
  method: 'POST',
  path: '/check-ins/{check_in_id}/undo',
  scope: 'checkin:write',
  input: z.strictObject({ check_in_id: id('check-in') }),
  output: one(CheckInSchema),
  hints: { destructive: true, idempotent: false },
} satisfies Operation

const scanIds = (scans: { scan_id: string }[]) => new Set(scans.map(({ scan_id }) => scan_id))

export const checkInBatch = {
  name: 'check_in_batch',
  title: 'Upload offline scans',
  summary: 'Upload scans made offline: a verdict each, each counted once.',
  description:
    'Uploads up to 500 scans of a scanner that was offline. They are judged in the order of scanned_at, and each verdict is a check-in, accepted or rejected with a reason. Sending the same scan_id again answers its first verdict, so a batch may be repeated until it arrives. For a scan at an open door use check_in.',
  method: 'POST',
  path: '/check-ins/batch',
  scope: 'checkin:write',
  input: z.strictObject({
    event_id: id('event at which the scans were made'),
    scans: z
      .array(
        z.strictObject({
          scan_id: line(100).describe("The scanner's own identifier of the scan, unique within the event."),
          code: line(200).describe('Ticket code scanned from the QR code.'),
          scanned_at: timestampInput.describe('When it was scanned: RFC 3339 with offset.'),
          device: line(100).nullish().describe('Which scanner or gate, for the log.'),
        }),
        'must be a list of scans',
      )
      .min(1, 'must hold at least 1 scan')
      .max(500, 'must hold at most 500 scans')
      .refine((scans) => scanIds(scans).size === scans.length, 'must hold each scan_id once')
      .describe('The scans, in any order.'),
  }),
  output: one(
    z.strictObject({
      object: z.literal('check_in_batch'),
      event_id: id('event'),
      accepted: z.int(),
      rejected: z.int(),
      results: z
        .array(
          z.strictObject({
            scan_id: z.string(),
            replayed: z.boolean().describe('The scan was known already; this is its first verdict.'),
            check_in: CheckInSchema,
          }),
        )
        .describe('In the order of scanned_at.'),
    }),
  ),
  hints: { destructive: false, idempotent: true },
} satisfies Operation

export const listCheckIns = {
  name: 'list_check_ins',
  title: 'List check-ins',
  summary: 'The log of the door, newest first, rejected scans included.',
  description:
    'Lists scans, newest first, rejected ones too. Use attendee_id to see what happened to one ticket, or result rejected to see who was turned away and why. When has_more is true, call again with cursor set to next_cursor.',
  method: 'GET',
  path: '/check-ins',
  scope: 'attendees:read',
  input: z.strictObject({
    event_id: id('event').optional(),
    attendee_id: id('attendee').optional(),
    result: z
      .enum(checkInResults, `must be one of ${checkInResults.join(', ')}`)
      .optional()
      .describe('Only scans with this result.'),
    ...paging,
  }),
  output: listOf(CheckInSchema),
} satisfies Operation
