// The list of operations held against the functions that are there. Whoever adds an operation need not touch this file,
// unless it answers an enum: then the table below has to say where the labels come from.

import { beforeAll, describe, expect, test } from 'vitest'
import * as z from 'zod'
import { operations } from '../../src/operations/index.ts'
import { isRead, type Operation, roleOf, scopes } from '../../src/operations/operation.ts'
import { row, studio } from '../support/database.ts'
import { enums, functionsIn, type SqlFunction } from './catalogue.ts'

const exports = operations.filter((operation) => (operation as Operation).csv !== undefined)
const pageOf = ({ name }: Operation) => `${name}_page`

let functions: SqlFunction[]
let labels: Record<string, string[]>
beforeAll(async () => {
  functions = await functionsIn('api')
  labels = await enums()
})

/** Postgres calls an array of `public.a` `public._a`. */
const elementOf = (type: string) => type.replace(/\._/, '.')

/** What stands in a field that is an enum: all of it, but * and the test are no types alike: one is subscribed to, the other is sent. */
const labelsIn = (field: string, type: string) =>
  labels[type]?.filter((label) => label !== (field === 'types' ? 'webhook_endpoint.test' : '*')).sort()

const functionOf = ({ name }: Operation) => functions.find((f) => f.name === name) as SqlFunction

describe.each(operations.map((operation) => [operation.name, operation] as const))('%s', (name, operation) => {
  test('is one function in schema api', () => {
    expect(functions.filter((f) => f.name === name)).toHaveLength(1)
  })

  test('takes its input as arguments, and a write its idempotency key as well', () => {
    const keys = Object.keys(operation.input.shape)
    expect(functionOf(operation).arguments.toSorted()).toEqual(
      (isRead(operation) ? keys : [...keys, 'idempotency_key', 'request_fingerprint']).sort(),
    )
  })

  test('may be called without an argument exactly where the input may lack it', () => {
    const optional = Object.entries(operation.input.shape).flatMap(([key, field]) =>
      z.safeParse(field, undefined).success ? [key] : [],
    )
    expect(functionOf(operation).optional.toSorted()).toEqual(
      (isRead(operation) ? optional : [...optional, 'idempotency_key', 'request_fingerprint']).sort(),
    )
  })

  test('takes an enum where its input is one, with the same labels', () => {
    const { arguments: names, types } = functionOf(operation)
    const typeOf = Object.fromEntries(names.map((argument, i) => [argument, types[i] as string]))
    const ofInput = Object.fromEntries(
      enumsIn(operation.input, '')
        // Inside an object or a list of them, the function takes JSON.
        .filter(([path]) => !path.slice(1).includes('.'))
        .map(([path, values]) => [path.slice(1), values.toSorted()]),
    )
    const ofFunction = Object.fromEntries(
      Object.entries(typeOf).flatMap(([argument, type]) =>
        labels[elementOf(type)] ? [[argument, labelsIn(argument, elementOf(type))] as const] : [],
      ),
    )
    expect(ofInput).toEqual(ofFunction)
  })

  test('changes an enum to the labels that its object has', () => {
    const object = name.replace(/^update_/, '')
    for (const [path, values] of enumsIn(operation.input, object)) {
      // apply_event takes the fields of an event, but not every status.
      if (name === 'apply_event' || !path.startsWith(`${object}.changes.`)) continue
      const type = enumOf[path.replace('.changes.', '.')]
      expect(values.toSorted(), path).toEqual(labelsIn(path.split('.').at(-1) ?? '', `public.${type}`))
    }
  })

  test('is stable when it is a GET, and volatile otherwise', () => {
    expect(functionOf(operation).volatility).toBe(isRead(operation) ? 's' : 'v')
  })

  test('may be executed by exactly the role of its scope, with its rights', () => {
    const { callers, securityDefiner } = functionOf(operation)
    expect([callers, securityDefiner]).toEqual([[roleOf(operation)], false])
  })

  test('says in a comment what it does', () => {
    expect(functionOf(operation).comment).toMatch(/\w/)
  })
})

