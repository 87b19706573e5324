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
export const externalId = z.string().nullable().describe("The organiser's own identifier.")
export const money = z.int().describe('Minor units of the currency (cents).')
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
