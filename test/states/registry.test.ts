// What the tables of this folder have to be complete against: every operation that writes, and every enum, either is walked by
// one of them or is said here to be no step from one state to another. A new one fails until somebody has decided.

import { expect, test } from 'vitest'
import * as z from 'zod'
import { operations } from '../../src/operations/index.ts'
import { isRead, type Operation } from '../../src/operations/operation.ts'
import { row } from '../support/database.ts'

const walked = [
  'publish_event',
  'unpublish_event',
  'cancel_event',
  'complete_event',
  'delete_event',
  'update_ticket_type',
  'update_promo_code',
  'register_attendee',
  'cancel_order',
  'reopen_order',
  'record_invoice_payment',
  'update_attendee',
  'cancel_attendee',
  'resend_ticket',
  'check_in',
  'undo_check_in',
  'update_webhook_endpoint',
  'test_webhook_endpoint',
  'redeliver_webhook',
  'accept_waiting_list_offer',
  'cancel_waiting_list_entry',
]

const noTransitions = {
  export_attendees: 'a link to a file changes nothing of what is in it: see test/rest/exports.test.ts',
  export_orders: 'a link to a file, too',
  export_payments: 'a link to a file, too',
  export_check_ins: 'a link to a file, too',
  apply_event: 'it is the operations on events and what belongs to them, for many: see test/rest/apply-event.test.ts',
  resend_email: 'it is what an organiser does by the status: see test/rest/emails.test.ts',
  redeliver_webhooks: 'it is redeliver_webhook for many: see test/rest/webhook-deliveries.test.ts',
  rotate_webhook_secret: 'a secret signs or is gone: see test/rest/webhook-endpoints.test.ts',
  erase_attendee: 'it changes no status: see test/rest/erase-attendee.test.ts',
  send_payment_reminder: 'it e-mails: see test/database/50-orders/payment-reminders.test.ts',
  send_payment_reminders: 'it is send_payment_reminder for many',
  message_attendees: 'it e-mails: see test/rest/message-attendees.test.ts',
  remind_unanswered: 'it e-mails: see test/rest/remind-unanswered.test.ts',
  erase_person: 'it changes no status but those of entries of the waiting list: see test/rest/people.test.ts',
  void_payment: 'see test/rest/payment-corrections.test.ts',
  record_refund: 'see test/rest/payment-corrections.test.ts',
  update_question: 'see test/rest/questions.test.ts',
  update_check_in_point: 'see test/rest/check-in-points.test.ts',
  import_attendees: 'it is register_attendee and update_attendee for many: see test/rest/import-attendees.test.ts',
  add_attendee: 'it begins in the state of a registration: see test/rest/add-attendee.test.ts',
  check_in_batch: 'it judges like check_in, by the same trigger: see test/rest/check-in-batch.test.ts',
}

/** What is made begins in its first state, what is deleted has none, and an edit changes a status only if it takes one. */
const changesNoStatus = ({ name, input }: Operation) => {
  const { changes } = input.shape as { changes?: z.ZodType }
  const fields = changes instanceof z.ZodObject ? changes.shape : undefined
  return /^(create|join|delete)_/.test(name) || (fields !== undefined && !('status' in fields))
}

test('every operation that may change a status is walked, or is said to be no transition', () => {
  const writing = operations.filter((operation) => !isRead(operation))
  const asked = writing.filter((operation) => walked.includes(operation.name) || !changesNoStatus(operation))
  expect(
    asked.map(({ name }) => name).toSorted(),
    'Add what is missing to walked or noTransitions in this file',
  ).toEqual([...walked, ...Object.keys(noTransitions)].toSorted())
})

const walkedEnums = [
  'event_status',
  'ticket_type_status',
  'promo_code_status',
  'order_status',
  'payment_status',
  'attendee_status',
  'check_in_result',
  'webhook_endpoint_status',
  'webhook_delivery_status',
  'waiting_list_status',
]

const noStates = {
  event_phase: 'the time relative to the event, stored nowhere',
  event_sort: 'an argument of list_events',
  summary_interval: 'an argument of get_event_summary',
  email_status: 'moved by whatever sends the e-mail; the tables tell where a transition moves it',
  check_in_direction: 'what was scanned, for good',
  check_in_admission: 'a setting',
  question_status: 'archived stops asking it, which test/rest/questions.test.ts shows',
  registration_page: 'a setting',
  question_type: 'for good',
  question_ask: 'a setting',
  check_in_point_status: 'archived closes it, which test/rest/check-in-points.test.ts shows',
  check_in_reason: 'why a scan was rejected, which check-ins.test.ts tells of each',
  ticket_type_visibility: 'a setting',
  email_kind: 'what an e-mail tells',
  guest_act: 'a setting, and an argument',
  notify: 'an argument',
  locale: 'a setting',
  payment_method: 'a setting',
  cancellation_reason: 'why it was cancelled, for good',
  notification_type: 'what happened, for good',
  request_source: 'where a row came from, for good',
  audit_action: 'what was done, for good',
  audit_object: 'what it was done to, for good',
  audit_actor: 'who did it, for good',
  organisation_role: 'of people, who come in by Studio alone',
  api_key_kind: 'a kind, which never changes',
  api_key_confirmations: 'whether a person is asked, and either way at any time',
  api_scope: 'what a key may do, not where it stands',
}

test('every enum is walked, or is said to be no state', async () => {
  const { names } = await row<{ names: string[] }>(
    `select array_agg(t.typname::text order by t.typname) as names
     from pg_type t where t.typtype = 'e' and t.typnamespace = 'public'::regnamespace`,
  )
  expect(names.toSorted(), 'Add what is missing to walkedEnums or noStates in this file').toEqual(
    [...walkedEnums, ...Object.keys(noStates)].toSorted(),
  )
})

test('what is done by SQL is done in the role that Studio uses', async () => {
  expect(await row('select current_user as role')).toEqual({ role: 'postgres' })
})
