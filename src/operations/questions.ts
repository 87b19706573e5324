// Questions of an event to its guests. SQL: supabase/schemas/35-questions/questions.sql; answers: 60-attendees/answers.sql.

import * as z from 'zod'
import { changesOf, dryRun, effect, ifVersions, readAgain } from './changes.ts'
import { id, one, versioned } from './fields.ts'
import { characters, count, flag, integer, line, oneOf, ticketTypeIds } from './inputs.ts'
import { listOf, paging } from './lists.ts'
import { locales } from './locales.ts'
import type { Declared } from './operation.ts'

const types = [
  'text',
  'long_text',
  'number',
  'yes_no',
  'one_of',
  'several_of',
  'date',
  'email',
  'phone',
  'country',
] as const
const asks = ['registration', 'ticket_page', 'both'] as const
export const questionStatuses = ['active', 'archived'] as const

const translation = z
  .strictObject({ label: line(300), help: line(1000), options: z.record(line(100), line(200)) })
  .partial()

export const QuestionSchema = z.strictObject({
  object: z.literal('question'),
  id: id('question'),
  event_id: id('event'),
  key: z.string().describe('Key of its answers.'),
  label: z.string().describe('The question, in the language of the event.'),
  help: z.string().nullable(),
  translations: z
    .record(z.string(), z.unknown())
    .describe('Words in other languages: { de: { label, help, options: { KEY: label } } }.'),
  type: z.enum(types),
  options: z
    .array(z.strictObject({ key: z.string(), label: z.string() }))
    .nullable()
    .describe('Choices of one_of and several_of; else null.'),
  required: z.boolean().describe('Pages for guests refuse a form without it; other writers may leave it open.'),
  ask: z.enum(asks).describe('Where guests are asked.'),
  ticket_type_ids: z.array(id('ticket type')).describe('Ticket types whose holders are asked; empty: all.'),
  at_door: z.boolean().describe('Whether the door sees the answer.'),
  sensitive: z.boolean().describe('Whether its answers are kept out of e-mails, webhooks and logs.'),
  delete_after_days: z.int().nullable().describe('For a sensitive question: days after the event.'),
  position: z.int(),
  status: z.enum(questionStatuses),
  ...versioned,
})

const essentials = ['id', 'key', 'label', 'type', 'options', 'required', 'ask', 'status']

export const listQuestions = {
  name: 'list_questions',
  title: 'List questions',
  description: 'Lists the questions of an event to its guests, in their order.',
  method: 'GET',
  path: '/events/{event_id}/questions',
  scope: 'events:read',
  unlisted: true,
  lean: essentials,
  input: z.strictObject({ event_id: id('event'), ...paging }),
  output: listOf(QuestionSchema),
} satisfies Declared

/** Fields that can be set at creation and changed later. */
const changeable = {
  label: line(300).describe('The question, in the language of the event.'),
  help: line(1000).nullable().describe('Explanation below the question.'),
  translations: z
    .partialRecord(oneOf(locales), translation)
    .describe('By language: { de: { label, help, options: { KEY: label } } }.'),
  options: z
    .array(z.strictObject({ key: line(100), label: line(200) }))
    .min(1, 'must name at least one')
    .max(50, 'must be at most 50')
    .nullable()
    .describe('Choices of one_of and several_of.'),
  required: flag.describe('Default: false.'),
  ask: oneOf(asks).describe('Default: both.'),
  ticket_type_ids: ticketTypeIds.describe('Ticket types whose holders are asked; empty: all.'),
  at_door: flag.describe('true: the door sees the answer.'),
  delete_after_days: integer(0, 3650).nullable().describe('Days after the event; required if sensitive.'),
  position: count(0).describe('In the list, from 0.'),
}

export const questionFields = {
  key: z
    .string()
    .check(characters(40))
    .regex(/^[a-z][a-z0-9_]*$/, 'must be lower-case letters, digits and underscores, the first a letter')
    .describe('Key of its answers, such as diet.'),
  type: oneOf(types).describe('Default: text.'),
  sensitive: flag.describe('true: kept out of e-mails, webhooks and logs, and deleted after the event.'),
  ...changeable,
}

export const createQuestion = {
  name: 'create_question',
  title: 'Create a question',
  description:
    'Adds a question to an event. Guests answer while registering or on their ticket page; register_attendee and update_attendee take answers by key.',
  method: 'POST',
  path: '/events/{event_id}/questions',
  errors: ['already_exists'],
  scope: 'events:write',
  unlisted: true,
  lean: essentials,
  input: z
    .strictObject({ event_id: id('event'), ...questionFields })
    .partial()
    .required({ event_id: true, key: true, label: true }),
  output: one(QuestionSchema),
  hints: { destructive: false, idempotent: false, openWorld: false },
} satisfies Declared

export const updateQuestion = {
  name: 'update_question',
  title: 'Change a question',
  description: `Changes a question; status archived stops asking it, and its answers stay. ${readAgain}`,
  method: 'PATCH',
  path: '/questions/{question_id}',
  scope: 'events:write',
  unlisted: true,
  lean: essentials,
  input: z.strictObject({
    question_id: id('question'),
    changes: changesOf({ ...changeable, status: z.enum(questionStatuses, 'must be active or archived') }),
    if_version: ifVersions,
  }),
  output: one(QuestionSchema),
  hints: { destructive: true, idempotent: true, openWorld: false },
} satisfies Declared

export const AnswerRemindersSchema = z.strictObject({
  object: z.literal('answer_reminders'),
  event_id: id('event'),
  reminded: z.int().describe('Guests who are reminded. effect.not_told counts the others by reason.'),
})

export const remindUnanswered = {
  name: 'remind_unanswered',
  title: 'Remind guests of questions',
  description:
    'E-mails the guests of an event who have not answered its required questions, each at most once a day: the questions and a link to answer them.',
  method: 'POST',
  path: '/events/{event_id}/questions/remind',
  errors: ['event_not_published', 'event_ended'],
  scope: 'attendees:write',
  unlisted: true,
  confirmed: 'by_effect',
  input: z.strictObject({ event_id: id('event'), dry_run: dryRun }),
  output: one(AnswerRemindersSchema).extend({ effect }),
  hints: { destructive: false, idempotent: false, openWorld: true },
} satisfies Declared
