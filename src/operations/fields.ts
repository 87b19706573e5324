// Fields, texts and helpers that several resources share. Limits are constraints in the database too; here they let one answer
// name every bad field.

import { domainToASCII } from 'node:url'
import * as z from 'zod'

// Patterns are published, so they use only what ECMA-262, Python's re and Go's RE2 share: no lookahead, no \p{…}.
// Neither Postgres nor a mail header can hold control characters.
export const control = String.raw`\x00-\x1f\x7f-\x9f`
const nul = String.raw`\x00`
const oneLine = new RegExp(String.raw`^\s*[^\s${control}][^${control}]*$`)
export const withoutControl = new RegExp(`^[^${control}]*$`)

/** Rejects lone surrogates, which no portable pattern can. */
const isWellFormed = (text: string) => text.isWellFormed()

/** Rejects what nobody sees, as private.is_one_line does. */
const isSeen = (text: string) => /[^\s\p{DI}\u2800\ufff9-\ufffb]/u.test(text)

/** A maximum length in characters, as Postgres and JSON Schema count them: zod's `.max` counts UTF-16 code units. */
export function characters(max: number, error = `must be at most ${max} characters`) {
  const check = z.check<string>(({ value, issues }) => {
    if (value.length > max && (value.length > 2 * max || [...value].length > max)) {
      issues.push({ code: 'custom', message: error, input: value, continue: true })
    }
  })
  // zod reads `maxLength` of the JSON Schema from here.
  check._zod.onattach.push((schema) => {
    schema._zod.bag.maximum = max
  })
  return check
}

/** One line of text without control characters, trimmed. A `pattern` of its own must reject control characters itself. */
export const line = (max: number, pattern = oneLine, error = 'must be one line of text without control characters') =>
  z
    .string()
    .trim()
    .min(1, { error: 'must not be empty', abort: true })
    .check(characters(max))
    .regex(pattern, error)
    .refine(isSeen, 'must not be empty')
    .refine(isWellFormed, 'must be text in Unicode')

export const id = (of: string) => z.guid().describe(`Identifier of the ${of}.`)
export const timestamp = z.iso.datetime().describe('RFC 3339, UTC.')
export const metadata = z
  .record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]))
  .describe("The organiser's own flat object, at most 50 keys.")
export const version = z.int().describe('Number of edits; over REST the ETag begins with it.')
export const externalId = z.string().nullable().describe("The organiser's own identifier.")
/** What is an amount of money, however it is described. */
export const moneyFields = z.registry<{ unit: 'minor' }>()
export const money = z
  .int()
  .register(moneyFields, { unit: 'minor' })
  .describe('Minor units of the currency: cents of EUR, whole JPY, thousandths of KWD.')
export const currency = z.string().length(3).describe('ISO 4217.')

/** Default page sizes. MCP pages are shorter, to fit a context window. */
export const itemsOnAPage = { rest: 50, mcp: 20 }

/** Inputs of every list: keyset pages, read on by sending `next_cursor`. */
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
    .default(itemsOnAPage.rest)
    .describe('Items on a page.'),
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

/** Sentences of descriptions. Over MCP the instructions of the server have them, once. */
export const dryRunFirst = 'First call it with dry_run, and ask whom to tell.'
export const nextPage = 'While has_more, send next_cursor as cursor.'
export const readAgain = 'On version_mismatch read it again.'
export const forSync = 'For a sync, pass when the last one started as updated_since.'

// Inputs

/** One of a list of values. */
export const oneOf = <const Values extends readonly string[]>(values: Values) =>
  z.enum(values, `must be one of ${values.join(', ')}`)

/** Any of a list of values; one alone, or several with commas between them, as a query has them, are such a list. */
export const anyOf = <const Values extends readonly string[]>(values: Values) =>
  z.preprocess(
    (value) => (typeof value === 'string' ? value.split(',') : value),
    z.array(oneOf(values), 'must be a list').min(1, 'must name at least one').max(values.length, 'must name each once'),
  )

/** Multi-line text. */
export const paragraphs = (max: number) =>
  z
    .string()
    .check(characters(max))
    .regex(new RegExp(`^[^${nul}]*$`), 'must not hold the character U+0000')
    .refine(isWellFormed, 'must be text in Unicode')

// zod's own pattern of a time is 300 characters long, and allows any year, offset and number of decimals.
const years = '(19|[2-8][0-9]|9[0-8])[0-9]{2}|99[0-8][0-9]|999[0-8]'
const rfc3339 = new RegExp(
  `^(${years})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])$`,
)

/** The day exists in its month, which `format` says in the JSON Schema; and in UTC the time is not before 1900. */
function isInCalendar(time: string): boolean {
  const [year, month, day] = time.split(/[-T]/, 3).map(Number) as [number, number, number]
  return day <= new Date(Date.UTC(year, month, 0)).getUTCDate() && Date.parse(time) >= Date.UTC(1900)
}

export const timestampInput = z
  .string()
  .regex(rfc3339, {
    error:
      'must be an RFC 3339 time with its offset, such as 2027-05-01T09:00:00Z, from 1900 to 9998 and with at most 9 decimals',
    abort: true,
  })
  .refine(isInCalendar, 'must be a date of the calendar, from 1900 on')
  .meta({ format: 'date-time' })
  .describe('RFC 3339 with offset.')

