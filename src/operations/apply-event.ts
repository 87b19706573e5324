// apply_event: an event as it is to be, planned by one call and applied by the next. SQL: supabase/schemas/20-events/plans.sql.

import * as z from 'zod'
import { effect, notify } from './changes.ts'
import { pointFields } from './check-in-points.ts'
import { EventSchema, eventFields } from './events.ts'
import { one, timestamp } from './fields.ts'
import { flag, line, oneOf } from './inputs.ts'
import type { Operation } from './operation.ts'
import { promoCodeFields, promoCodeStatuses } from './promo-codes.ts'
import { ticketTypeFields, ticketTypeStatuses } from './ticket-types.ts'

/** A list may be this long. */
const most = 100

/** An id, slug, external_id or name: SQL looks it up. */
const reference = line(255)

/** For the ticket types of a promo code or a check-in point. */
const ticketTypes = z
  .array(reference)
  .max(most, `must be at most ${most} ticket types`)
  .describe('Names, ids or external_ids of ticket types, also of new ones; empty: all.')

const itemsOf = <Shape extends z.core.$ZodShape>(fields: Shape, kind: string) =>
  z
    .array(
      z
        .strictObject({
          id: reference.describe('The present id, external_id or name, where another is to be set.'),
          ...fields,
        })
        .partial(),
    )
    .max(most, `must be at most ${most} ${kind}; send the rest in another plan`)

const { ticket_type_ids: _codes, percent_off, amount_off, ...codeFields } = promoCodeFields
const { ticket_type_ids: _points, ...gateFields } = pointFields

const StepSchema = z.strictObject({
  action: z.enum(['create', 'change', 'archive', 'refuse']),
  kind: z.enum(['event', 'ticket_type', 'promo_code', 'check_in_point']),
  name: z.string().nullable(),
  id: z.guid().optional().describe('Once applied, of what was created.'),
  status: z.string().optional().describe('Archived or disabled, and the step leaves it so.'),
  changes: z
    .record(z.string(), z.unknown())
    .optional()
    .describe("In the plan: values, or of what is changed [old, new]; money in words, times in the event's zone."),
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
  expires_at: timestamp.describe('Until when it can be applied.'),
  event: z
    .strictObject({
      id: z.guid().nullable().describe('null: it would be a new one.'),
      name: z.string().nullable(),
      status: EventSchema.shape.status.nullable(),
      starts_at: z.string().nullable().describe("RFC 3339, in the event's zone."),
      ends_at: z.string().nullable(),
      timezone: z.string().nullable(),
    })
    .describe('As it is to be.'),
  notify: z.string().nullable().describe('Whom it tells.'),
  refusals: z.int().describe('Above 0: the plan cannot be applied.'),
  unchanged: z.int().describe('Objects that are so already.'),
  steps: z.array(StepSchema).describe('What is refused first; at most 100.'),
  more_steps: z.int(),
})

export const applyEvent = {
  name: 'apply_event',
  title: 'Plan and apply an event',
  description:
    'Sets up, changes, moves, copies or publishes an event; adds ticket types, promo codes, check-in points. The first call changes nothing and answers a plan; if it is what the person asked for, send its plan_id alone, else ask them. More places are offered to whoever waits. Example: {"event":"Data Days","changes":{"status":"published"},"ticket_types":[{"name":"VIP","price":29900}],"promo_codes":[{"code":"TEN","percent_off":10,"ticket_types":["VIP"]}]}. On plan_outdated plan again.',
  method: 'POST',
  path: '/event-plans',
  errors: ['not_found', 'plan_outdated', 'already_exists', 'ambiguous_name'],
  scope: 'events:write',
  toolset: 'events',
  confirmed: 'by_effect',
  input: z
    .strictObject({
      event: reference.describe('Left out: a new one, or the one with the slug or external_id in changes.'),
      copy_of: reference.describe('Makes a draft like this event; move says to when.'),
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
        .describe('Fields of the event; null clears.'),
      ticket_types: itemsOf(
        { ...ticketTypeFields, status: z.enum(ticketTypeStatuses, 'must be active or archived') },
        'ticket types',
      ).describe('Price in minor units. Matched by name; id: the present name, to rename.'),
      promo_codes: itemsOf(
        {
          ...codeFields,
          percent_off: percent_off.nullable(),
          amount_off: amount_off.nullable(),
          ticket_types: ticketTypes,
          status: z.enum(promoCodeStatuses, 'must be active or disabled'),
        },
        'promo codes',
      ).describe('For the ticket_types named; none: for all.'),
      check_in_points: itemsOf(
        {
          ...gateFields,
          ticket_types: ticketTypes,
          status: z.enum(ticketTypeStatuses, 'must be active or archived'),
        },
        'check-in points',
      ).describe('Several days at a door: one point with once_per_day.'),
      archive_missing: flag.describe('true: archives what the lists that are given do not name.'),
      notify: notify.describe('Whom to e-mail of new dates, name or place, in ten minutes.'),
      plan_id: line(50).describe('Applies this plan.'),
    })
    .partial(),
  output: one(EventPlanSchema).extend({ effect: effect.optional() }),
  hints: { destructive: true, idempotent: false, openWorld: true },
} satisfies Operation
