// Exports: files of many rows. Each operation makes a link, from which a person downloads the file; over REST the file is at GET of its
// path. SQL: supabase/schemas/97-exports/, whose views have the columns.

import * as z from 'zod'
import { attendeeStatuses } from './attendees.ts'
import { checkInResults } from './check-ins.ts'
import { id, one, timestamp } from './fields.ts'
import { characters, control, flag, oneOf } from './inputs.ts'
import { anyOf, atOrAfter, before } from './lists.ts'
import { type Declared, names } from './operation.ts'
import { orderStatuses, paymentStatuses } from './orders.ts'

const attendeeColumns = names(`
  id event_id event timezone order_id order_reference ticket_type_id ticket_type
  name email company status price price_decimal discount discount_decimal currency
  checked_in_at checked_in_at_local cancelled_at cancelled_at_local erased_at erased_at_local
  external_id metadata created_at created_at_local updated_at updated_at_local answers
`)

const orderColumns = names(`
  id event_id event timezone reference status payment_status name email company
  currency subtotal subtotal_decimal discount_total discount_total_decimal total total_decimal
  amount_paid amount_paid_decimal amount_refunded amount_refunded_decimal
  amount_due amount_due_decimal payment_method promo_code source
  payment_due_at payment_due_at_local completed_at completed_at_local
  cancelled_at cancelled_at_local cancellation_reason external_id metadata
  created_at created_at_local updated_at updated_at_local
  amount_refundable amount_refundable_decimal amount_retained amount_retained_decimal
`)

const paymentColumns = names(`
  id type payment_id order_id order_reference event_id event timezone
  name email company booked_at booked_at_local amount amount_decimal currency method
  external_reference reason source created_at created_at_local
`)

const checkInColumns = names(`
  id event_id event timezone check_in_point_id check_in_point attendee_id name company
  ticket_type direction result reason admitted device source
  scanned_at scanned_at_local exited_at exited_at_local undone_at undone_at_local
  created_at created_at_local
`)

/** Columns, in the order in which the file is to have them. A key of metadata or answers is a column of its own where it is named. */
function columnsFrom(columns: readonly string[]) {
  const objects = ['metadata', 'answers'].filter((name) => columns.includes(name))
  const keys = objects.length === 0 ? '' : `|(${objects.join('|')})[.][^${control}]+`
  const named = objects.map((name) => `${name}.KEY`).join(' or ')
  const plain = columns.filter((name) => !/_(local|decimal)$/.test(name))
  const error = `must be ${plain.join(', ')}${named && `, ${named}`}, *_local or *_decimal`
  const column = z
    .string()
    .regex(new RegExp(`^(${columns.join('|')}${keys})$`), error)
    .check(characters(50))
    .refine((name) => name.isWellFormed(), error)
  return z
    .array(column)
    .min(1, 'must name at least one column')
    .max(100, 'must name at most 100 columns')
    .optional()
    .describe(`Columns in the order of the file${named && `; ${named} for one key`}.`)
}

const ExportSchema = z.strictObject({
  object: z.literal('export'),
  id: id('export'),
  url: z
    .string()
    .nullable()
    .describe('Page to download the file without a key. null in a repeated answer once it has expired.'),
  expires_at: timestamp.describe('15 minutes from creation, or earlier with the key.'),
  good_for_minutes: z.int().describe('Whole minutes until expires_at.'),
  rows: z.int().nullable().describe('Expected rows. null: more than 10,000, or not counted.'),
  columns: z.array(z.string()),
})

const answer = {
  output: one(ExportSchema),
  lean: ['url', 'expires_at', 'good_for_minutes', 'rows', 'columns'],
  errors: ['not_found'],
  hints: { destructive: false, idempotent: false, openWorld: false },
} as const

export const exportAttendees = {
  name: 'export_attendees',
  title: 'Export attendees',
  description: 'Creates a link to a CSV file of attendees, for download within 15 minutes: give url to the person.',
  method: 'POST',
  path: '/exports/attendees',
  scope: 'attendees:read',
  input: z.strictObject({
    event_id: id('event').optional(),
    ticket_type_id: id('ticket type').optional(),
    status: oneOf(attendeeStatuses).optional().describe('Only attendees with this status.'),
    checked_in: flag.optional().describe('Only those who are, or are not.'),
    updated_after: atOrAfter,
    // Only where it is named: a file is handed on.
    fields: columnsFrom([...attendeeColumns, 'ticket_code']),
  }),
  csv: { name: 'attendees', columns: attendeeColumns },
  ...answer,
} satisfies Declared

export const exportOrders = {
  name: 'export_orders',
  title: 'Export orders',
  description: 'Creates a link to a CSV file of orders, as export_attendees.',
  method: 'POST',
  path: '/exports/orders',
  scope: 'orders:read',
  input: z.strictObject({
    event_id: id('event').optional(),
    status: oneOf(orderStatuses).optional().describe('Only orders with this status.'),
    payment_status: anyOf(paymentStatuses).optional().describe('Only orders with one of these.'),
    updated_after: atOrAfter,
    fields: columnsFrom(orderColumns),
  }),
  csv: { name: 'orders', columns: orderColumns },
  ...answer,
} satisfies Declared

export const exportPayments = {
  name: 'export_payments',
  title: 'Export payments',
  description: 'Creates a link to a CSV file of payments, voids and refunds with signed amounts, for accounting.',
  method: 'POST',
  path: '/exports/payments',
  scope: 'orders:read',
  input: z.strictObject({
    event_id: id('event').optional(),
    received_after: atOrAfter,
    received_before: before,
    fields: columnsFrom(paymentColumns),
  }),
  csv: { name: 'payments', columns: paymentColumns },
  ...answer,
} satisfies Declared

export const exportCheckIns = {
  name: 'export_check_ins',
  title: 'Export check-ins',
  description: 'Creates a link to a CSV file of scans, as export_attendees.',
  method: 'POST',
  path: '/exports/check-ins',
  scope: 'attendees:read',
  unlisted: true,
  input: z.strictObject({
    event_id: id('event').optional(),
    result: oneOf(checkInResults).optional().describe('Only scans with this result.'),
    fields: columnsFrom(checkInColumns),
  }),
  csv: { name: 'check-ins', columns: checkInColumns },
  ...answer,
} satisfies Declared
