// What must hold for every tool, whichever operation it is made from: a model sees nothing but this list.

import { Ajv2020 } from 'ajv/dist/2020.js'
import { beforeAll, expect, inject, test } from 'vitest'
import { listedName } from '../../src/http/mcp/names.ts'
import { successesOf } from '../../src/http/openapi/examples.ts'
import { operations as all } from '../../src/operations/index.ts'
import { type Scope, scopes } from '../../src/operations/operation.ts'
import { studio } from '../support/database.ts'
import { clients, connectForAll, jsonHeaders, type Tool } from '../support/mcp.ts'
import { createOrganisation, type TestOrganisation } from '../support/organisation.ts'

/** A model decides nothing without a network, get_event_summary names the points, and list_waiting_list_entries shows entries whole. */
const withoutTool = [
  ...['get_waiting_list_entry', 'update_waiting_list_entry'],
  ...['list_check_in_points', 'get_check_in_point', 'get_door_list', 'list_check_in_conflicts'],
]
const operations = all.filter(({ mcp }) => mcp !== false)

test('every operation is a tool, but for these', () => {
  expect(all.filter(({ mcp }) => mcp === false).map(({ name }) => name)).toEqual(withoutTool)
})

const [current = clients[0]] = clients.filter(({ revision }) => revision === '2026-07-28')

let organisation: TestOrganisation
/** What a key with all scopes is shown. */
let tools: Tool[]

beforeAll(async () => {
  organisation = await createOrganisation()
  const { mcp, close } = await connectForAll(current?.connect, await organisation.key())
  tools = mcp.tools
  await close()
})

async function toolsOf(connect = current?.connect, ...chosen: Scope[]): Promise<Tool[]> {
  const mcp = await connect?.(await organisation.key(...chosen))
  return mcp?.tools ?? []
}

type Property = { description?: unknown; type?: unknown; enum?: unknown }
const propertiesOf = ({ inputSchema }: Tool) =>
  Object.entries((inputSchema.properties ?? {}) as Record<string, Property>)

test.each([
  [[...scopes]],
  ...scopes.map((scope): [Scope[]] => [[scope]]),
  [['events:read', 'checkin:write'] as Scope[]],
])('a key with %j is shown the tools that it may call, in the order of the operations', async (chosen) => {
  const expected = operations.filter(({ scope }) => scope === null || chosen.includes(scope))
  expect((await toolsOf(current?.connect, ...chosen)).map(({ name }) => name)).toEqual(expected.map(({ name }) => name))
})

test.each(clients)('the list is the same for $client speaking $revision', async ({ connect }) => {
  expect(await toolsOf(connect)).toEqual(tools)
})

const bytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value))

test('the list fits into a context window', async () => {
  expect(bytes(tools)).toBeLessThanOrEqual(52 * 1024)
  expect(bytes(await toolsOf(current?.connect, 'events:read', 'checkin:write'))).toBeLessThanOrEqual(8 * 1024)
  // apply_event names the fields of four kinds of objects.
  for (const tool of tools) {
    expect(bytes(tool), tool.name).toBeLessThanOrEqual((tool.name === 'apply_event' ? 4 : 2.5) * 1024)
  }
})

