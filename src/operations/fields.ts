// The fields that many resources share, each with its limits and the words that explain it. Limits stand in the database
// as constraints too: here they let an answer name every bad field at once.

import * as z from 'zod'

// Neither Postgres nor a mail header can hold these, and a lone surrogate is no text at all.
const isOneLine = (text: string) => !/\p{Cc}/u.test(text) && text.isWellFormed()

/** One line of text without control characters, trimmed. */
export const line = (max: number) =>
  z
    .string()
    .trim()
    .min(1, 'must not be empty')
    .max(max, `must be at most ${max} characters`)
    .refine(isOneLine, 'must be one line of text without control characters')

export const id = (of: string) => z.guid('must be a UUID').describe(`Identifier of the ${of}.`)
export const timestamp = z.iso.datetime().describe('RFC 3339, UTC.')
export const metadata = z
  .record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]))
  .describe("The organiser's own flat object, at most 50 keys.")
export const version = z.int().describe('Counts the edits; also the ETag of the object over REST.')
export const externalId = z.string().nullable().describe("The organiser's own identifier.")
export const money = z.int().describe('Minor units of the currency: cents of EUR, whole JPY, thousandths of KWD.')
export const currency = z.string().length(3).describe('ISO 4217.')

/** Inputs of every list: keyset pages, walked by sending back `next_cursor`. */
export const paging = {
  cursor: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,100}$/, 'must be the next_cursor of an earlier page')
    .optional()
    .describe('next_cursor of the previous page.'),
  limit: z
    .int('must be a whole number from 1 to 100')
    .min(1, 'must be at least 1')
    .max(100, 'must be at most 100')
    .optional()
    .describe('Items on a page, 1 to 100; 50 when left out.'),
}

/** The body of a list answer. */
export const listOf = (item: z.ZodObject) =>
  z.strictObject({
    data: z.array(item),
    has_more: z.boolean(),
    next_cursor: z.string().nullable().describe('Send it as `cursor` for the next page; null on the last.'),
  })

/** The body of an answer that holds one object. */
export const one = (item: z.ZodObject) => z.strictObject({ data: item })

// Inputs

/** Text of many lines. */
export const paragraphs = (max: number) =>
  z
    .string()
    .max(max, `must be at most ${max} characters`)
    .refine((text) => !text.includes('\0') && text.isWellFormed(), 'must be text')

export const timestampInput = z.iso
  .datetime({ offset: true, error: 'must be an RFC 3339 time with its offset, such as 2027-05-01T09:00:00Z' })
  .refine((time) => !/[+-](1[5-9]|2\d):?\d\d$/.test(time), 'must have an offset of at most 14 hours')
  .refine(
    (time) => Date.parse(time) >= Date.UTC(1900) && Date.parse(time) < Date.UTC(9999),
    'must be between the years 1900 and 9998',
  )
  .describe('RFC 3339 with offset.')

export const updatedSince = timestampInput
  .optional()
  .describe('Only what was created or changed at or after this time.')

export const currencyInput = z.string().regex(/^[A-Z]{3}$/, 'must be an ISO 4217 code of three capital letters')

export const emailAddress = z
  .string()
  .trim()
  .max(254, 'must be at most 254 characters')
  .pipe(z.email('must be an e-mail address'))
  .describe('E-mail address of the attendee; the QR ticket is sent here.')

export const externalIdInput = line(255).nullable().describe('Your own identifier, unique within the organisation.')

export const metadataInput = z
  .record(
    z
      .string()
      .min(1, 'must have keys of at least 1 character')
      .max(40, 'must have keys of at most 40 characters')
      .refine(isOneLine, 'must have keys that are one line of text'),
    z.union([paragraphs(500), z.number(), z.boolean(), z.null()], 'must be text, a number, a boolean or null'),
    'must be an object',
  )
  .refine((value) => Object.keys(value).length <= 50, 'must have at most 50 keys')
  .describe('Your own flat object: at most 50 keys, values of at most 500 characters.')

export const count = (min: number) =>
  z
    .int(`must be a whole number from ${min} to 1000000000`)
    .min(min, `must be at least ${min}`)
    .max(1_000_000_000, 'must be at most 1000000000')

export const dryRun = z
  .boolean('must be true or false')
  .optional()
  .describe('true: change nothing, only answer what would change and how many people it touches.')

export const ifVersion = z
  .int('must be a whole number')
  .max(2_147_483_647, 'must be a version that a read answered')
  .optional()
  .describe('Change it only if this is still its version; else version_mismatch. Over REST: the header If-Match.')

/** Any of the fields, but at least one: what a PATCH changes. */
export const changesOf = <Shape extends z.core.$ZodShape>(fields: Shape) =>
  z
    .strictObject(fields)
    .partial()
    .refine((changes) => Object.keys(changes).length > 0, 'must name at least one field to change')
    .meta({ minProperties: 1 })
    .describe('Fields to change. A field left out stays as it is; null clears it, where it may be empty.')

/** What a dry run answers beside the object as it would be. */
export const effect = z
  .strictObject({
    dry_run: z.boolean().describe('true: nothing was changed.'),
    orders: z.int().describe('Orders that it touches.'),
    attendees: z.int().describe('People that it touches.'),
  })
  .describe('What it did, or in a dry run would do, to others.')
