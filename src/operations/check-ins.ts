// Check-ins: scans of tickets at the door. SQL: supabase/schemas/80-check-ins/.

import * as z from 'zod'
import { attendeeStatuses } from './attendees.ts'
import { answersAtDoor, id, one, timestamp } from './fields.ts'
import { flag, integer, line, oneOf, oneRequired, onlyOne, timestampInput } from './inputs.ts'
import { itemsOnAPage, listOf, nextPage, paging, searchInput } from './lists.ts'
import { type Declared, names } from './operation.ts'

const refusals = [
  'not_found',
  'wrong_event',
  'already_checked_in',
  'cancelled',
  'unpaid',
  'event_cancelled',
  'not_admitted_here',
  'point_closed',
  'not_inside',
] as const

/** `turned_away` is a verdict of uploaded scans alone, and no error. */
export const checkInReasons = [...refusals, 'turned_away'] as const

export const directions = ['entry', 'exit'] as const
export const checkInResults = ['accepted', 'rejected'] as const

/** An attendee as the door sees them: without e-mail address and ticket code. */
export const DoorAttendeeSchema = z.strictObject({
  object: z.literal('door_attendee'),
  id: id('attendee'),
  event_id: id('event'),
  name: z.string(),
  company: z.string().nullable(),
  status: z.enum(attendeeStatuses),
  ticket_type: z.strictObject({ object: z.literal('ticket_type'), id: id('ticket type'), name: z.string() }),
  checked_in_at: timestamp.nullable().describe('First check-in at any point.'),
  answers: answersAtDoor,
})

export const CheckInSchema = z.strictObject({
  object: z.literal('check_in'),
  id: id('check-in'),
  event_id: id('event'),
  result: z.enum(checkInResults),
  reason: z.enum(checkInReasons).nullable(),
  direction: z.enum(directions),
  check_in_point_id: id('check-in point').nullable().describe('Where it was scanned; null: the whole event.'),
  admitted: z.boolean().nullable().describe('Whether an offline scanner let the person in.'),
  earlier: z
    .strictObject({ id: id('check-in'), scanned_at: timestamp, device: z.string().nullable() })
    .nullable()
    .describe('For already_checked_in: the entry that counts. For an exit: the entry it ends.'),
  exited_at: timestamp.nullable().describe('For an entry: when an exit scan ended it.'),
  attendee: DoorAttendeeSchema.nullable().describe('The holder of the ticket; null when no ticket was found.'),
  device: z.string().nullable(),
  scan_id: z.string().nullable().describe('Identifier of the scan given by an offline scanner.'),
  scanned_at: timestamp,
  undone_at: timestamp.nullable(),
  created_at: timestamp,
  updated_at: timestamp,
})

const scanEssentials = names(`
  id result reason direction check_in_point_id attendee.id attendee.name attendee.company attendee.ticket_type.name
  device scanned_at undone_at
`)

export const findAttendees = {
  name: 'find_attendees',
  title: 'Find attendees at the door',
  description:
    'Finds people at the door by name, company or order reference. Ask which one they are, then call check_in.',
  method: 'GET',
  path: '/events/{event_id}/door/attendees',
  scope: 'checkin:write',
  lean: ['id', 'name', 'company', 'status', 'ticket_type.name', 'checked_in_at'],
  input: z.strictObject({
    event_id: id('event at whose door they are'),
    search: searchInput.describe('Parts of name, company or order reference; at least 3 characters.'),
    cursor: paging.cursor,
    limit: integer(1, 50).default(itemsOnAPage.rest).describe('Items on a page.'),
  }),
  output: listOf(DoorAttendeeSchema),
} satisfies Declared

const ticket = {
  code: line(200).optional().describe('From the QR code.'),
  attendee_id: id('attendee').optional().describe('In place of the code.'),
}
// Exactly one of the two, as the trigger of check_ins has it.
const oneTicket = [oneRequired('code', 'attendee_id'), onlyOne('attendee_id', 'code', 'give one of them')] as const

const place = {
  check_in_point_id: id('check-in point')
    .nullish()
    .describe('Check-in point, from get_event_summary; default: the whole event.'),
  direction: oneOf(directions).optional().describe('Default entry.'),
}

const checkInBody = z.strictObject({
  event_id: id('event at which the person is checked in'),
  device: line(100).nullish().describe('For the log.'),
  ...ticket,
  ...place,
})
// The two forms, as published.
const byCode = checkInBody.omit({ attendee_id: true }).required({ code: true })
const byAttendee = checkInBody.omit({ code: true }).required({ attendee_id: true })

export const checkIn = {
  name: 'check_in',
  title: 'Check a ticket in',
  description:
    'Checks a person in by ticket code or attendee. Admit them only on success. Never call it to look up a person.',
  method: 'POST',
  path: '/check-ins',
  errors: refusals,
  batch: 'check_in_many',
  scope: 'checkin:write',
  lean: scanEssentials,
  input: checkInBody.check(...oneTicket),
  body: { name: 'CheckInRequest', forms: { CheckInByCode: byCode, CheckInByAttendee: byAttendee } },
  output: one(CheckInSchema),
  hints: { destructive: false, idempotent: false, openWorld: true },
} satisfies Declared

