// REST held against MCP held against OpenAPI: three projections of one list must say the same of every operation.

import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { errorCodes } from '../../../src/gateway/error-codes.ts'

import { describeApi } from '../../../src/http/openapi/document.ts'
import { isRead, type Operation, pathParameters } from '../../../src/operation.ts'
import { operations } from '../../../src/operations/index.ts'
import { notificationTypes } from '../../../src/operations/webhook-endpoints.ts'
import { argumentsOf, describedOperations } from './support.ts'

const document = describeApi(operations)
const described = describedOperations(document)

const describedAs = ({ method, path }: Operation) => described.get(`${method} ${path}`)

test('every operation is one path and method, every picture of it another path, and nothing else is described', () => {
  const expected = operations.flatMap(({ name, method, path, pictures = {} }) => [
    [`${method} ${path}`, name],
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
  const names = (place: string) => parameters.filter((p) => p.in === place).map(({ name }) => name)

  test('takes over REST what its tool takes: in the path, the query of a read, or the body', () => {
    const bodyFields = operation.method === 'PATCH' ? (body ? ['changes'] : []) : Object.keys(body?.properties ?? {})
    const headers = [...(fields.idempotency_key ? ['Idempotency-Key'] : []), ...(fields.if_version ? ['If-Match'] : [])]
    expect(names('header')).toEqual(headers)
    expect(names('path')).toEqual(pathParameters(operation))
    const taken = [...names('path'), ...names('query'), ...bodyFields]
    expect(taken.toSorted()).toEqual(
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
      expect(schema, name).toEqual(said)
      expect(isRequired, name).toBe(required.includes(name))
    }
    if (body === undefined) return
    if (operation.method === 'PATCH') return expect(body).toEqual(fields.changes)
    expect(body.additionalProperties).toBe(false)
    for (const [name, schema] of Object.entries(body.properties ?? {})) expect(schema, name).toEqual(fields[name])
    const inBody = required.filter((name) => !pathParameters(operation).includes(name))
    expect((body.required ?? []).toSorted()).toEqual(inBody.sort())
    expect(requestBody?.required).toBe(inBody.length > 0 || 'anyOf' in body)
  })

  test('answers what its tool answers', () => {
    const { $schema: _, ...output } = tool.outputSchema
    const successes = Object.entries(describedAs(operation)?.responses ?? {}).filter(([status]) => Number(status) < 400)
    expect(successes.map(([, { content }]) => content['application/json']?.schema)).toEqual([output])
  })

  test('names its scope, and stands in a chapter that is described', () => {
    const { summary, description, tags, 'x-required-scope': scope } = describedAs(operation) ?? {}
    expect(scope).toBe(operation.scope)
    expect(summary).toBe(operation.summary)
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

test('every error code is named in the document, as one that may have company', () => {
  const all = errorCodes.join(', ')
  expect(document.components?.schemas?.Error).toMatchObject({
    properties: {
      error: {
        properties: {
          code: { 'x-extensible-enum': errorCodes, description: expect.stringContaining(`One of ${all}.`) },
        },
      },
    },
  })
})

test('every object that is answered by itself is a component of its name', () => {
  expect(Object.keys(document.components?.schemas ?? {})).toEqual(
    expect.arrayContaining(['ApiKey', 'Event', 'TicketType', 'PromoCode', 'Order', 'Attendee', 'CheckIn', 'Error']),
  )
  expect(document.components?.schemas?.Order).toMatchObject({
    properties: { attendees: { items: { $ref: '#/components/schemas/Attendee' } } },
  })
})

test('a picture is described with its media type, and an operation without an example all the same', () => {
  const [listEvents] = operations.filter(({ name }) => name === 'list_events')
  const drawn = {
    ...(listEvents as Operation),
    name: 'get_poster',
    path: '/poster/{status}' as const,
    pictures: { png: { mediaType: 'image/png', draw: async () => '' } },
  }
  const poster = describedOperations(describeApi([drawn]))
  expect([...poster.keys()]).toEqual(['GET /poster/{status}', 'GET /poster/{status}.png'])
  expect(poster.get('GET /poster/{status}.png')).toMatchObject({
    operationId: 'get_poster_png',
    responses: { 200: { content: { 'image/png': {} } }, 404: { description: expect.stringMatching(/./) } },
  })
})

test('every type of notification is described as a webhook, with its object and its headers', () => {
  const webhooks = document.webhooks ?? {}
  expect(Object.keys(webhooks).sort()).toEqual([...notificationTypes].sort())
  for (const [type, { post }] of Object.entries(webhooks as Record<string, { post: unknown }>)) {
    const { parameters, requestBody } = post as Described
    expect(parameters.map(({ name }) => name)).toEqual(['webhook-id', 'webhook-timestamp', 'webhook-signature'])
    const { properties } = requestBody.content['application/json'].schema
    expect(properties.type).toMatchObject({ const: type })
    const object = type.split('.')[0]?.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase())
    expect(JSON.stringify(properties.data)).toContain(`"#/components/schemas/${object}"`)
  }
})

type Described = {
  parameters: { name: string }[]
  requestBody: { content: { 'application/json': { schema: { properties: Record<string, unknown> } } } }
}
