// Fields of answers that several objects have.

import * as z from 'zod'

export const id = (of: string) => z.guid().describe(`Identifier of the ${of}.`)
export const timestamp = z.iso.datetime().describe('RFC 3339, UTC.')
const metadata = z
  .record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]))
  .describe('Your own flat JSON object, at most 50 keys.')
const version = z.int().describe('Number of edits; the ETag over REST begins with it.')
const externalId = z.string().nullable().describe('Your own identifier.')
/** What the organiser puts on an object. */
export const ownFields = { external_id: externalId, metadata }
/** The end of every object that can be changed. */
export const versioned = { version, created_at: timestamp, updated_at: timestamp }
/** What is an amount of money, however it is described. */
export const moneyFields = z.registry<{ unit: 'minor' }>()
export const money = z
  .int()
  .register(moneyFields, { unit: 'minor' })
  .describe('Minor units of the currency: cents of EUR, whole JPY, thousandths of KWD.')
export const currency = z.string().length(3).describe('ISO 4217.')

/** The body of an answer that holds one object. */
export const one = (item: z.ZodObject) => z.strictObject({ data: item })

/** The body of the answer to a deletion. */
export const deleted = (object: string, of: string) =>
  one(z.strictObject({ object: z.literal(object), id: id(of), deleted: z.literal(true) }))

/** What the door sees of an attendee's answers. */
export const answersAtDoor = z
  .record(z.string(), z.strictObject({ label: z.string(), answer: z.string() }))
  .describe('By key: the answers to questions with at_door, in words.')
