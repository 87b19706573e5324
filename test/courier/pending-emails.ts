// An e-mail of each kind as the database hands it to the courier. All tell of the same evening in Cologne.

import { randomUUID } from 'node:crypto'
import type { PendingEmail, PendingNotice } from '../../src/guests/pending.ts'
import { type EmailKind, emailKinds } from '../../src/operations/email-kinds.ts'
import { pendingTicket } from './pending-ticket.ts'

const ticket_url = 'https://tickets.example/t/5f0c2a'

type Locale = PendingEmail['event']['locale']

/** @param text in place of everything that a person typed. */
export function pendingEmails(
  locale: Locale = 'en',
  text?: string,
): { [Kind in EmailKind]: PendingEmail & { kind: Kind } } {
  const ticket = pendingTicket(
    text === undefined
      ? { event: { locale }, attendee: { ticket_url } }
      : {
          organisation: { name: text },
          event: {
            locale,
            name: text,
            venue: { name: text, address: null, city: text, postcode: null, country: null },
          },
          ticket_type: { name: text },
          attendee: { name: text, company: text, ticket_url },
        },
  )
  const { kind: _, others: _others, ...toAttendee } = ticket
  const { ticket_type: _type, attendee: _attendee, opt_out_url: _url, ...common } = toAttendee
  const held = {
    name: ticket.attendee.name,
    ticket_type: ticket.ticket_type.name,
    reference: ticket.order.reference,
    status: ticket.attendee.status,
    ticket_url: ticket.attendee.ticket_url,
    guest: ticket.attendee.guest,
  }
  const toHolder = { ...toAttendee, holders: [held], money: null }
  const { event } = common
  const order = {
    object: 'order' as const,
    id: randomUUID(),
    event_id: event.id,
    reference: 'K7Q2M9XD',
    status: 'pending' as const,
    payment_status: 'partially_paid' as const,
    name: text ?? 'Grace Hopper',
    email: 'grace@navy.example',
    company: text ?? null,
    currency: 'EUR',
    subtotal: 14_700,
    discount_total: 1_000,
    total: 13_700,
    amount_paid: 4_000,
    amount_due: 9_700,
    amount_refunded: 0,
    amount_retained: 0,
    amount_refundable: 4_000,
    payment_method: 'invoice' as const,
    payment_due_at: '2027-04-15T21:59:00Z',
    payment_reminded_at: null,
    promo_code: 'FRIENDS',
    source: 'api' as const,
    attendees: [],
    payments: [],
    refunds: [],
    completed_at: null,
    cancelled_at: null,
    cancellation_reason: null,
    external_id: null,
    metadata: {},
    version: 2,
    created_at: '2027-02-02T12:00:00Z',
    updated_at: '2027-02-02T12:00:00Z',
  }
  const toBuyer = {
    ...common,
    order_url: 'https://tickets.example/o/9c41aa',
    organisation: {
      ...common.organisation,
      payment_instructions:
        text?.replace(/\s+/g, ' ') ?? 'Literaturhaus Köln\nDE75 5121 0800 1245 1261 99\nBIC SOGEDEFF',
    },
    order,
    lines: [
      { name: text ?? 'Regular', quantity: 2, price: 4_900, discount: 1_000, total: 8_800 },
      {
        name: text ?? 'Supporters of the house, with a seat in the first row',
        quantity: 1,
        price: 4_900,
        discount: 0,
        total: 4_900,
      },
    ],
  }
  const payment = {
    object: 'payment' as const,
    id: randomUUID(),
    order_id: order.id,
    event_id: event.id,
    method: 'bank_transfer' as const,
    amount: 4_000,
    currency: 'EUR',
    received_at: '2027-03-01T09:00:00Z',
    external_reference: null,
    source: 'api' as const,
    voided_at: null,
    created_at: '2027-03-01T09:00:00Z',
  }
  const toWaiting = {
    ...common,
    waiting_list_entry: {
      id: randomUUID(),
      name: text ?? 'Katherine Johnson',
      email: 'katherine@nasa.example',
      ticket_type: { name: text ?? 'Regular' },
    },
  }
  // As the database answers: what does not belong to a kind is null.
  const nothing = {
    previous: null,
    message: null,
    ticket_type: null,
    attendee: null,
    lines: null,
    payment: null,
    waiting_list_entry: null,
    others: null,
    holders: null,
    guests: null,
    opt_out_url: null,
    offer_url: null,
    questions: null,
    answer_url: null,
    organiser_message: null,
    money: null,
  }
  // Of a kind that has nothing of its own below.
  const notices = Object.fromEntries(emailKinds.map((kind) => [kind, { ...toHolder, kind }])) as unknown as {
    [Kind in PendingNotice['kind']]: PendingNotice & { kind: Kind }
  }
  const cancelled = {
    ...toHolder,
    attendee: { ...toAttendee.attendee, ticket_url: null },
    holders: [{ ...held, status: 'cancelled' as const, ticket_url: null }],
  }
  const all: { [Kind in EmailKind]: PendingEmail & { kind: Kind } } = {
    ...notices,
    ticket,
    event_changed: {
      ...toHolder,
      opt_out_url: 'https://tickets.example/u/7d1e9b',
      kind: 'event_changed',
      previous: {
        ...event,
        name: text ?? 'Lange Nacht',
        starts_at: '2027-04-24T17:00:00Z',
        ends_at: null,
        venue: null,
      },
    },
    answers_reminder: {
      ...toHolder,
      kind: 'answers_reminder',
      questions: [text ?? 'What do you eat?', text ?? 'How are you travelling?'],
      answer_url: 'https://tickets.example/g/81c0de',
    },
    organiser_message: {
      ...toHolder,
      opt_out_url: 'https://tickets.example/u/7d1e9b',
      kind: 'organiser_message',
      organiser_message: {
        subject: text ?? 'The doors open earlier',
        message: 'The doors open **at 18:30** already.\nBring something warm.\n\nWe look forward to seeing you!',
      },
    },
    event_cancelled: { ...cancelled, kind: 'event_cancelled' },
    ticket_cancelled: { ...cancelled, kind: 'ticket_cancelled' },
    ticket_passed_on: { ...toAttendee, kind: 'ticket_passed_on' },
    order_confirmation: {
      ...toBuyer,
      kind: 'order_confirmation',
      guests: [text ?? 'Grace Hopper', text ?? 'Ada Lovelace', text ?? 'Katherine Johnson'].map((name) => ({
        name,
        ticket_type: text ?? 'Regular',
      })),
    },
    payment_reminder: {
      ...toBuyer,
      order: { ...order, payment_status: 'awaiting_payment', amount_paid: 0, amount_due: 13_700 },
      kind: 'payment_reminder',
    },
    order_expired: {
      ...toBuyer,
      order: { ...order, status: 'cancelled', cancellation_reason: 'expired', amount_due: 0 },
      kind: 'order_expired',
    },
    order_cancelled: {
      ...toBuyer,
      order: { ...order, status: 'cancelled', cancellation_reason: 'requested', amount_due: 0 },
      money: { currency: 'EUR', amount_unpaid: 9_700, amount_retained: 0, amount_refundable: 4_000 },
      kind: 'order_cancelled',
    },
    waiting_list_offer: {
      ...toWaiting,
      kind: 'waiting_list_offer',
      previous: null,
      offer_url: 'https://tickets.example/w/3b9d41',
      waiting_list_entry: { ...toWaiting.waiting_list_entry, offer_expires_at: '2027-04-20T16:00:00Z' },
    },
    waiting_list_cancelled: { ...toWaiting, kind: 'waiting_list_cancelled' },
    payment_received: { ...toBuyer, kind: 'payment_received', payment: { ...payment, is_latest: true } },
    payment_voided: {
      ...toBuyer,
      order: { ...order, payment_status: 'awaiting_payment', amount_paid: 0, amount_due: 13_700 },
      kind: 'payment_voided',
      payment: { ...payment, voided_at: '2027-03-02T09:00:00Z' },
    },
  }
  return Object.fromEntries(
    Object.entries(all).map(([kind, pending]) => [kind, { ...nothing, ...pending }]),
  ) as unknown as typeof all
}
