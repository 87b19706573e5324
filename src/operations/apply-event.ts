// apply_event: an event as it is to be, planned by one call and applied by the next. SQL: supabase/schemas/20-events/plans.sql.

import * as z from 'zod'
import { effect, notify } from './changes.ts'
import { pointFields } from './check-in-points.ts'
import { EventSchema, eventFields } from './events.ts'
import { one, timestamp } from './fields.ts'
import { flag, line, oneOf } from './inputs.ts'
import type { Declared } from './operation.ts'
import { promoCodeFields, promoCodeStatuses } from './promo-codes.ts'
import { questionFields, questionStatuses } from './questions.ts'
import { ticketTypeFields, ticketTypeStatuses } from './ticket-types.ts'

/** A list may be this long. */
const most = 100

/** An id, slug, external_id or name: SQL looks it up. */
const reference = line(255)

/** For the ticket types of a promo code or a check-in point. */
const ticketTypes = z
  .array(reference)
  .max(most, `must be at most ${most} ticket types`)
  .describe('Names, ids or external_ids of ticket types, new ones included; empty: all.')

const itemsOf = <Shape extends z.core.$ZodShape>(fields: Shape, kind: string) =>
  z
    .array(
      z
        .strictObject({
          id: reference.describe('The current id, external_id or name, if this step changes it.'),
          ...fields,
        })
        .partial(),
    )
    .max(most, `must be at most ${most} ${kind}; send the rest in another plan`)

const { ticket_type_ids: _codes, percent_off, amount_off, ...codeFields } = promoCodeFields
const { ticket_type_ids: _points, ...gateFields } = pointFields
const { ticket_type_ids: _questions, ...askedFields } = questionFields

const StepSchema = z.strictObject({
  action: z.enum(['create', 'change', 'archive', 'refuse']),
  kind: z.enum(['event', 'ticket_type', 'promo_code', 'check_in_point', 'question']),
  name: z.string().nullable(),
  id: z.guid().optional().describe('After applying: the id of a created object.'),
  status: z.string().optional().describe('Archived or disabled, and unchanged by the step.'),
  changes: z
    .record(z.string(), z.unknown())
    .optional()
    .describe("In the plan: values, or [old, new] for changes; money in words, times in the event's zone."),
  error: z
    .strictObject({
      code: z.string(),
      message: z.string(),
      param: z.string().optional(),
      details: z.unknown().optional(),
      hint: z.string().optional(),
    })
    .optional(),
})

export const EventPlanSchema = z.strictObject({
  object: z.literal('event_plan'),
  plan_id: z.string(),
  applied: z.boolean(),
  expires_at: timestamp.describe('The plan can be applied until then.'),
  event: z
    .strictObject({
      id: z.guid().nullable().describe('null: a new event.'),
      name: z.string().nullable(),
      status: EventSchema.shape.status.nullable(),
      starts_at: z.string().nullable().describe("RFC 3339, in the event's zone."),
      ends_at: z.string().nullable(),
      timezone: z.string().nullable(),
    })
    .describe('The event after the plan.'),
  notify: z.string().nullable().describe('Whom it tells.'),
  refusals: z.int().describe('Above 0: the plan cannot be applied.'),
  unchanged: z.int().describe('Objects that need no change.'),
  steps: z.array(StepSchema).describe('Refused steps first; at most 100.'),
  more_steps: z.int(),
})

export const applyEvent = {
  name: 'apply_event',
  title: 'Plan and apply an event',
  description:
    'Sets up, changes, moves, copies or publishes an event; adds ticket types, promo codes, check-in points, questions. The first call changes nothing and answers a plan. If it matches the request, send its plan_id alone; else ask the person. New places are offered to the waiting list. Example: {"event":"Data Days","changes":{"status":"published"},"ticket_types":[{"name":"VIP","price":29900}],"promo_codes":[{"code":"TEN","percent_off":10,"ticket_types":["VIP"]}]}. On plan_outdated plan again.',
  method: 'POST',
  path: '/event-plans',
  errors: ['not_found', 'plan_outdated', 'already_exists', 'ambiguous_name'],
  scope: 'events:write',
  confirmed: 'by_effect',
  input: z
    .strictObject({
      event: reference.describe('None: a new event, or the one with the slug or external_id in changes.'),
      copy_of: reference.describe('Copies this event as a draft; move gives the new start.'),
      move: z
        .string()
        .regex(
          /^(-?P([0-9]{1,3}[YMWD]){1,4}|-?P([0-9]{1,3}[YMWD]){0,4}T([0-9]{1,3}[HM]){1,2}|[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.]+(Z|[+-][0-9]{2}:[0-9]{2}))?)$/,
          'must be a duration such as P7D or -P1D, a day such as 2027-05-03, or a time with offset',
        )
        .describe('Moves start, end, sales and check-in windows together: by P7D or -P1D, or to 2027-05-03.'),
      changes: z
        .strictObject({ ...eventFields, status: oneOf(['draft', 'published']) })
        .partial()
        .describe('null clears.'),
      ticket_types: itemsOf(
        { ...ticketTypeFields, status: z.enum(ticketTypeStatuses, 'must be active or archived') },
        'ticket types',
      ).describe('Price in minor units. Matched by name; to rename, send the current name as id.'),
      promo_codes: itemsOf(
        {
          ...codeFields,
          percent_off: percent_off.nullable(),
          amount_off: amount_off.nullable(),
          ticket_types: ticketTypes,
          status: z.enum(promoCodeStatuses, 'must be active or disabled'),
        },
        'promo codes',
      ).describe('For these ticket_types; none: all.'),
      check_in_points: itemsOf(
        {
          ...gateFields,
          ticket_types: ticketTypes,
          status: z.enum(ticketTypeStatuses, 'must be active or archived'),
        },
        'check-in points',
      ).describe('For a door over several days: one point with once_per_day.'),
      questions: itemsOf(
        {
          ...askedFields,
          ticket_types: ticketTypes,
          status: z.enum(questionStatuses, 'must be active or archived'),
        },
        'questions',
      ).describe('Matched by key.'),
      archive_missing: flag.describe('true: archives what the given lists lack.'),
      notify: notify.describe('Who is e-mailed about new dates, name or place, in ten minutes.'),
      plan_id: line(50).describe('Applies this plan.'),
    })
    .partial(),
  output: one(EventPlanSchema).extend({ effect: effect.optional() }),
  hints: { destructive: true, idempotent: false, openWorld: true },
} satisfies Declared
