// REST held against MCP held against OpenAPI: three projections of one list must say the same of every operation.

import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { schemaFiles } from '../../../scripts/project-databases.ts'
import { describeApi } from '../../../src/http/openapi/document.ts'
import { examples, isError } from '../../../src/http/openapi/examples.ts'
import { type ErrorCode, errorCodes, errors } from '../../../src/operations/error-codes.ts'
import { operations } from '../../../src/operations/index.ts'
import { besideChanges, errorsOf, isRead, type Operation, pathParameters } from '../../../src/operations/operation.ts'
import { notificationTypes } from '../../../src/operations/webhook-endpoints.ts'
import { argumentsOf, codesOf, describedOperations, resolve, type Schema } from './support.ts'

const document = describeApi(operations)
const described = describedOperations(document)

/** A body is one object, or one of several. */
const formsOf = (body: Schema): Schema[] => (body.oneOf as Schema[] | undefined) ?? [body]

const describedAs = ({ method, path }: Operation) => described.get(`${method} ${path}`)

test('every operation is one path and method, every picture of it another path, and nothing else is described', () => {
  const expected = operations.flatMap(({ name, method, path, pictures = {}, csv }) => [
    [`${method} ${path}`, name],
    ...(csv === undefined ? [] : [[`GET ${path}`, `${name}_csv`]]),
    ...Object.keys(pictures).map((extension) => [`GET ${path}.${extension}`, `${name}_${extension}`]),
  ])
  const entries = [...described].map(([route, { operationId }]) => [route, operationId])
  expect(entries.toSorted()).toEqual(expected.toSorted())
})