export const undoCheckIn = {
  name: 'undo_check_in',
  title: 'Undo a check-in',
  description: 'Undoes a check-in by its id, from check_in or list_check_ins.',
  method: 'POST',
  path: '/check-ins/{check_in_id}/undo',
  errors: ['check_in_not_accepted', 'check_in_already_undone', 'already_checked_in'],
  scope: 'checkin:write',
  lean: scanEssentials,
  input: z.strictObject({ check_in_id: id('check-in') }),
  output: one(CheckInSchema),
  hints: { destructive: true, idempotent: false, openWorld: true },
} satisfies Declared

export const CheckInBatchSchema = z.strictObject({
  object: z.literal('check_in_batch'),
  event_id: id('event'),
  accepted: z.int(),
  rejected: z.int(),
  remaining: z.int().describe('Latest scans without a result, because time ran out: send them in a new call.'),
  results: z
    .array(
      z.strictObject({
        scan_id: z.string(),
        replayed: z.boolean().describe('The scan was uploaded before. This is its first result.'),
        counted_on_arrival: z
          .boolean()
          .describe('scanned_at was in the future or before the event was created, so the time of upload counts.'),
        check_in: CheckInSchema,
      }),
    )
    .describe('In the order of scanned_at.'),
})

const scan = z.strictObject({
  scan_id: line(100).describe("The scanner's own identifier of the scan, unique within the event."),
  ...ticket,
  ...place,
  admitted: flag.nullish().describe('Whether the scanner let them in; false counts as turned away.'),
  scanned_at: timestampInput.describe('Time of the scan: RFC 3339 with offset.'),
  device: line(100).nullish().describe('For the log.'),
})
const scanByCode = scan.omit({ attendee_id: true }).required({ code: true })
const scanByAttendee = scan.omit({ code: true }).required({ attendee_id: true })
const eitherScan = z.xor([scanByCode, scanByAttendee])

const scansOf = <Scan extends z.ZodType>(one: Scan) =>
  z
    .array(one, 'must be a list of scans')
    .min(1, 'must hold at least 1 scan')
    .max(500, 'must hold at most 500 scans')
    .describe('In any order.')
const scansEvent = id('event at which the scans were made')

export const checkInBatch = {
  name: 'check_in_batch',
  title: 'Upload offline scans',
  description:
    'Uploads up to 500 offline scans, processed in the order of scanned_at. A repeated scan_id answers its first result. Send remaining scans again.',
  method: 'POST',
  path: '/check-ins/batch',
  errors: ['not_found'],
  scope: 'checkin:write',
  unlisted: true,
  lean: names('accepted rejected remaining results.scan_id results.check_in.reason results.check_in.attendee.name'),
  leanItems: { list: 'results', path: 'check_in.result', value: 'rejected' },
  input: z.strictObject({
    event_id: scansEvent,
    scans: scansOf(scan.check(...oneTicket)).refine(
      (scans) => new Set(scans.map(({ scan_id }) => scan_id)).size === scans.length,
      'must hold each scan_id once',
    ),
  }),
  body: {
    name: 'CheckInBatchRequest',
    forms: { CheckInBatchRequest: z.strictObject({ event_id: scansEvent, scans: scansOf(eitherScan) }) },
    parts: { ScanInput: eitherScan, ScanByCode: scanByCode, ScanByAttendee: scanByAttendee },
  },
  output: one(CheckInBatchSchema),
  hints: { destructive: false, idempotent: true, openWorld: true },
} satisfies Declared

export const listCheckIns = {
  name: 'list_check_ins',
  title: 'List check-ins',
  description: `Lists scans, newest first, of one attendee or by result; rejected ones have a reason. ${nextPage}`,
  method: 'GET',
  path: '/check-ins',
  scope: 'attendees:read',
  lean: scanEssentials,
  input: z.strictObject({
    event_id: id('event').optional(),
    attendee_id: id('attendee').optional(),
    result: oneOf(checkInResults).optional().describe('Only scans with this result.'),
    ...paging,
  }),
  output: listOf(CheckInSchema),
} satisfies Declared

export const CheckInConflictSchema = z.strictObject({
  object: z.literal('check_in_conflict'),
  id: id('scan').describe('Identifier of the rejected scan.'),
  event_id: id('event'),
  check_in: CheckInSchema,
  earlier: CheckInSchema.nullable().describe('The earlier entry that counts; null unless already_checked_in.'),
})

export const listCheckInConflicts = {
  name: 'list_check_in_conflicts',
  title: 'List double entries',
  description: 'Lists people whom an offline scanner wrongly admitted, with time, place and both scans; newest first.',
  method: 'GET',
  path: '/events/{event_id}/check-in-conflicts',
  scope: 'checkin:write',
  unlisted: true,
  lean: ['check_in.attendee.name', 'check_in.device', 'check_in.scanned_at', 'earlier.device', 'earlier.scanned_at'],
  input: z.strictObject({ event_id: id('event'), ...paging }),
  output: listOf(CheckInConflictSchema),
} satisfies Declared
