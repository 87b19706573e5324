// REST requests: for each operation of the OpenAPI document valid arguments, of which some are changed.

import { describeApi } from '../../../src/http/openapi/document.ts'
import { operations } from '../../../src/operations/index.ts'
import type { Operation } from '../../../src/operations/operation.ts'
import { describedOperations } from '../../http/openapi/support.ts'
import type { Random } from '../random.ts'
import { garble, mutate, nodeOf, textOf } from './nodes.ts'
import { exchange, type HostileRequest, type Sent } from './request.ts'
import { type JsonSchema, sampleOf } from './samples.ts'
import type { Stage } from './stage.ts'
import { encode, encodedHostile, queryOf } from './text.ts'

type Target = {
  method: string
  path: string
  operation: Operation
  parameters: { name: string; in: string; schema: JsonSchema; required?: boolean }[]
  body: JsonSchema | undefined
  /** Bodies as recorded, about objects that are not there. */
  examples: unknown[]
}

const byName = new Map(operations.map((operation) => [`${operation.method} ${operation.path}`, operation]))

/** Files and pictures are targets of the operation that has their path. */
export const targets: Target[] = [...describedOperations(describeApi(operations))].map(([name, described]) => {
  const [method = '', path = ''] = name.split(' ')
  const content = described.requestBody?.content['application/json']
  const plain = path.replace(/\.(png|svg)$/, '')
  return {
    method,
    path,
    operation: (byName.get(name) ?? byName.get(`GET ${plain}`) ?? byName.get(`POST ${plain}`)) as Operation,
    parameters: (described.parameters ?? []) as Target['parameters'],
    body: content?.schema as JsonSchema | undefined,
    examples: Object.values(content?.examples ?? {}).map(({ value }) => value),
  }
})

/** @param changes how many of the arguments are spoilt; 0 for a valid request. */
export function restRequest(
  stage: Stage,
  random: Random,
  changes = random.below(4),
  target = random.pick(targets) as Target,
) {
  const { method, operation, parameters, body: schema } = target
  let left = changes
  const spoil = (chance: number) => left > 0 && random.next() < chance && left-- > 0
  const inPath = parameters.filter((parameter) => parameter.in === 'path')
  let path = `/api/v1${target.path}`
  let isAimed = true
  for (const parameter of inPath) {
    const isSpoilt = spoil(0.15)
    // What is no segment of a path leads to another operation, or to none.
    if (isSpoilt) isAimed = false
    const value = isSpoilt
      ? encodedHostile(random)
      : encode(String(sampleOf(parameter.schema, stage, random, parameter.name)))
    path = path.replace(`{${parameter.name}}`, () => value)
  }
  const fields = parameters
    .filter(({ in: place, required }) => place === 'query' && (required || random.next() < 0.25))
    .map(({ name, schema }): [string, string] => [
      name,
      queryText(name, sampleOf(schema, stage, random, name), stage, random),
    ])
  const takesQuery = parameters.some(({ in: place }) => place === 'query')
  const query = queryOf(fields, random, takesQuery ? left : spoil(0.1) ? 1 : 0)
  const headers: Sent['headers'] = [['Authorization', `Bearer ${keyOf(stage, random)}`]]
  if (method !== 'GET' && random.below(3) === 0) headers.push(['Idempotency-Key', `key-${random.below(50)}`])
  const sent: Sent = { method, target: query === '' ? path : `${path}?${query}`, headers }
  if (schema !== undefined) {
    headers.push(['Content-Type', 'application/json'])
    const example = random.below(3) === 0 ? random.pick(target.examples) : undefined
    sent.body = bodyFor(
      example === undefined ? sampleOf(schema, stage, random) : aboutStage(example, stage, random),
      random,
      left,
    )
  }
  return { sent, operation: isAimed ? operation : undefined }
}

/** With ids of the stage in place of those that were recorded. */
function aboutStage(value: unknown, stage: Stage, random: Random, name = ''): unknown {
  if (typeof value === 'string') return (/(_ids?|^code)$/.test(name) && stage.named(name, random)) || value
  if (Array.isArray(value)) return value.map((item) => aboutStage(item, stage, random, name))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, aboutStage(member, stage, random, key)]))
}

const keyOf = ({ keys }: Stage, random: Random): string => {
  const kind = random.below(20)
  return kind === 0 ? keys.few : kind === 1 ? keys.asking : keys.full
}

export function bodyFor(value: unknown, random: Random, changes: number): string | Buffer {
  let node = nodeOf(value)
  for (let i = 0; i < changes; i++) node = mutate(node, random)
  const text = textOf(node)
  const kind = changes === 0 ? 99 : random.below(20)
  if (kind < 2) return garble(text, random)
  if (kind > 2) return text
  // Bytes that are no UTF-8.
  const bytes = Buffer.from(text)
  bytes[random.below(bytes.length)] = random.pick([0xff, 0xc0, 0x80, 0xed]) as number
  return bytes
}

const limits = ['1', '100', '0', '-1', '101', '1e2', '99999999999', '0x10', ' 5', '5.0', '١', 'NaN', '9007199254740993']

function queryText(name: string, value: unknown, { cursors }: Stage, random: Random): string {
  if (name === 'limit') return random.pick(random.below(2) === 0 ? ['1', '2', '100'] : limits) as string
  if (name === 'cursor') return tampered((random.pick(cursors) as string | undefined) ?? 'none', random)
  return Array.isArray(value) ? value.join(',') : String(value)
}

function tampered(cursor: string, random: Random): string {
  const at = random.below(cursor.length)
  return random.pick([
    cursor,
    cursor.slice(0, at),
    `${cursor}${cursor}`,
    `${cursor.slice(0, at)}A${cursor.slice(at + 1)}`,
    Buffer.from('{"id":"x","at":null}').toString('base64url'),
    Buffer.from(cursor, 'base64url').reverse().toString('base64url'),
    '',
  ]) as string
}

export function rest(stage: Stage, random: Random): HostileRequest {
  const { sent, operation } = restRequest(stage, random)
  return exchange('rest', 'rest', sent, { operation })
}
