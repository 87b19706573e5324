// The waiting list of sold-out ticket types. SQL: supabase/schemas/70-waiting-list/.

import * as z from 'zod'
import { guestFields } from './attendees.ts'
import { changesOf, ifVersions, readAgain } from './changes.ts'
import { promoCodeRefused, salesClosed } from './error-codes.ts'
import { id, one, ownFields, timestamp, versioned } from './fields.ts'
import { emailAddress, flag, line, oneOf, timestampInput } from './inputs.ts'
import { emailFilter, listOf, nextPage, paging } from './lists.ts'
import { type Declared, names } from './operation.ts'
import { newOrder, OrderSchema, paymentMethods } from './orders.ts'

const statuses = ['waiting', 'offered', 'accepted', 'expired', 'cancelled'] as const

export const WaitingListEntrySchema = z.strictObject({
  object: z.literal('waiting_list_entry'),
  id: id('entry of the waiting list'),
  event_id: id('event'),
  ticket_type_id: id('ticket type'),
  ticket_type: z.strictObject({ id: id('ticket type'), name: z.string() }),
  name: z.string(),
  email: z.string(),
  company: z.string().nullable(),
  status: z.enum(statuses),
  position: z
    .int()
    .nullable()
    .describe('Position on the waiting list of the ticket type, from 1; null unless waiting.'),
  offered_at: timestamp.nullable(),
  offer_expires_at: timestamp.nullable().describe('Deadline of the offer.'),
  order_id: id('order').nullable().describe('The order of the accepted offer.'),
  attendee_id: id('attendee').nullable().describe('The attendee of the accepted offer.'),
  ...ownFields,
  ...versioned,
})

const entryEssentials = names('id name email ticket_type.name status position offered_at offer_expires_at')

const { answers: _, ...waiting } = guestFields
const entryFields = { ...waiting, email: emailAddress.describe('Address for the offer.') }

export const joinWaitingList = {
  name: 'join_waiting_list',
  title: 'Join a waiting list',
  description:
    'Puts a person on the waiting list of a sold-out ticket type. A free place is offered to the first by e-mail, with a deadline. On not_sold_out use register_attendee.',
  method: 'POST',
  path: '/events/{event_id}/waiting-list',
  errors: ['not_sold_out', ...salesClosed, 'quantity_not_allowed', 'already_exists'],
  scope: 'attendees:write',
  lean: entryEssentials,
  input: z
    .strictObject({
      event_id: id('event'),
      ticket_type_id: id('ticket type that is sold out'),
      ...entryFields,
      send_email: flag.describe('false: nothing is e-mailed.'),
    })
    .partial()
    .required({ event_id: true, ticket_type_id: true, name: true, email: true }),
  output: one(WaitingListEntrySchema),
  hints: { destructive: false, idempotent: false, openWorld: true },
} satisfies Declared

export const listWaitingListEntries = {
  name: 'list_waiting_list_entries',
  title: 'List a waiting list',
  description: `Lists the waiting list of an event, oldest first. status offered: a place is held until offer_expires_at. ${nextPage}`,
  method: 'GET',
  path: '/events/{event_id}/waiting-list',
  scope: 'attendees:read',
  lean: entryEssentials,
  input: z.strictObject({
    event_id: id('event'),
    ticket_type_id: id('ticket type').optional(),
    status: oneOf(statuses).optional().describe('Only entries with this status.'),
    email: emailFilter,
    ...paging,
  }),
  output: listOf(WaitingListEntrySchema),
} satisfies Declared

export const getWaitingListEntry = {
  name: 'get_waiting_list_entry',
  title: 'Get a waiting-list entry',
  description: 'Returns one waiting-list entry; list_waiting_list_entries gives its id.',
  method: 'GET',
  path: '/waiting-list-entries/{waiting_list_entry_id}',
  scope: 'attendees:read',
  unlisted: true,
  input: z.strictObject({ waiting_list_entry_id: id('entry of the waiting list') }),
  output: one(WaitingListEntrySchema),
} satisfies Declared

export const updateWaitingListEntry = {
  name: 'update_waiting_list_entry',
  title: 'Change a waiting-list entry',
  description: `Changes a waiting-list entry, or moves offer_expires_at; a time in the past ends the offer. The position stays. ${readAgain}`,
  method: 'PATCH',
  path: '/waiting-list-entries/{waiting_list_entry_id}',
  errors: ['read_only_field', 'already_exists'],
  scope: 'attendees:write',
  unlisted: true,
  lean: entryEssentials,
  input: z.strictObject({
    waiting_list_entry_id: id('entry of the waiting list'),
    changes: changesOf({
      ...entryFields,
      offer_expires_at: timestampInput.describe('Deadline of the offer.'),
    }),
    if_version: ifVersions,
  }),
  output: one(WaitingListEntrySchema),
  hints: { destructive: true, idempotent: true, openWorld: true },
} satisfies Declared

export const acceptWaitingListOffer = {
  name: 'accept_waiting_list_offer',
  title: 'Accept a waiting-list offer',
  description: 'Accepts an offer: registers the person as register_attendee does, with the same e-mails.',
  method: 'POST',
  path: '/waiting-list-entries/{waiting_list_entry_id}/accept',
  errors: [
    'not_offered',
    'offer_expired',
    ...salesClosed,
    'quantity_not_allowed',
    ...promoCodeRefused,
    'already_exists',
  ],
  scope: 'attendees:write',
  lean: newOrder,
  input: z.strictObject({
    waiting_list_entry_id: id('entry of the waiting list'),
    payment_method: oneOf(paymentMethods).optional().describe('As in register_attendee.'),
    promo_code: line(50).optional().describe('As in register_attendee.'),
  }),
  output: one(OrderSchema),
  hints: { destructive: false, idempotent: false, openWorld: true },
} satisfies Declared

export const cancelWaitingListEntry = {
  name: 'cancel_waiting_list_entry',
  title: 'Leave a waiting list',
  description:
    'Removes a person from the waiting list permanently; an offered place goes to the next. Confirm with the person first.',
  method: 'POST',
  path: '/waiting-list-entries/{waiting_list_entry_id}/cancel',
  errors: ['invalid_transition'],
  irreversible: true,
  scope: 'attendees:write',
  unlisted: true,
  lean: entryEssentials,
  input: z.strictObject({ waiting_list_entry_id: id('entry of the waiting list') }),
  output: one(WaitingListEntrySchema),
  hints: { destructive: true, idempotent: false, openWorld: true },
} satisfies Declared
