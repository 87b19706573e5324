// Inputs that several operations take. Limits are constraints in the database too; here they let one answer name every bad field.

import { domainToASCII } from 'node:url'
import * as z from 'zod'
import { id } from './fields.ts'

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

/** One of a list of values. */
export const oneOf = <const Values extends readonly string[]>(values: Values) =>
  z.enum(values, `must be one of ${values.join(', ')}`)

/** Multi-line text. */
export const paragraphs = (max: number) =>
  z
    .string()
    .check(characters(max))
    .regex(new RegExp(`^[^${nul}]*$`), 'must not contain the character U+0000')
    .refine(isWellFormed, 'must be text in Unicode')

/** Multi-line text of which something is seen. */
export const prose = (max: number) =>
  paragraphs(max).regex(/[^\s]/, 'must not be empty').refine(isSeen, 'must not be empty')

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
      'must be an RFC 3339 time with offset, such as 2027-05-01T09:00:00Z, from 1900 to 9998 and with at most 9 decimals',
    abort: true,
  })
  .refine(isInCalendar, 'must be a calendar date from 1900 on')
  .meta({ format: 'date-time' })
  .describe('RFC 3339 with offset.')

export const webUrl = line(
  2000,
  new RegExp(String.raw`^https?:[/]{2}[^/?#@\\\s${control}]+([/?#][^\s${control}]*)?$`),
  'must be an http or https URL without a user name or password',
)

/** By https, or by http on this machine. */
export const secureUrl = line(
  2000,
  new RegExp(
    String.raw`^(https:[/]{2}([^\][/?#@:\s${control}]+|\[[0-9a-fA-F:.]+\])|http:[/]{2}(localhost|127\.0\.0\.1|\[::1\]))(:[0-9]{1,5})?([/?#][^\s${control}]*)?$`,
  ),
  'must be an https address without credentials',
).refine(URL.canParse, 'must be a URL')

export const currencyInput = z.string().regex(/^[A-Z]{3}$/, 'must be an ISO 4217 code of three capital letters')

// As in private.is_email_address, which is held against it.
const atoms = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
const end = '[A-Za-z0-9-]{0,61}[A-Za-z0-9]'
const mailbox = new RegExp(`^${atoms}([.]${atoms})*@([A-Za-z0-9](${end})?[.])+[A-Za-z]${end}$`)

/** Why a text is no address: what is invisible, or no ASCII, by its code point. */
function whyNoAddress(text: string): string {
  const [odd] = /[^!-~]/u.exec(text) ?? []
  if (odd === undefined) return 'must be an e-mail address'
  if (odd === ' ') return 'must be an e-mail address without a space (in a URL, write + as %2B)'
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

const externalIdInput = line(255).nullable().describe('Your own identifier, unique within the organisation.')

const [least, most] = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]
const numberKept = `must be a number that can be stored exactly: a whole number between ${least} and ${most}, or one of at most 15 digits`

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

/** Answers to the questions of an event, which Postgres checks by the type of each. */
export const answersInput = z
  .record(
    z.string().check(characters(40, 'must have keys of at most 40 characters')),
    z.union(
      [
        paragraphs(5000),
        z.number().min(least, numberKept).max(most, numberKept),
        z.boolean(),
        z.array(line(100)).max(50, 'must be at most 50'),
        z.null(),
      ],
      'must be text, a number, true or false, a list of keys, or null',
    ),
    'must be an object',
  )
  .refine((value) => Object.keys(value).length <= 50, 'must have at most 50 keys')
  .meta({ maxProperties: 50 })
  .describe('By key of the question (list_questions); null takes one back.')

/** What the organiser puts on an object. */
export const ownInputs = { external_id: externalIdInput, metadata: metadataInput }

const atLeast = (min: number) => `must be at least ${min}`
const atMost = (max: number) => `must be at most ${max}`

export const integer = (min: number, max: number) =>
  z.int(`must be a whole number from ${min} to ${max}`).min(min, atLeast(min)).max(max, atMost(max))

export const count = (min: number) => integer(min, 1_000_000_000)

export const minorUnits = (min: number, max: number) =>
  z.int('must be a whole number of minor units').min(min, atLeast(min)).max(max, atMost(max))

export const flag = z.boolean('must be true or false')

export const ticketTypeIds = z.array(id('ticket type')).max(100, 'must be at most 100 ticket types')

type Fields = Record<string, unknown>

/** A check between fields, made even if another one is bad, so that one answer names all. */
export const between = (field: string, holds: (input: Fields) => boolean, error: string) =>
  z.refine<Fields>(holds, { path: [field], error, when: ({ value }) => typeof value === 'object' && value !== null })

export const oneRequired = (field: string, other: string) =>
  between(field, (input) => (input[field] ?? input[other]) != null, `is required, unless ${other} is given`)

export const onlyOne = (field: string, other: string, why: string) =>
  between(field, (input) => input[field] == null || input[other] == null, `must not be combined with ${other}: ${why}`)
