// What writes take and answer beside their object: dry runs, versions, whom to tell, and what came of it.

import * as z from 'zod'
import { currency, money } from './fields.ts'
import { flag, minorUnits, oneOf, paragraphs } from './inputs.ts'

// Sentences of descriptions. Over MCP the instructions of the server have them, once.
export const dryRunFirst = 'Call it with dry_run first, and ask who should be e-mailed.'
export const readAgain = 'On version_mismatch read it again.'

export const dryRun = flag.optional().describe('true: change nothing and answer the effect.')

export const amountRetained = minorUnits(0, 1_000_000_000_000).describe(
  'Fee kept from the cancelled price and not refunded, in minor units.',
)

const audiences = ['nobody', 'mailed', 'everybody'] as const

export const notify = oneOf(audiences).optional().describe('Who is e-mailed; mailed: unless send_email is false.')

/** Of operations that take `notify`, which says to whom it goes. */
export const message = paragraphs(1_000)
  .optional()
  .describe('Quoted in the e-mails: plain text, at most 1000 characters.')

/** What a cancellation takes. */
export const notice = { dry_run: dryRun, notify, message }

const versionInput = z
  .int('must be a whole number')
  .min(0, 'must be a version from a read')
  .max(2_147_483_647, 'must be a version from a read')

/** As published over MCP: one version. */
export const ifVersion = versionInput.optional().describe('Only if it still has this version; else version_mismatch.')

/** How many ETags If-Match may list. */
export const maximumTags = 20

/** As accepted: If-Match may list several. The SQL function takes a list. */
export const ifVersions = z
  .union(
    [versionInput.transform((version) => [version]), z.array(versionInput).max(maximumTags)],
    'must be a whole number',
  )
  .optional()

export const noChange = 'must name at least one field to change'

const leftOut = 'Fields left out are unchanged; null clears.'
/** Where MCP lists the tool that adds such an object, the fields are listed there alone. */
export const fieldsOf = (tool: string, others = '') => `Fields of ${tool}${others}. ${leftOut}`

/** The changes of a PATCH: any of the fields, at least one. */
export const changesOf = <Shape extends z.core.$ZodShape>(fields: Shape) =>
  z
    .strictObject(fields)
    .partial()
    .refine((changes) => Object.keys(changes).length > 0, noChange)
    .meta({ minProperties: 1 })
    .describe(leftOut)

/** Beside the object as it is. */
export const effect = z
  .strictObject({
    dry_run: z.boolean().describe('true: nothing was changed.'),
    orders: z.int().describe('Orders affected.'),
    attendees: z.int().describe('Attendees affected.'),
    waiting_list: z.int().describe('People on the waiting list of a cancelled event, or with a new offer.'),
    emails: z
      .int()
      .describe('E-mails queued: one for each address, to buyers one for each order, and one for each new offer.'),
    told: z
      .int()
      .describe(
        'People e-mailed: attendees, buyers of cancelled orders, the waiting list of a cancelled event, new or changed offers.',
      ),
    not_told: z
      .array(
        z.strictObject({
          reason: z
            .string()
            .describe(
              'notify_nobody, send_email_false, switched_off (opted out of news), told_before, registered_since (the change), nothing_to_tell, event_not_published, no_address or erased; for reminders the code of the order, or reminded_recently.',
            ),
          count: z.int(),
        }),
      )
      .describe('People not e-mailed, by reason.'),
    refund_due: money
      .nullable()
      .describe('Change in the refundable amount, in minor units. null: the key lacks orders:read.'),
    currency,
  })
  .describe('Other changes that the call made, or in a dry run would make.')

/** What every write answers beside its object, where there is something to say. */
export const warnings = z
  .array(z.strictObject({ code: z.string(), message: z.string().describe('For people.') }))
  .optional()
  .describe('Probable mistakes in the carried-out call. Left out when there are none.')
