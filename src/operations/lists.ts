// What lists take and answer: pages and filters.

import * as z from 'zod'
import { control, emailAddress, integer, line, oneOf, timestampInput } from './inputs.ts'

/** Default page sizes. MCP pages are shorter, to fit a context window. */
export const itemsOnAPage = { rest: 50, mcp: 20 }

/** Inputs of every list: keyset pages, read on by sending `next_cursor`. */
export const paging = {
  cursor: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,100}$/, 'must be the next_cursor of an earlier page')
    .optional()
    .describe('next_cursor of the previous page.'),
  limit: integer(1, 100).default(itemsOnAPage.rest).describe('Items on a page.'),
}

/** The body of a list answer. */
export const listOf = (item: z.ZodObject) =>
  z.strictObject({
    data: z.array(item),
    has_more: z.boolean(),
    next_cursor: z.string().nullable().describe('Send it as `cursor` for the next page; null on the last.'),
  })

// Sentences of descriptions. Over MCP the instructions of the server have them, once.
export const nextPage = 'While has_more, send next_cursor as cursor.'
export const forSync = 'For a sync, pass the start of the last one as updated_after.'

/** Any of a list of values; one alone, or several with commas between them, as a query has them, are such a list. */
export const anyOf = <const Values extends readonly string[]>(values: Values) =>
  z.preprocess(
    (value) => (typeof value === 'string' ? value.split(',') : value),
    z.array(oneOf(values), 'must be a list').min(1, 'must name at least one').max(values.length, 'must name each once'),
  )

/** Filters by time. `…_after` includes it, so that a sync loses no row of the same moment; `…_before` leaves it out. */
export const atOrAfter = timestampInput.optional().describe('Inclusive: RFC 3339 with offset.')
export const before = timestampInput.optional().describe('Exclusive.')

/** Former names of filters, which are refused with a hint. */
export const formerNames: Record<string, string> = {
  updated_since: 'updated_after',
  created_since: 'created_after',
  since: 'updated_after',
  until: 'created_before',
}

/** What a search of people takes; the words are matched by SQL. */
export const searchInput = line(100, new RegExp(`^[^${control}]{3,}$`), 'must be at least 3 characters of one line')

export const emailFilter = emailAddress.optional().describe('Only this e-mail address; case-insensitive.')
