// The examples of the document are what the server answers: the story is played again and must give the same. A new operation needs
// a step in scripts/examples/story.ts.

import { expect, inject, test } from 'vitest'
import { tellStory } from '../../../scripts/examples/story.ts'
import { isWellFormedKey } from '../../../src/gateway/api-key.ts'
import { describeApi } from '../../../src/http/openapi/document.ts'
import { examples, isError, successesOf } from '../../../src/http/openapi/examples.ts'
import { ErrorSchema } from '../../../src/http/openapi/responses.ts'
import { operations } from '../../../src/operations/index.ts'
import { notificationExamples } from '../../../src/operations/notification-examples.ts'
import { validator } from '../../support/schema-validators.ts'
import { codesIn, describedOperations } from './support.ts'

const described = describedOperations(describeApi(operations))

test.each(operations.map((operation) => [operation.name, operation] as const))(
  '%s has an example',
  (name, operation) => {
    const statuses = successesOf(operation).map(({ status }) => status)
    const what = `Add a step that shows ${name} to scripts/examples/story.ts, then run: npm run examples`
    expect(statuses.length, what).toBeGreaterThan(0)
    expect(new Set(statuses).size, `${name} is described with one status`).toBe(1)
  },
)

test('every example is of an operation, and says what its schemas allow', () => {
  for (const example of examples) {
    const operation = operations.find(({ name }) => name === example.operation)
    expect(operation, `${example.operation} is gone: remove it from the story`).toBeDefined()
    if (isError(example)) ErrorSchema.parse(example.body)
    else operation?.output.parse(example.body)
  }
})

test('the server answers the story as it is recorded', async () => {
  expect(await tellStory(inject('apiUrl'), inject('databaseUrl')), 'If this is meant, run: npm run examples').toEqual({
    examples,
    notifications: notificationExamples,
  })
})

test('no example holds an API key', () => {
  const keys = JSON.stringify(examples).match(/usher_live_\w+/g) ?? []
  expect(keys.length).toBeGreaterThan(0)
  expect(keys.filter((text) => isWellFormedKey(text) || text.length > 'usher_live_'.length + 8)).toEqual([])
})

test('every example value in the document fits the schema beside it', () => {
  let checked = 0
  const check = (where: string, schema: unknown, value: unknown) => {
    const validate = validator.getValidator(schema as Record<string, unknown>)
    expect(validate(value), `${where}: ${JSON.stringify(value)}`).toMatchObject({ valid: true })
    checked += 1
  }
  for (const [route, { parameters = [], requestBody, responses }] of described) {
    for (const { name, schema, example } of parameters) {
      if (example !== undefined) check(`${route} ${name}`, schema, example)
    }
    for (const { content } of [...(requestBody ? [requestBody] : []), ...Object.values(responses)]) {
      const { schema, examples: shown = {} } = content?.['application/json'] ?? {}
      for (const [name, { value }] of Object.entries(shown)) check(`${route} ${name}`, schema, value)
    }
  }
  expect(checked).toBeGreaterThan(2 * operations.length)
})

test('every success shows an example, and so does every refusal with a code that the story brings about', () => {
  const told = new Set(examples.filter(isError).map(({ body }) => (body.error as { code: string }).code))
  expect(told.size).toBeGreaterThan(10)
  for (const [route, { responses }] of described) {
    for (const [status, response] of Object.entries(responses)) {
      const answer = response.content?.['application/json']
      // An event of 5,000 tickets is no story: test/courier/cancellations.test.ts.
      if (answer === undefined || status === '202') continue
      if (Number(status) >= 400 && !codesIn(response).some((code) => told.has(code))) continue
      expect(Object.keys(answer.examples ?? {}), `${route} ${status}`).not.toEqual([])
    }
  }
})