test('a host may keep the list for a while, for this key alone', async () => {
  const key = await organisation.key()
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const response = await fetch(`${inject('apiUrl')}/api/mcp`, {
    method: 'POST',
    headers: { ...jsonHeaders(key), 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/list' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta } }),
  })
  expect(await response.json()).toMatchObject({ result: { ttlMs: 300_000, cacheScope: 'private' } })
})

test('every tool has a title, and a description that names the scope it needs', async () => {
  for (const { name, scope, title } of operations) {
    const tool = tools.find((t) => t.name === name)
    expect(tool?.title, name).toBe(title)
    expect(tool?.title?.length, name).toBeGreaterThan(3)
    expect(tool?.description, name).toContain(scope === null ? 'any valid key' : `Needs scope ${scope}.`)
    expect(tool?.description?.length, name).toBeGreaterThan(60)
  }
})

test('every tool takes an object of known fields, each with its type, and described unless its name says it all', async () => {
  for (const tool of tools) {
    expect(tool.inputSchema.type, tool.name).toBe('object')
    for (const [field, property] of propertiesOf(tool)) {
      expect(property.type, `${tool.name}.${field}`).toBeDefined()
      const isPlain =
        /(^|_)(id|name|reference|status|type|event|events|ticket_types|order|attendee|promo_code|check_in_point|webhook_endpoint|waiting_list_entry|result|cursor|limit|metadata|email|company|payment_method|promo_code|if_version|dry_run|changes|updated_since|idempotency_key)$/.test(
          field,
        )
      if (!isPlain) expect(property.description, `${tool.name}.${field}`).toEqual(expect.stringMatching(/^\S.{9,}/))
    }
  }
})

test('schemas hold what helps a model, and nothing that only the validation needs', async () => {
  const schemas = JSON.stringify(tools.map(({ inputSchema, outputSchema }) => [inputSchema, outputSchema]))
  for (const keyword of ['$schema', '$ref', 'pattern', 'format', 'maxLength', 'maximum', 'anyOf']) {
    expect(schemas).not.toContain(`"${keyword}"`)
  }
})

test('a type is one name, which null is not: some hosts cannot read lists of types', async () => {
  const types = tools.flatMap(({ inputSchema, outputSchema }) => typesIn([inputSchema, outputSchema]))
  expect(new Set(types)).toEqual(new Set(['object', 'array', 'string', 'number', 'integer', 'boolean']))
})

/** What stands as a type in a schema; a field may be called so, too. */
function typesIn(schema: unknown): unknown[] {
  if (typeof schema !== 'object' || schema === null) return []
  return Object.entries(schema).flatMap(([name, value]) => {
    if (name === 'properties') return Object.values(value as object).flatMap(typesIn)
    return name === 'type' ? [value] : typesIn(value)
  })
}

test('a host that checks arguments by the list lets all recorded requests pass', async () => {
  const ajv = new Ajv2020()
  for (const { name, inputSchema } of tools) {
    const takes = ajv.compile(inputSchema)
    const operation = operations.find((operation) => operation.name === name)
    for (const { input } of operation ? successesOf(operation) : []) {
      const listed = Object.fromEntries(Object.entries(input).map(([field, value]) => [listedName(field), value]))
      expect(takes(listed), `${name} ${JSON.stringify(takes.errors)}`).toBe(true)
    }
    expect(takes(null)).toBe(false)
  }
})

test('no tool wants one of several forms: hosts refuse a list with such a schema at its top', async () => {
  for (const { name, inputSchema } of tools) {
    for (const keyword of ['anyOf', 'oneOf', 'allOf']) expect(inputSchema, name).not.toHaveProperty(keyword)
  }
})

test('what REST takes as a header is an argument here, and is called so', async () => {
  const said = JSON.stringify(tools.map(({ description, inputSchema }) => [description, inputSchema]))
  expect(said).not.toMatch(/Idempotency-Key|If-Match|header/)
  expect(said).toMatch(/Send an idempotency_key/)
})

test('every field of the declared input is advertised, and writes take an idempotency_key besides', async () => {
  for (const { name, input, method } of operations) {
    const schema = tools.find((t) => t.name === name)?.inputSchema
    const advertised = Object.keys((schema?.properties ?? {}) as Record<string, Property>)
    const listed = Object.keys(input.shape).map(listedName)
    // The event that an object is of is no argument of the operation.
    const beside = !listed.includes('event') && advertised.includes('event') ? ['event'] : []
    expect(advertised.toSorted(), name).toEqual(
      [...listed, ...beside, ...(method === 'GET' ? [] : ['idempotency_key'])].sort(),
    )
    expect(schema?.required ?? [], name).not.toContain('idempotency_key')
  }
})

test('every tool advertises the object it answers', async () => {
  for (const { name, outputSchema } of tools) {
    expect(outputSchema, name).toMatchObject({ type: 'object', properties: { data: expect.anything() } })
  }
})

test('every tool says what it changes: only what the database calls stable is read-only', async () => {
  const { rows } = await studio.query<{ name: string; stable: boolean }>(
    `select p.proname as name, p.provolatile = 's' as stable
     from pg_proc p where p.pronamespace = 'api'::regnamespace`,
  )
  // What the protocol takes for granted is left out.
  const granted = { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true }
  for (const { name, annotations } of tools) {
    const stable = rows.find((fn) => fn.name === name)?.stable
    const hints = operations.find((operation) => operation.name === name)?.hints
    expect(hints === undefined, `${name} is stable in SQL, and a write says what it does in its hints`).toBe(stable)
    expect({ ...granted, ...annotations }, name).toMatchObject({
      readOnlyHint: hints === undefined,
      ...(hints && { destructiveHint: hints.destructive, idempotentHint: hints.idempotent }),
    })
  }
})