export const updatedSince = timestampInput.optional().describe('Only objects created or changed at or after this time.')

export const createdSince = timestampInput.optional().describe('At or after this time.')

/** What a search of people takes; the words are matched by SQL. */
export const searchInput = line(100, new RegExp(`^[^${control}]{3,}$`), 'must be at least 3 characters of one line')

export const currencyInput = z.string().regex(/^[A-Z]{3}$/, 'must be an ISO 4217 code of three capital letters')

// As in private.is_email_address, which is held against it.
const atoms = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
const end = '[A-Za-z0-9-]{0,61}[A-Za-z0-9]'
const mailbox = new RegExp(`^${atoms}([.]${atoms})*@([A-Za-z0-9](${end})?[.])+[A-Za-z]${end}$`)

/** Why a text is no address: what is invisible, or no ASCII, by its code point. */
function whyNoAddress(text: string): string {
  const [odd] = /[^!-~]/u.exec(text) ?? []
  if (odd === undefined) return 'must be an e-mail address'
  if (odd === ' ') return 'must be an e-mail address, without a blank (in a URL, + is written %2B)'
  const at = text.lastIndexOf('@') + 1
  const domain = domainToASCII(text.slice(at))
  const isLetter = /\p{L}/u.test(odd) && mailbox.test(text.slice(0, at) + domain)
  if (isLetter) return `must be an e-mail address, with its domain written as ${domain}`
  const codePoint = odd.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')
  return `must be an e-mail address, without the character U+${codePoint}`
}

export const emailAddress = z
  .string()
  .trim()
  .check(characters(254), z.email({ pattern: mailbox, error: ({ input }) => whyNoAddress(String(input)) }))
  .refine((address) => address.indexOf('@') <= 64, 'must have at most 64 characters before the @')
  .describe('E-mail address of the attendee; the ticket is sent to it.')

export const emailFilter = emailAddress.optional().describe('Only this e-mail address; case-insensitive.')

export const externalIdInput = line(255).nullable().describe('Your own identifier, unique within the organisation.')

const [least, most] = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]
const numberKept = `must be a number that is kept exactly: a whole number between ${least} and ${most}, or one of at most 15 digits`

export const metadataInput = z
  .record(
    z
      .string()
      .min(1, 'must have keys of at least 1 character')
      .check(characters(40, 'must have keys of at most 40 characters'))
      .regex(withoutControl, 'must have keys that are one line of text')
      .refine(isWellFormed, 'must have keys that are text in Unicode'),
    z.union([paragraphs(500), z.number().min(least, numberKept).max(most, numberKept), z.boolean(), z.null()], {
      error: ({ input }) => (typeof input === 'number' ? numberKept : 'must be text, a number, a boolean or null'),
    }),
    'must be an object',
  )
  .refine((value) => Object.keys(value).length <= 50, 'must have at most 50 keys')
  .meta({ maxProperties: 50 })
  .describe('Merged; null removes keys.')

export const count = (min: number) =>
  z
    .int(`must be a whole number from ${min} to 1000000000`)
    .min(min, `must be at least ${min}`)
    .max(1_000_000_000, 'must be at most 1000000000')

export const dryRun = z
  .boolean('must be true or false')
  .optional()
  .describe('true: change nothing, only answer what would change.')

export const amountRetained = z
  .int('must be a whole number of minor units')
  .min(0, 'must be at least 0')
  .max(1_000_000_000_000, 'must be at most 1000000000000')
  .describe('Kept of what was cancelled, as a fee, and not refunded; in minor units.')

const audiences = ['nobody', 'mailed', 'everybody'] as const

export const notify = oneOf(audiences).optional().describe('Whom to e-mail; mailed: unless send_email is false.')

/** Of operations that take `notify`, which says to whom it goes. */
export const message = paragraphs(1_000).optional().describe('Quoted in them: plain text, at most 1000 characters.')

const versionInput = z
  .int('must be a whole number')
  .min(0, 'must be a version that a read answered')
  .max(2_147_483_647, 'must be a version that a read answered')

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
    waiting_list: z
      .int()
      .describe('People on the waiting list of a cancelled event, or who are offered a place and so are e-mailed.'),
    emails: z
      .int()
      .describe('E-mails queued: one for each address, to buyers one for each order, and one for each new offer.'),
    told: z
      .int()
      .describe(
        'People told: attendees, buyers of cancelled orders, the waiting list of a cancelled event, offers that are new or whose event changed.',
      ),
    not_told: z
      .array(
        z.strictObject({
          reason: z
            .string()
            .describe(
              'notify_nobody, send_email_false, switched_off (by the guest, of changes), told_before, registered_since (the change), nothing_to_tell, event_not_published, no_address or erased; of reminders the code of the order.',
            ),
          count: z.int(),
        }),
      )
      .describe('People not told, by reason.'),
    refund_due: money.nullable().describe('What becomes refundable, in minor units. null: the key lacks orders:read.'),
    currency,
  })
  .describe('What it changed besides the object, or in a dry run would change.')

/** What every write answers beside its object, where there is something to say. */
export const warnings = z
  .array(z.strictObject({ code: z.string(), message: z.string().describe('For people.') }))
  .optional()
  .describe('What was done, and probably not meant. Left out when there are none.')
