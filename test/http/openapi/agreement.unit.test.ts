// The published schemas held against the validation: whatever the server refuses for its form, the OpenAPI document refuses too, and so
// do the arguments of the tool, of which tools/list shows a shorter form. So a caller who checks before sending is told nothing new.
// Refusals are in our own words.

import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { describe, expect, test } from 'vitest'
import type { ApiError } from '../../../src/gateway/api-error.ts'
import { parseInput } from '../../../src/gateway/validation.ts'

import { describeApi } from '../../../src/http/openapi/document.ts'
import { successesOf } from '../../../src/http/openapi/examples.ts'
import { operations } from '../../../src/operations/index.ts'
import { besideChanges, isRead, type Operation, pathParameters } from '../../../src/operations/operation.ts'
import { argumentsOf, describedOperations } from './support.ts'

type Input = Record<string, unknown>
type Schema = { properties?: Record<string, Schema>; items?: Schema; anyOf?: Schema[] }

const ajv = new Ajv2020({ strict: false })
formats.default(ajv)
const described = describedOperations(describeApi(operations))

const long = [41, 51, 101, 201, 256, 501, 2001, 20_001].flatMap((n) => ['x'.repeat(n), '\u{1f600}'.repeat(n)])
const keys = (n: number, key = (i: number) => `k${i}`) =>
  Object.fromEntries(Array.from({ length: n }, (_, i) => [key(i), i]))

const nasty: unknown[] = [
  ...[null, true, 0, -1, 1.5, 7, 101, 12.345, 1e10, 2 ** 31, 2 ** 53, -(2 ** 53), 1e300],
  ...['', ' ', '\t', '\u00a0\u2003', 'text', ' padded ', 'two words', 'mary', 'eur', 'EURO', 'deu'],
  ...['a\u0000b', 'a\nb', 'a\u007fb', 'a\u0085b', 'a\ud800b', ...long],
  ...[
    'a@b',
    '@example.com',
    'a..b@example.com',
    '.a@example.com',
    "a'@example.com",
    'a@exa_mple.com',
    'a b@example.com',
  ],
  ...['2027-01-01', '2027-01-01T00:00:00', '2027-01-01 00:00:00Z', '2027-02-30T00:00:00Z', '2027-01-01T24:00:00Z'],
  ...['1800-01-01T00:00:00Z', '0000-01-01T00:00:00Z', '9999-12-31T23:59:59Z', '2027-01-01T00:00:00+15:00'],
  ...[`2027-01-01T00:00:00.${'1'.repeat(200)}Z`, '2027-01-01t00:00:00z', '1900-01-01T00:00:00+14:00'],
  ...['http://example.com', 'https://user@example.com', 'https://example.com:99999', 'ftp://example.com'],
  ...['https://exa mple.com', 'https://example.com/\u0001', 'Not A Slug', '-slug'],
  'e7a4ae4c-0000-7000-8000-00000000000',
  ...[[], [1], ['x'], [null], [[]], {}, { a: {} }, { a: [] }, { a: 'x'.repeat(501) }, { a: 1e300 }, { a: 'a\u0000b' }],
  ...[keys(51), { '': 1 }, { ['k'.repeat(41)]: 1 }, { 'a\nb': 1 }, { 'a\ud800': 1 }, keys(60, (i) => `unknown ${i}`)],
  Array.from({ length: 501 }, () => ({})),
]

/** What the schemas let pass although it is refused, and why they cannot say so. */
const exceptions: { why: string; when: (path: string, value: unknown, operation: Operation) => boolean }[] = [
  { why: 'no portable pattern finds a lone surrogate', when: (_, value) => /\\ud800/.test(JSON.stringify(value)) },
  {
    why: 'a pattern looks at the year, not at the instant',
    when: (_, value) => value === '1900-01-01T00:00:00+14:00',
  },
  {
    why: 'a pattern does not parse an address',
    when: (path, value) => /url$/.test(path) && value === 'https://example.com:99999',
  },
  {
    why: 'a tool may tell attendees and change nothing',
    when: (path, value, { name }) => name === 'update_event' && path === 'changes' && JSON.stringify(value) === '{}',
  },
  {
    why: 'the schema of a tool has no forms, so it lets an amount stand beside a percentage',
    when: (path, value, { name }) => name === 'create_promo_code' && path === 'amount_off' && Number(value) > 0,
  },
]

