// People by their e-mail address, wherever they stand. SQL: supabase/schemas/95-people/.

import * as z from 'zod'
import { dryRun, effect } from './changes.ts'
import { id, one, timestamp } from './fields.ts'
import { flag, line } from './inputs.ts'
import { type Declared, names } from './operation.ts'

/** Any that a row may have: not all of them are ones that guests are registered with. */
const address = line(254, /^[^@\s]+@[^@\s]+$/u, 'must be an e-mail address (in a URL, write + as %2B)')

const PersonSchema = z.strictObject({
  object: z.literal('person'),
  email: z.string(),
  people: z
    .array(
      z.strictObject({
        name: z.string().describe('Empty for a member known only by address.'),
        companies: z.array(z.string()).describe('At most three.'),
        attendees: z.int().describe('Their tickets, cancelled ones included.'),
        orders: z.int().describe('Orders whose contact they are.'),
        waiting_list_entries: z.int(),
        members: z.int().describe('1: they are a member of the organisation.'),
        passed_on: z
          .int()
          .describe('Objects that once had this address and name and passed to another person, or a former member.'),
        records: z
          .array(
            z.strictObject({
              object: z.string().describe('attendee, order, waiting_list_entry or member.'),
              id: z.guid(),
              passed_on: z.boolean(),
              event: z.strictObject({ id: id('event'), name: z.string().optional() }).nullable(),
              status: z.string().nullable(),
              created_at: timestamp,
            }),
          )
          .describe('The newest of these, at most twenty. Orders need orders:read.'),
      }),
    )
    .describe('One for each name with the address, at most fifty.'),
  hidden: z.int().describe('Number of further names, which only orders:read shows.'),
  more: z.boolean().describe('true: there are more people or rows.'),
})

export const findPerson = {
  name: 'find_person',
  title: 'Find a person',
  description: 'Finds everything with an e-mail address in all events, for each name.',
  method: 'GET',
  path: '/people',
  scope: 'attendees:read',
  lean: names(`
    people.name people.companies people.attendees people.orders people.waiting_list_entries people.members
    people.passed_on people.records.object people.records.event.name people.records.status hidden more
  `),
  input: z.strictObject({ email: address.describe('The whole address.') }),
  output: one(PersonSchema),
} satisfies Declared

export const KeptSchema = z
  .array(
    z.strictObject({
      what: z
        .string()
        .describe(
          'orders, tickets, check_ins, payment_notes, other_people, members, settings, names_not_found or sent (elsewhere).',
        ),
      count: z.int().nullable(),
      why: z.string().describe('For people.'),
      order_references: z
        .array(z.string())
        .describe('Up to 20 affected orders that the key may read; for tickets, those with valid ones.'),
    }),
  )
  .describe('Data that stays, with the reason.')

const PersonErasureSchema = z.strictObject({
  object: z.literal('person_erasure'),
  erased_at: timestamp.nullable().describe('null in a dry run.'),
  people: z.int().describe('Names.'),
  attendees: z.int(),
  orders: z.int().describe('Orders whose buyer they were.'),
  waiting_list_entries: z.int(),
  emails: z.int(),
  notifications: z.int().describe('Notifications with erased data or responses.'),
  webhook_deliveries: z.int().describe('Deliveries with an erased response, which may repeat the data.'),
  audit_entries: z.int(),
  idempotency_records: z.int(),
  remaining: z.int().describe('Rows left because time ran out: repeat the call.'),
  kept: KeptSchema,
})

export const erasePerson = {
  name: 'erase_person',
  title: 'Erase a person',
  description:
    'Erases the personal data of a person permanently: in tickets, orders, waiting lists and every log. Figures, money and tickets stay: if they are not coming, call cancel_attendee first. Confirm with the person first. On several_people ask which one, and send names.',
  method: 'POST',
  path: '/people/erase',
  errors: ['not_found', 'several_people'],
  scope: 'attendees:write',
  confirmed: 'always',
  input: z.strictObject({
    email: address.describe('The whole address.'),
    names: z.array(line(200)).min(1).max(100).optional().describe('Only people with these names.'),
    everyone: flag.optional().describe('true: everyone with the address.'),
    dry_run: dryRun,
  }),
  output: one(PersonErasureSchema).extend({ effect }),
  hints: { destructive: true, idempotent: false, openWorld: true },
} satisfies Declared
