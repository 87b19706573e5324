// What must hold for every tool, whichever operation it is made from: a model sees nothing but this list.

import { Ajv2020 } from 'ajv/dist/2020.js'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { listedName } from '../../src/http/mcp/names.ts'
import { successesOf } from '../../src/http/openapi/examples.ts'
import { operations as all } from '../../src/operations/index.ts'
import { isList, isRead, type Scope, scopes, toolsets } from '../../src/operations/operation.ts'
import { studio } from '../support/database.ts'
import { clients, connectForAll, jsonHeaders, post, type Tool, toolCall } from '../support/mcp.ts'
import { createOrganisation, type TestOrganisation } from '../support/organisation.ts'
import { countTokens } from '../support/tokens.ts'

const operations = all.filter(({ mcp }) => mcp !== false)

test('every operation is a tool, but for the list that scanners work from: it is long, and nothing for a model', () => {
  expect(all.filter(({ mcp }) => mcp === false).map(({ name }) => name)).toEqual(['get_door_list'])
})

const [current = clients[0]] = clients.filter(({ revision }) => revision === '2026-07-28')

let organisation: TestOrganisation
/** All that a key with all scopes can be shown. */
let tools: Tool[]

beforeAll(async () => {
  organisation = await createOrganisation()
  const { mcp, close } = await connectForAll(current?.connect, await organisation.key(), 'toolsets=all')
  tools = mcp.tools
  await close()
})

type Selected = { connect?: (typeof clients)[number]['connect'] | undefined; query?: string }

async function toolsOf(chosen: readonly Scope[] = scopes, { connect = current?.connect, query = '' }: Selected = {}) {
  const { mcp, close } = await connectForAll(connect, await organisation.key(...chosen), query)
  await close()
  return mcp.tools
}
const namesOf = (listed: { name: string }[]) => listed.map(({ name }) => name)

type Property = { description?: unknown; type?: unknown; enum?: unknown }
const propertiesOf = ({ inputSchema }: Tool) =>
  Object.entries((inputSchema.properties ?? {}) as Record<string, Property>)

test.each([
  [[...scopes]],
  ...scopes.map((scope): [Scope[]] => [[scope]]),
  [['events:read', 'checkin:write'] as Scope[]],
])('a key with %j is shown the tools that it may call, in the order of the operations', async (chosen) => {
  const expected = operations.filter(({ scope }) => scope === null || chosen.includes(scope))
  expect(namesOf(await toolsOf(chosen, { query: 'toolsets=all' }))).toEqual(namesOf(expected))
  expect(namesOf(await toolsOf(chosen))).toEqual(namesOf(expected.filter(({ unlisted }) => !unlisted)))
})

test.each(clients)('the list is the same for $client speaking $revision', async ({ connect }) => {
  expect(await toolsOf(scopes, { connect, query: 'toolsets=all' })).toEqual(tools)
})

describe('what is listed is chosen', () => {
  test.each(Object.keys(toolsets))('by the toolset %s', async (name) => {
    const expected = namesOf(operations.filter(({ toolset }) => toolset === name))
    expect(expected).not.toEqual([])
    expect(namesOf(await toolsOf(scopes, { query: `toolsets=${name}` }))).toEqual(expected)
  })

  test('by several names, in any order and case, and the default list is one of them', async () => {
    const expected = operations.filter(({ unlisted, toolset }) => !unlisted || toolset === 'webhooks')
    const listed = await toolsOf(scopes, { query: 'toolsets=Webhooks,%20default' })
    expect(namesOf(listed)).toEqual(namesOf(expected))
    expect(await toolsOf(scopes, { query: 'toolsets=default&toolsets=webhooks' })).toEqual(listed)
  })

  test('by reading only', async () => {
    const listed = await toolsOf(scopes, { query: 'read_only=true&toolsets=all' })
    expect(namesOf(listed)).toEqual(namesOf(operations.filter(isRead)))
  })

  const list = (headers: Record<string, string>, query = '') =>
    post({ jsonrpc: '2.0', id: 1, method: 'tools/list' }, headers, { query })
  const namesIn = ({ body }: { body: unknown }) => namesOf((body as { result: { tools: Tool[] } }).result.tools)

  test('by headers as well; and either may promise to read only', async () => {
    const headers = { ...jsonHeaders(await organisation.key()), 'X-MCP-Toolsets': 'door' }
    const ofDoor = operations.filter(({ toolset }) => toolset === 'door')
    expect(namesIn(await list(headers))).toEqual(namesOf(ofDoor))
    const readOnly = { ...headers, 'X-MCP-Readonly': 'true' }
    expect(namesIn(await list(readOnly, 'read_only=false'))).toEqual(namesOf(ofDoor.filter(isRead)))
    // Once more, when each list is known.
    expect(namesIn(await list(headers))).toEqual(namesOf(ofDoor))
  })

  test.each([
    [
      'toolsets=doors',
      'There is no such toolset. Toolsets: default, all, account, events, orders, attendees, waiting_list, door, webhooks.',
    ],
    ['read_only=perhaps', 'read_only must be true or false.'],
  ])('%s is refused, and says what there is', async (query, message) => {
    for (const method of ['initialize', 'tools/list', 'tools/call']) {
      const answer = await post({ jsonrpc: '2.0', id: 1, method }, jsonHeaders(await organisation.key()), { query })
      expect(answer.status).toBe(400)
      expect(answer.body).toEqual({ jsonrpc: '2.0', id: null, error: { code: -32600, message } })
    }
  })

  test('but every tool can be called, except a write where only reads are wanted', async () => {
    const key = await organisation.key()
    const { id } = await organisation.event()
    const call = async (query: string, name: string) => {
      const { body } = await post(toolCall(name, { event_id: id }), jsonHeaders(key), { query })
      return (body as { result: { isError?: boolean; content: { text: string }[] } }).result
    }
    expect(await call('toolsets=door', 'complete_event')).not.toHaveProperty('isError')
    expect(await call('read_only=true', 'get_event')).not.toHaveProperty('isError')
    const refused = await call('read_only=true', 'publish_event')
    expect(refused.isError).toBe(true)
    expect(JSON.parse(refused.content[0]?.text ?? '')).toMatchObject({ error: { code: 'read_only', retryable: false } })
  })
})