describe.each(operations.map((operation) => [operation.name, operation] as const))('%s', (_name, operation) => {
  const { parameters = [], requestBody } = describedAs(operation) ?? {}
  const tool = { inputSchema: argumentsOf(operation), outputSchema: z.toJSONSchema(operation.output) }
  const fields = tool.inputSchema.properties as Record<string, Record<string, unknown>>
  const required = tool.inputSchema.required ?? []
  const body = requestBody?.content['application/json']?.schema
  const forms = body === undefined ? [] : formsOf(body)
  const etagOnRead = isRead(operation) && describedAs(operation)?.responses['200']?.headers.ETag !== undefined
  const names = (place: string) => parameters.filter((p) => p.in === place).map(({ name }) => name)

  test('takes over REST what its tool takes: in the path, the query of a read, or the body', () => {
    const bodyFields =
      operation.method === 'PATCH'
        ? ['changes', ...besideChanges(operation)]
        : forms.flatMap((form) => Object.keys(form.properties ?? {}))
    const headers = [
      ...(fields.idempotency_key ? ['Idempotency-Key'] : []),
      ...(fields.if_version ? ['If-Match'] : []),
      ...(etagOnRead ? ['If-None-Match'] : []),
    ]
    expect(names('header')).toEqual(headers)
    expect(names('path')).toEqual(pathParameters(operation))
    const taken = new Set([...names('path'), ...names('query'), ...bodyFields])
    expect([...taken].sort()).toEqual(
      Object.keys(fields)
        .filter((name) => name !== 'idempotency_key' && name !== 'if_version')
        .sort(),
    )
    if (isRead(operation)) expect(body).toBeUndefined()
    else expect(names('query')).toEqual([])
  })

  test('says of each field what its tool says', () => {
    for (const { name, schema, required: isRequired = false } of parameters.filter((p) => p.in !== 'header')) {
      // A page over MCP is shorter, when nobody says how long. Ticket types come all at once, for an event has a handful.
      const page = operation.name === 'list_ticket_types' ? 100 : 50
      const said = name === 'limit' ? { ...fields.limit, default: page } : fields[name]
      if (name === 'order_id' && operation.path.includes('{order_id}')) {
        expect(schema).toMatchObject({ type: 'string', description: 'Identifier of the order, or its reference.' })
        continue
      }
      expect(schema, name).toEqual(said)
      expect(isRequired, name).toBe(required.includes(name))
    }
    if (body === undefined) return
    if (operation.method === 'PATCH') {
      const beside = Object.fromEntries(besideChanges(operation).map((name) => [name, fields[name]]))
      const { properties, ...said } = fields.changes as { properties: object }
      return expect(body).toEqual({ ...said, minProperties: 1, properties: { ...properties, ...beside } })
    }
    for (const form of forms) {
      expect(form.additionalProperties).toBe(false)
      for (const [name, schema] of Object.entries(form.properties ?? {})) {
        // Items that have forms are told apart in the document alone.
        const { items: _, ...said } = fields[name] ?? {}
        const hasForms = operation.body?.parts !== undefined && 'items' in (fields[name] ?? {})
        expect(schema, name).toEqual(
          hasForms ? { ...said, items: expect.objectContaining({ oneOf: expect.any(Array) }) } : fields[name],
        )
      }
    }
    const inBody = required.filter((name) => !pathParameters(operation).includes(name))
    if (forms.length === 1) expect((forms[0]?.required ?? []).toSorted()).toEqual(inBody.sort())
    expect(requestBody?.required).toBe(inBody.length > 0 || forms.length > 1)
  })

  test('answers what its tool answers', () => {
    const { $schema: _, ...output } = tool.outputSchema
    const successes = Object.entries(describedAs(operation)?.responses ?? {}).filter(([status]) => Number(status) < 300)
    expect(successes.map(([status]) => status).slice(1)).toEqual((operation as Operation).later ? ['202'] : [])
    // A later release may add fields.
    const open = JSON.parse(JSON.stringify(output).replaceAll(',"additionalProperties":false', ''))
    for (const [, { content }] of successes) expect(content?.['application/json']?.schema).toEqual(open)
  })

  test('answers 304 exactly where a read has an ETag', () => {
    expect(describedAs(operation)?.responses['304'] !== undefined).toBe(etagOnRead)
  })

  test('names its scope, and stands in a chapter that is described', () => {
    const { summary, description, tags, 'x-required-scope': scope } = describedAs(operation) ?? {}
    expect(scope).toBe(operation.scope)
    expect(summary).toBe(operation.title)
    expect(description).toContain(operation.scope === null ? 'Any valid key' : `\`${operation.scope}\``)
    expect(
      document.tags?.map(({ name }) => name),
      'add its object to src/http/openapi/tags.ts',
    ).toEqual(expect.arrayContaining(tags ?? ['no tag']))
  })
})

test('what is a header over REST is called so, and nothing is called a tool', () => {
  const texts = [...described.values()].map(({ responses: _, ...request }) => JSON.stringify(request, withoutExamples))
  for (const text of texts) expect(text).not.toMatch(/idempotency_key(?!_reused)|if_version|\btools?\b/)
  expect(described.get('POST /events/{event_id}/registrations')?.description).toContain('Send an Idempotency-Key')
})

const withoutExamples = (name: string, value: unknown) => (name === 'examples' ? undefined : value)

describe.each(operations.map((operation) => [operation.name, operation] as const))('%s', (name, operation) => {
  test('answers a closed list of codes, each with its own status', () => {
    for (const [status, codes] of codesOf(operation)) {
      for (const code of codes) expect(errors[code as ErrorCode].status, `${name} ${code}`).toBe(status)
    }
    const all = [...codesOf(operation).values()].flat()
    expect(new Set(all).size).toBe(all.length)
    expect(all).toEqual(expect.arrayContaining([...errorsOf(operation), 'rate_limited', 'internal_error']))
    const recorded = examples.filter((e) => e.operation === name && isError(e))
    for (const { body } of recorded) expect(all).toContain((body.error as { code: string }).code)
  })

  test('declares the codes that the comment on its function names', () => {
    const [, comment = ''] = new RegExp(`comment on function api\\.${name}\\s+is\\s+'((?:[^']|'')*)'`).exec(sql) ?? []
    // Of every write, and of every key.
    const byRule = ['validation_failed', 'idempotency_key_reused', 'missing_scope']
    const named = errorCodes.filter((code) => errorSentence(comment).includes(code) && !byRule.includes(code))
    expect(errorsOf(operation).toSorted()).toEqual(named.sort())
  })
})

