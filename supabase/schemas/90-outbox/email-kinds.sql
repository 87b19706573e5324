-- The kinds of e-mail: the keys of `kinds` in src/guests/words/en.ts, written by
-- `npx vitest run test/guests/email-kinds.unit.test.ts -u`.

create type public.email_kind as enum (
  'ticket',
  'order_confirmation',
  'payment_received',
  'payment_voided',
  'payment_reminder',
  'order_expired',
  'order_cancelled',
  'event_changed',
  'event_cancelled',
  'ticket_cancelled',
  'ticket_passed_on',
  'waiting_list_offer',
  'waiting_list_cancelled',
  'answers_reminder',
  'organiser_message'
);
