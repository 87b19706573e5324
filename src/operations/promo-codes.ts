// Promo codes. SQL: supabase/schemas/40-promo-codes/.

import * as z from 'zod'
import { changesOf, ifVersions, readAgain } from './changes.ts'
import { id, money, one, timestamp, versioned } from './fields.ts'
import { between, control, count, flag, minorUnits, onlyOne, ticketTypeIds, timestampInput } from './inputs.ts'
import { listOf, nextPage, paging } from './lists.ts'
import { type Declared, names } from './operation.ts'

export const promoCodeStatuses = ['active', 'disabled'] as const

export const PromoCodeSchema = z.strictObject({
  object: z.literal('promo_code'),
  id: id('promo code'),
  event_id: id('event'),
  code: z.string(),
  percent_off: z.number().nullable().describe('Percentage off each ticket; null: see amount_off.'),
  amount_off: money.nullable().describe('Minor units off each order, spread over its tickets; null: see percent_off.'),
  valid_from: timestamp.nullable(),
  valid_until: timestamp.nullable(),
  max_redemptions: z.int().nullable().describe('In tickets; null: no limit.'),
  times_redeemed: z.int().describe('Number of tickets that use it.'),
  ticket_type_ids: z.array(id('ticket type')).describe('Ticket types it applies to; empty: all of the event.'),
  unlocks: z.boolean().describe('Whether it shows the hidden ones of these on the registration page.'),
  status: z.enum(promoCodeStatuses),
  state: z
    .enum(['valid', 'upcoming', 'expired', 'used_up', 'disabled'])
    .describe('Whether it can be used now, and why not.'),
  ...versioned,
})

const oneWord = 'must be one word of 1 to 50 letters, digits or signs'
// Beside what \s stands for; as in supabase/schemas/40-promo-codes/table.sql.
const invisible = /[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164]/

/** Fields that can be set at creation and changed later. */
export const promoCodeFields = {
  code: z
    .string()
    .normalize()
    .regex(new RegExp(`^[^\\s${control}]{1,50}$`, 'u'), oneWord)
    .refine((code) => code.isWellFormed() && !invisible.test(code), oneWord)
    .describe('The code that the buyer enters; case-insensitive.'),
  percent_off: z
    .number()
    .gt(0, 'must be more than 0')
    .max(100, 'must be at most 100')
    .multipleOf(0.01, 'must have at most two decimals')
    .describe('10 is 10 %.'),
  amount_off: minorUnits(1, 100_000_000_000).describe('Minor units off the order, in place of percent_off.'),
  valid_from: timestampInput.nullable().describe('null: at once.'),
  valid_until: timestampInput.nullable().describe('null: no end.'),
  max_redemptions: count(1).nullable().describe('In tickets; null: no limit.'),
  ticket_type_ids: ticketTypeIds.describe('Ticket types it applies to; empty: all.'),
  unlocks: flag.describe('true: shows hidden ones of these.'),
}

// One of the two, as the constraints of promo_codes have it; one that unlocks ticket types may have neither.
const oneDiscount = onlyOne('amount_off', 'percent_off', 'a promo code has one of the two')
const someUse = between(
  'percent_off',
  ({ percent_off, amount_off, unlocks }) => unlocks === true || (percent_off ?? amount_off) != null,
  'is required, unless amount_off or unlocks is given',
)

const newPromoCode = z
  .strictObject({ event_id: id('event'), ...promoCodeFields })
  .partial()
  .required({ event_id: true, code: true })
// The three forms, as published.
const body = newPromoCode.omit({ event_id: true })
const byPercentage = body.omit({ amount_off: true }).required({ percent_off: true })
const byAmount = body.omit({ percent_off: true }).required({ amount_off: true })
const byUnlocking = body
  .omit({ percent_off: true, amount_off: true })
  .required({ unlocks: true, ticket_type_ids: true })

const promoCodeEssentials = names(
  'id code percent_off amount_off valid_from valid_until max_redemptions times_redeemed state',
)

export const listPromoCodes = {
  name: 'list_promo_codes',
  title: 'List promo codes',
  description: `Lists promo codes of an event; state valid: usable now. ${nextPage}`,
  method: 'GET',
  path: '/events/{event_id}/promo-codes',
  scope: 'events:read',
  unlisted: true,
  lean: promoCodeEssentials,
  input: z.strictObject({ event_id: id('event'), ...paging }),
  output: listOf(PromoCodeSchema),
} satisfies Declared

export const getPromoCode = {
  name: 'get_promo_code',
  title: 'Get a promo code',
  description: 'Returns one promo code, and how often it was used.',
  method: 'GET',
  path: '/promo-codes/{promo_code_id}',
  scope: 'events:read',
  unlisted: true,
  input: z.strictObject({ promo_code_id: id('promo code') }),
  output: one(PromoCodeSchema),
} satisfies Declared

export const createPromoCode = {
  name: 'create_promo_code',
  title: 'Create a promo code',
  description:
    'Adds a promo code to an event: percent_off each ticket, or amount_off the order; with unlocks neither is needed.',
  method: 'POST',
  path: '/events/{event_id}/promo-codes',
  errors: ['already_exists'],
  scope: 'events:write',
  unlisted: true,
  lean: promoCodeEssentials,
  input: newPromoCode.check(someUse, oneDiscount),
  body: {
    name: 'CreatePromoCodeRequest',
    forms: { PercentagePromoCode: byPercentage, AmountPromoCode: byAmount, UnlockingPromoCode: byUnlocking },
  },
  output: one(PromoCodeSchema),
  hints: { destructive: false, idempotent: false, openWorld: false },
} satisfies Declared

export const updatePromoCode = {
  name: 'update_promo_code',
  title: 'Change a promo code',
  description: `Changes a promo code; of percent_off and amount_off one is null. status disabled rejects it from now on; orders keep it. ${readAgain}`,
  method: 'PATCH',
  path: '/promo-codes/{promo_code_id}',
  errors: ['limit_below_redeemed', 'already_exists'],
  scope: 'events:write',
  unlisted: true,
  lean: promoCodeEssentials,
  input: z.strictObject({
    promo_code_id: id('promo code'),
    changes: changesOf({
      ...promoCodeFields,
      percent_off: promoCodeFields.percent_off.nullable(),
      amount_off: promoCodeFields.amount_off.nullable(),
      status: z.enum(promoCodeStatuses, 'must be active or disabled'),
    }).check(oneDiscount),
    if_version: ifVersions,
  }),
  output: one(PromoCodeSchema),
  hints: { destructive: true, idempotent: true, openWorld: false },
} satisfies Declared