/** What follows the first status of an error, word by word. */
const errorSentence = (comment: string) => /\b4\d\d .*$/s.exec(comment)?.[0].split(/[^a-z_]+/) ?? []

const sql = schemaFiles('supabase')
  .map((file) => readFileSync(`supabase/${file}`, 'utf8'))
  .join('\n')

test('every body and every object has a name, and a body that has forms is one of named ones', () => {
  const raw = describeApi(operations)
  const bodies = Object.values(raw.paths ?? {}).flatMap((methods) =>
    Object.values(methods as Record<string, Described>).flatMap(({ requestBody }) => requestBody ?? []),
  )
  expect(bodies.length).toBeGreaterThan(15)
  for (const { content } of bodies) {
    expect(content['application/json'].schema).toEqual({ $ref: expect.stringMatching(/^#\/components\/schemas\/\w+$/) })
  }
  expect(raw.components?.schemas?.RegistrationRequest).toEqual({
    oneOf: ['GuestRegistration', 'GroupRegistration'].map((name) => ({ $ref: `#/components/schemas/${name}` })),
  })
  // Only what narrows the code of an error is without one.
  const unnamed = Object.entries(raw.components?.schemas ?? {}).flatMap(([name, schema]) =>
    typeof schema !== 'object' || 'allOf' in schema || name === 'ApiError'
      ? []
      : objectsInside(schema).map((inside) => [name, inside]),
  )
  expect(unnamed).toEqual([])
})

/** Objects with fields inside a schema, without a name of their own. */
function objectsInside(schema: unknown, top = true): unknown[] {
  if (typeof schema !== 'object' || schema === null) return []
  const inside = Object.values(schema).flatMap((value) =>
    top && value === (schema as Schema).properties
      ? Object.values(value as object).flatMap((field) => objectsInside(field, false))
      : objectsInside(value, false),
  )
  return !top && 'properties' in schema ? [schema, ...inside] : inside
}

test('no field of a body has a default: generated clients would require it', () => {
  const bodies = [...described.values()].map(({ requestBody }) => requestBody?.content['application/json']?.schema)
  expect(JSON.stringify(bodies)).not.toContain('"default":')
})

test('every type of notification is described as a webhook, with its object and its headers', () => {
  const webhooks = document.webhooks ?? {}
  expect(Object.keys(webhooks).sort()).toEqual([...notificationTypes].sort())
  for (const [type, { post }] of Object.entries(webhooks as Record<string, { post: unknown }>)) {
    const { parameters, requestBody } = post as Described
    expect(parameters.map(({ name }) => name)).toEqual(['webhook-id', 'webhook-timestamp', 'webhook-signature'])
    const { properties } = requestBody.content['application/json'].schema
    expect(properties.type).toMatchObject({ const: type })
    // With the scan beside the attendee; an e-mail with its event.
    const object = type.startsWith('attendee.check')
      ? 'NotificationData'
      : type === 'email.bounced'
        ? 'NotificationDataEmail'
        : type.split('.')[0]?.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase())
    expect(JSON.stringify(properties.data)).toContain(`"#/components/schemas/${object}"`)
  }
  // A later release may add fields, to errors too.
  const received = resolve([webhooks, document.components?.schemas?.ApiError], document)
  expect(JSON.stringify(received)).not.toContain('"additionalProperties":false')
})

type Described = {
  parameters: { name: string }[]
  requestBody: { content: { 'application/json': { schema: { properties: Record<string, unknown> } } } }
}