const tokens = (value: unknown) => countTokens(JSON.stringify(value))

test('the list fits into a context window, and into what a model chooses from', async ({ annotate }) => {
  const listed = await toolsOf()
  const [ofDoor, ofDoorAndEvents] = [await toolsOf(['checkin:write']), await toolsOf(['events:read', 'checkin:write'])]
  await annotate(
    `${listed.length} tools of ${tokens(listed)} tokens (all: ${tools.length} of ${tokens(tools)}); of a door's key ${tokens(ofDoor)}, with events:read ${tokens(ofDoorAndEvents)}`,
  )
  expect(listed.length).toBeLessThanOrEqual(45)
  expect(tokens(listed)).toBeLessThanOrEqual(8_500)
  expect(tokens(ofDoorAndEvents)).toBeLessThanOrEqual(2_000)
  // apply_event names the fields of five kinds of objects.
  for (const tool of tools)
    expect(tokens(tool), tool.name).toBeLessThanOrEqual(tool.name === 'apply_event' ? 1_200 : 700)
})

test('what errands come to is listed', async () => {
  const door = ['accept_waiting_list_offer', 'complete_event']
  const webhooks = ['list_webhook_endpoints', 'test_webhook_endpoint', 'redeliver_webhooks']
  expect(namesOf(await toolsOf())).toEqual(expect.arrayContaining([...door, ...webhooks]))
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

// Descriptions are for descriptions.unit.test.ts to judge.
test('every tool has a title, and takes an object of known fields, each with its type, and described unless its name says it all', async () => {
  for (const tool of tools) {
    expect(tool.title?.length, tool.name).toBeGreaterThan(3)
    expect(tool.inputSchema.type, tool.name).toBe('object')
    for (const [field, property] of propertiesOf(tool)) {
      expect(property.type, `${tool.name}.${field}`).toBeDefined()
      const isPlain =
        /(^|_)(at|id|name|reference|status|type|event|events|ticket_types|order|attendee|promo_code|check_in_point|question|webhook_endpoint|waiting_list_entry|result|cursor|limit|metadata|email|company|payment_method|promo_code|amount_retained|expire_now|if_version|dry_run|changes|updated_after|idempotency_key|fields)$/.test(
          field,
        )
      if (!isPlain) expect(property.description, `${tool.name}.${field}`).toEqual(expect.stringMatching(/^\S.{3,}/))
    }
  }
})

// Hosts refuse a list with one of several forms at the top of a schema.
test('schemas hold what helps a model, and nothing that only the validation needs', () => {
  const schemas = JSON.stringify(tools.map(({ inputSchema }) => inputSchema))
  for (const keyword of ['$schema', '$ref', 'pattern', 'format', 'maxLength', 'maximum', 'anyOf', 'oneOf', 'allOf']) {
    expect(schemas).not.toContain(`"${keyword}"`)
  }
})

test('a type is one name, which null is not: some hosts cannot read lists of types', async () => {
  const types = tools.flatMap(({ inputSchema }) => typesIn(inputSchema))
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

test('what REST takes as a header is an argument here, and is called so', async () => {
  const said = JSON.stringify(tools.map(({ description, inputSchema }) => [description, inputSchema]))
  expect(said).not.toMatch(/Idempotency-Key|If-Match|header/)
  expect(said).toMatch(/Send an idempotency_key/)
})

test('every field of the declared input is advertised, and writes take an idempotency_key besides', async () => {
  for (const operation of operations) {
    const { name, input, method } = operation
    const schema = tools.find((t) => t.name === name)?.inputSchema
    const advertised = Object.keys((schema?.properties ?? {}) as Record<string, Property>)
    const listed = Object.keys(input.shape).map(listedName)
    // The event that an object is of is no argument of the operation.
    const beside = !listed.includes('event') && advertised.includes('event') ? ['event'] : []
    const ofMcp = method === 'GET' ? (isList(operation) ? ['fields'] : []) : ['idempotency_key']
    expect(advertised.toSorted(), name).toEqual([...listed, ...beside, ...ofMcp].sort())
    expect(schema?.required ?? [], name).not.toContain('idempotency_key')
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