/** Every place in the input: fields, their members, and the members of the first item of a list. */
function places(schema: Schema, input: unknown, path: string[] = []): string[][] {
  const forms = [schema, ...(schema.anyOf ?? [])]
  const inside = forms.flatMap(({ properties = {}, items }) => [
    ...Object.entries(properties).flatMap(([name, property]) => places(property, at(input, name), [...path, name])),
    ...(items !== undefined && Array.isArray(input) ? places(items, input[0], [...path, '0']) : []),
  ])
  return path.length === 0 ? inside : [path, ...inside]
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const at = (value: unknown, name: string): unknown => (value as Input | undefined)?.[name]

function withValue(input: unknown, [name, ...rest]: string[], value: unknown): unknown {
  if (name === undefined) return value
  if (Array.isArray(input)) return [withValue(input[0], rest, value), ...input.slice(1)]
  return { ...(input as Input), [name]: withValue(at(input, name), rest, value) }
}

/** The schemas that OpenAPI has of the parts of a request. */
function overRest(operation: Operation): (input: Input) => boolean {
  const { parameters = [], requestBody } = described.get(`${operation.method} ${operation.path}`) ?? {}
  const body = requestBody && ajv.compile(requestBody.content['application/json']?.schema ?? {})
  const fields = parameters.filter((p) => p.in !== 'header').map((p) => ({ ...p, fits: ajv.compile(p.schema) }))
  const inPath = pathParameters(operation)
  return (input) => {
    const known = fields.every(({ name, fits, required }) => (name in input ? fits(input[name]) : !required))
    if (!known) return false
    if (isRead(operation)) return Object.keys(input).every((name) => fields.some((field) => field.name === name))
    if (operation.method === 'PATCH') {
      const beside = besideChanges(operation).flatMap((name) => (name in input ? [[name, input[name]]] : []))
      return (
        body?.(isObject(input.changes) ? { ...input.changes, ...Object.fromEntries(beside) } : input.changes) ?? true
      )
    }
    return body?.(Object.fromEntries(Object.entries(input).filter(([name]) => !inPath.includes(name)))) ?? true
  }
}

const raw = /\b(invalid|expected|received|too (big|small)|unrecognized|undefined|NaN)\b/i

describe.each(operations.map((operation) => [operation.name, operation] as const))('%s', (_name, operation) => {
  const schema = argumentsOf(operation)
  const toolTakes = ajv.compile(schema)
  const restTakes = overRest(operation)
  // If-Match is a header over REST, and described as one.
  const inputs = successesOf(operation).map(({ input: { if_version: _, idempotency_key: __, ...input } }) => input)

  test('takes its examples by the validation and by both schemas', () => {
    for (const input of inputs) {
      expect(operation.input.safeParse(input).success).toBe(true)
      expect(toolTakes(input), JSON.stringify(toolTakes.errors)).toBe(true)
      expect(restTakes(input), JSON.stringify(input)).toBe(true)
    }
  })

  // Each place once, in the first example that has it.
  const seen = new Set(['idempotency_key'])
  const refused = inputs.flatMap((input) =>
    places(schema as Schema, input).flatMap((path) => {
      if (seen.has(path.join('.'))) return []
      seen.add(path.join('.'))
      return nasty.flatMap((value) => {
        const mistake = withValue(input, path, value) as Input
        const refusal = refusalOf(operation, mistake)
        return refusal === undefined ? [] : [{ path, value, input: mistake, refusal }]
      })
    }),
  )
  const shown = (path: string[], value: unknown) => `${path.join('.')} = ${JSON.stringify(value)?.slice(0, 80)}`

  test('whatever the validation refuses of a field, both schemas refuse', () => {
    const looser = refused.filter(({ path, value, input }) => {
      if (exceptions.some(({ when }) => when(path.join('.'), value, operation))) return false
      return toolTakes(input) || (path[0] !== 'if_version' && restTakes(input))
    })
    expect(looser.map(({ path, value }) => shown(path, value))).toEqual([])
  })

  test('a refusal names the field, in our own words', () => {
    // Sought first and asserted then: an assertion of each would take most of the time of this file.
    const odd = refused.filter(({ path, refusal }) => {
      const { fields } = refusal.details as { fields: { param: string; message: string }[] }
      const isOurs = fields.every(
        ({ param, message }) =>
          !raw.test(message) &&
          /^(must|is|has) /.test(message) &&
          message.length < 400 &&
          ((path.length === 1 && path[0] === 'changes') || path.includes(param.split('.')[0] ?? '')),
      )
      return !isOurs || Buffer.byteLength(JSON.stringify(refusal.body('x'))) >= 16_000
    })
    expect(odd.map(({ path, value, refusal }) => [shown(path, value), refusal.details])).toEqual([])
  })
})

function refusalOf(operation: Operation, input: Input): ApiError | undefined {
  try {
    parseInput(operation.input, input)
  } catch (refusal) {
    return refusal as ApiError
  }
}

test('patterns keep to what other languages read', () => {
  const published = JSON.stringify([operations.map(argumentsOf), describeApi(operations)])
  const patterns = [...published.matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)].map(([, text = '""']) => JSON.parse(text))
  expect(patterns.length).toBeGreaterThan(100)
  for (const pattern of new Set(patterns)) expect(pattern).not.toMatch(/\(\?[=!<]|\\[pPu/]|\\\d/)
})

test('an idempotency key and an ETag are described as they are taken', () => {
  const { parameters = [] } = described.get('PATCH /events/{event_id}') ?? {}
  const takes = (header: string) => ajv.compile(parameters.find(({ name }) => name === header)?.schema ?? false)
  for (const bad of ['', 'k'.repeat(256), 'a\nb', 'a\u0085b', 7]) {
    expect(takes('Idempotency-Key')(bad), String(bad)).toBe(false)
    const tool = ajv.compile(argumentsOf(operations.find(({ name }) => name === 'publish_event') as Operation))
    expect(tool({ event_id: '01926b5c-0000-7000-8000-000000000000', idempotency_key: bad })).toBe(false)
  }
  for (const bad of ['two', '1', '"a"', '"1" "2"', '"1",', '"1-short"', Array(21).fill('"1"').join(', ')]) {
    expect(takes('If-Match')(bad), bad).toBe(false)
  }
  for (const good of ['*', '"1"', 'W/"1"', `"1-${'a'.repeat(22)}"`, '"1", W/"2"', Array(20).fill('"1"').join(',')]) {
    expect(takes('If-Match')(good), good).toBe(true)
  }
})