const batched = operations.filter((o): o is Operation & { batch: string } => (o as Operation).batch !== undefined)

test('what a key may call is an operation, a batch or a page of one, or one of these', () => {
  const ofKeys = functions.filter(({ callers }) =>
    callers.some((role) => role === 'api_key' || role.startsWith('scope_')),
  )
  const known = [...operations.map((o) => o.name), ...batched.map((o) => o.batch), ...exports.map(pageOf)]
  expect(ofKeys.map(({ name }) => name).filter((name) => !known.includes(name))).toEqual([
    'begin_export',
    'call_by_names',
    'event_timezones',
    'explain_rule',
    'read_calls',
  ])
})

test.each(batched.map((o) => [o.batch, o] as const))(
  '%s is for those who may call it one by one, with their rights',
  (name, one) => {
    expect(functions.find((f) => f.name === name)).toMatchObject({
      callers: functionOf(one).callers,
      arguments: ['calls'],
      securityDefiner: false,
      volatility: 'v',
    })
  },
)

test('what a person confirms is declared, and refused by its function without', async () => {
  const { rows } = await studio.query<{ name: string; always: boolean }>(
    // Of a completion only before the start, of a refund only above what the organisation lets through.
    `select p.proname as name, p.prosrc ~ 'private.assert_confirmed' and p.prosrc !~ 'starts_at > now|confirm_refunds_above' as always
     from pg_proc p
     where p.pronamespace = 'api'::regnamespace and p.prosrc ~ 'private.assert_(notice_)?confirmed' order by 1`,
  )
  const declared = operations.filter(({ confirmed }) => confirmed !== undefined)
  expect(rows).toEqual(
    declared
      .map(({ name, confirmed }) => ({ name, always: confirmed === 'always' }))
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
  )
})

test.each(exports)('$name is read by pages, with the same filters and the same rights', (operation) => {
  const { fields: _, ...filters } = operation.input.shape
  const page = functions.find((f) => f.name === pageOf(operation))
  expect(page).toMatchObject({ callers: functionOf(operation).callers, securityDefiner: false, volatility: 's' })
  expect(page?.arguments.toSorted()).toEqual([...Object.keys(filters), 'cursor', 'size'].sort())
})

test.each(exports)('$name has the columns of its view, in its order', async ({ name, csv }) => {
  const { columns } = await row(
    `select array_agg(attname::text order by attnum) as columns from pg_attribute
     where attrelid = $1::regclass and attnum > 0 and attname <> 'organisation_id'`,
    [name.replace(/^export_(.+)s$/, 'public.$1_export')],
  )
  expect(columns).toEqual(csv?.columns)
})

test('scopes are the labels of public.api_scope', () => {
  expect(scopes).toEqual(labels['public.api_scope'])
})

