// Every column of a table that has to do with people holds something of a person, and is declared with what replaces it, or it does not.

import { expect, test } from 'vitest'
import { studio } from '../../support/database.ts'

// What is left when a person is erased: identifiers, states, times, money, and what belongs to the event.
const notOfAPerson: Record<string, string[]> = {
  attendees: [
    'id organisation_id event_id order_id ticket_type_id waiting_list_entry_id price discount currency',
    'promo_code_id status ticket_code ticket_token checked_in_at checked_in inside ticket_email_status',
    'ticket_email_sent_at cancelled_at erased_at version created_at updated_at',
    // Kept by Usher, from what is declared.
    'email_lower search_text',
  ],
  orders: [
    'id organisation_id event_id reference status payment_status send_email currency subtotal discount_total total',
    'amount_paid amount_voided amount_refunded amount_retained payment_method payment_due_at payment_remind_at',
    'payment_reminded_at payment_check_at promo_code promo_code_id source completed_at cancelled_at cancellation_reason version',
    'created_at updated_at',
    // Kept by Usher, from what is declared.
    'email_lower',
  ],
  waiting_list_entries: [
    'id organisation_id event_id ticket_type_id send_email status offered_at offer_expires_at version created_at',
    'updated_at',
    // Kept by Usher, from what is declared.
    'email_lower',
  ],
  check_ins: [
    'id organisation_id event_id check_in_point_id attendee_id code direction result reason earlier_check_in_id',
    'admission_key device scan_id admitted source api_key_id scanned_at exited_at undone_at created_at updated_at',
  ],
  payments: [
    'id organisation_id event_id order_id method amount currency received_at external_reference source recorded_by',
    'created_at',
  ],
  payment_voids: ['id organisation_id payment_id reason source recorded_by created_at'],
  refunds: [
    'id organisation_id event_id order_id method amount currency refunded_at external_reference source recorded_by',
    'created_at',
  ],
  emails: [
    'id organisation_id kind is_mailing attendee_id order_id payment_id waiting_list_entry_id previous status',
    'attempts next_attempt_at claim claimed_until sent_code sent_at message_id created_at updated_at',
    'last_attempt_at sent_with organiser_message_id',
  ],
  // An account is Auth's; what was typed for want of one is declared.
  organisation_members: ['organisation_id user_id role created_at'],
  email_opt_outs: [
    'event_id organisation_id created_at',
    // Kept by Usher, from what is declared.
    'email_lower',
  ],
  webhook_deliveries: [
    'id organisation_id webhook_endpoint_id notification_id type example_type status attempts next_attempt_at claim',
    'claimed_until last_attempt_at last_response_status last_response_milliseconds last_error delivered_at',
    'created_at updated_at',
  ],
}

test.each(Object.keys(notOfAPerson))('each column of %s is decided about', async (table) => {
  const { rows } = await studio.query<{ name: string; declared: boolean }>(
    `select a.attname as name, c.column_name is not null as declared
     from pg_attribute a
     left join private.personal_columns c on c.table_name = $1 and c.column_name = a.attname
     where a.attrelid = ('public.' || $1)::regclass and a.attnum > 0 and not a.attisdropped`,
    [table],
  )
  const others = rows.filter(({ declared }) => !declared).map(({ name }) => name)
  expect(others.toSorted()).toEqual(notOfAPerson[table]?.flatMap((line) => line.split(' ')).toSorted())
})
