// Promo codes. SQL: supabase/schemas/13_promo_codes.sql and 14_promo_code_operations.sql.

import * as z from 'zod'
import type { Operation } from '../operation.ts'
import { changesOf, count, id, ifVersions, listOf, one, paging, timestamp, timestampInput, version } from './fields.ts'

export const PromoCodeSchema = z.strictObject({
  object: z.literal('promo_code'),
  id: id('promo code'),
  event_id: id('event'),
  code: z.string(),
  percent_off: z.number(),
  valid_from: timestamp.nullable(),
  valid_until: timestamp.nullable(),
  max_redemptions: z.int().nullable().describe('How many tickets may have it; null: no limit.'),
  times_redeemed: z.int().describe('Tickets that have it.'),
  ticket_type_ids: z.array(id('ticket type')).describe('What it is good for; empty: all of the event.'),
  status: z.enum(['active', 'disabled']),
  state: z.enum(['valid', 'upcoming', 'expired', 'used_up', 'disabled']).describe('Whether it can be used now.'),
  version,
  created_at: timestamp,
  updated_at: timestamp,
})

const promoCodeFields = {
  code: z
    .string()
    .regex(/^[\x21-\x7e]{1,50}$/, 'must be one word of 1 to 50 letters, digits or signs')
    .describe('What the buyer types; upper and lower case are the same.'),
  percent_off: z
    .number()
    .gt(0, 'must be more than 0')
    .max(100, 'must be at most 100')
    .multipleOf(0.01, 'must have at most two decimals')
    .describe('Percentage taken off each ticket.'),
  valid_from: timestampInput.nullable().describe('From when it is good; null: at once.'),
  valid_until: timestampInput.nullable().describe('Until when it is good; null: without end.'),
  max_redemptions: count(1).nullable().describe('How many tickets may have it; null: no limit.'),
  ticket_type_ids: z
    .array(id('ticket type'))
    .max(100, 'must be at most 100 ticket types')
    .describe('What it is good for; empty: all ticket types of the event.'),
}

export const listPromoCodes = {
  name: 'list_promo_codes',
  title: 'List promo codes',
  summary: 'Promo codes of an event, newest first.',
  description:
    'Lists the promo codes of an event, newest first. state valid means that it can be used now. When has_more is true, call again with cursor set to next_cursor.',
  method: 'GET',
  path: '/events/{event_id}/promo-codes',
  scope: 'events:read',
  input: z.strictObject({ event_id: id('event'), ...paging }),
  output: listOf(PromoCodeSchema),
} satisfies Operation

export const getPromoCode = {
  name: 'get_promo_code',
  title: 'Get a promo code',
  summary: 'One promo code.',
  description: 'Reads one promo code by its identifier. On not_found, find the identifier with list_promo_codes.',
  method: 'GET',
  path: '/promo-codes/{promo_code_id}',
  scope: 'events:read',
  input: z.strictObject({ promo_code_id: id('promo code') }),
  output: one(PromoCodeSchema),
} satisfies Operation

export const createPromoCode = {
  name: 'create_promo_code',
  title: 'Create a promo code',
  summary: 'Add a discount code to an event.',
  description:
    'Adds a promo code to an event: percent_off off each ticket, for all ticket types or those in ticket_type_ids. On already_exists the event has a code of this name.',
  method: 'POST',
  path: '/events/{event_id}/promo-codes',
  scope: 'events:write',
  input: z
    .strictObject({ event_id: id('event'), ...promoCodeFields })
    .partial()
    .required({ event_id: true, code: true, percent_off: true }),
  output: one(PromoCodeSchema),
  hints: { destructive: false, idempotent: false },
} satisfies Operation

export const updatePromoCode = {
  name: 'update_promo_code',
  title: 'Change a promo code',
  summary: 'Change or disable a promo code; what is left out stays, null clears.',
  description:
    'Changes fields of a promo code. Set status to disabled to refuse it from now on; orders that have it keep it. On limit_below_redeemed ask for a higher max_redemptions; on version_mismatch read it again.',
  method: 'PATCH',
  path: '/promo-codes/{promo_code_id}',
  scope: 'events:write',
  input: z.strictObject({
    promo_code_id: id('promo code'),
    changes: changesOf({
      ...promoCodeFields,
      status: z.enum(['active', 'disabled'], 'must be active or disabled'),
    }),
    if_version: ifVersions,
  }),
  output: one(PromoCodeSchema),
  hints: { destructive: true, idempotent: true },
} satisfies Operation