// Which Postgres enum a field of an answer is; null where it is worked out and stored nowhere.
const enumOf: Record<string, string | null> = {
  'api_key.scopes': 'api_scope',
  'event.status': 'event_status',
  'event.phase': 'event_phase',
  'event.locale': 'locale',
  'event.guests_may': 'guest_act',
  'event.registration_page': 'registration_page',
  'event_plan.event.status': 'event_status',
  'event_plan.steps.action': null,
  'event_plan.steps.kind': null,
  'event_summary.interval': 'summary_interval',
  'ticket_type.status': 'ticket_type_status',
  'ticket_type.visibility': 'ticket_type_visibility',
  'ticket_type.sales_status': null,
  'waiting_list_entry.status': 'waiting_list_status',
  'promo_code.status': 'promo_code_status',
  'promo_code.state': null,
  'order.status': 'order_status',
  'payment_reminders.results.code': null,
  'payment_reminders.results.result': null,
  'order.cancellation_reason': 'cancellation_reason',
  'order.payment_status': 'payment_status',
  'order.source': 'request_source',
  'order.payment_method': 'payment_method',
  'payment.method': 'payment_method',
  'payment.source': 'request_source',
  'refund.method': 'payment_method',
  'refund.source': 'request_source',
  'attendee.status': 'attendee_status',
  'door_attendee.status': 'attendee_status',
  'attendee.ticket_email.status': 'email_status',
  'attendee_import.results.result': null,
  'attendee_import.results.status': 'attendee_status',
  'email.kind': 'email_kind',
  'email.status': null,
  'attendee.check_in.direction': 'check_in_direction',
  'check_in.direction': 'check_in_direction',
  'question.type': 'question_type',
  'question.ask': 'question_ask',
  'question.status': 'question_status',
  'check_in_point.admission': 'check_in_admission',
  'check_in_point.status': 'check_in_point_status',
  'door_list.event.status': 'event_status',
  'door_list.tickets.status': 'attendee_status',
  'check_in.result': 'check_in_result',
  'check_in.reason': 'check_in_reason',
  'audit_entry.action': 'audit_action',
  'audit_entry.object_type': 'audit_object',
  'audit_entry.actor': 'audit_actor',
  'audit_entry.source': 'request_source',
  // Of request_source, what a key calls by.
  'request.source': null,
  'webhook_endpoint.types': 'notification_type',
  'webhook_endpoint.status': 'webhook_endpoint_status',
  'notification.type': 'notification_type',
  'webhook_delivery.type': 'notification_type',
  'webhook_delivery.status': 'webhook_delivery_status',
}

const answered = operations.flatMap((operation) => enumsIn(operation.output, operation.name))

test('every enum in an answer is in the table, and everything in the table is answered', () => {
  expect([...new Set(answered.map(([path]) => path))].sort()).toEqual(Object.keys(enumOf).sort())
})

test.each(Object.entries(enumOf).filter((entry): entry is [string, string] => entry[1] !== null))(
  '%s is one of public.%s',
  (path, type) => {
    const values = answered.filter(([answeredPath]) => answeredPath === path)
    expect(values).not.toEqual([])
    const expected = labelsIn(path.split('.').at(-1) ?? '', `public.${type}`)
    for (const [, options] of values) expect(options.toSorted()).toEqual(expected)
  },
)

test('every enum is answered by the API, but the role of a member, two of a key, the order of a list and whom to tell', () => {
  const unanswered = Object.keys(labels).filter(
    (name) => name.startsWith('public.') && !Object.values(enumOf).includes(name.slice('public.'.length)),
  )
  expect(unanswered.toSorted()).toEqual([
    'public.api_key_confirmations',
    'public.api_key_kind',
    'public.event_sort',
    'public.notify',
    'public.organisation_role',
  ])
})

/** Enums below a schema as [path, options]. A path starts anew at whatever says what object it is: `attendee.status`. */
function enumsIn(schema: z.ZodType, path: string): [string, string[]][] {
  return walk(z.toJSONSchema(schema, { io: 'input' }), path)
}

type JsonSchema = z.core.JSONSchema.BaseSchema

function walk(schema: JsonSchema, path: string): [string, string[]][] {
  const object = asSchema(schema.properties?.object)?.const
  const here = typeof object === 'string' ? object : path
  return [
    ...(schema.enum ? [[here, schema.enum.map(String)] as [string, string[]]] : []),
    ...Object.entries(schema.properties ?? {}).flatMap(([key, value]) => walkInto(value, `${here}.${key}`)),
    ...walkInto(schema.items, here),
    ...(schema.anyOf ?? []).flatMap((value) => walkInto(value, here)),
  ]
}

function walkInto(schema: unknown, path: string): [string, string[]][] {
  const inner = asSchema(schema)
  return inner ? walk(inner, path) : []
}

function asSchema(value: unknown): JsonSchema | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonSchema) : undefined
}
