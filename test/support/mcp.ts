// Callers over MCP: the official clients, each in the revision it is made to speak, and a bare HTTP request for what no
// client would send. Every answer is held against what the operation declares.

import { request } from 'node:http'
import { Client, type ClientOptions, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expect, inject, onTestFinished } from 'vitest'
import * as z from 'zod'
import type { ErrorBody } from '../../src/gateway/api-error.ts'
import { operations } from '../../src/operations/index.ts'
import type { Operation } from '../../src/operations/operation.ts'
import { ErrorAnswer } from './rest.ts'
import { validator, validatorV1 } from './schema-validators.ts'

type Arguments = Record<string, unknown>
type Body = Record<string, unknown>

const JsonSchema = z.looseObject({ type: z.literal('object') })

/** As tools/list shows it, however little that is: what it must be is for test/mcp/registry.test.ts to say. */
const Tool = z.looseObject({
  name: z.string(),
  title: z.string().optional(),
  description: z.string().optional(),
  inputSchema: JsonSchema,
  annotations: z.record(z.string(), z.unknown()).optional(),
})
export type Tool = z.infer<typeof Tool>

export type McpCaller = {
  /** The protocol revision both sides agreed on. */
  revision: string | undefined
  /** What the server says it can do. */
  capabilities: unknown
  tools: Tool[]
  /** The structured content of a call that succeeds. */
  call(name: string, args?: Arguments): Promise<Body>
  /** The pictures that come with a result. */
  pictures(name: string, args?: Arguments): Promise<Buffer[]>
  /** The error object of a call that is refused with `isError`. */
  refusal(name: string, args?: Arguments): Promise<ErrorBody>
}

type AtEnd = (close: () => Promise<void>) => void

/** Closed at the end of the test, or `atEnd`. `query` selects what is listed. */
export type Connect = (key: string, apiUrl?: string, atEnd?: AtEnd, query?: string) => Promise<McpCaller>

/** For `beforeAll`: a client that several tests use. To connect and to list costs more than most calls. */
export async function connectForAll(
  connect: Connect | undefined,
  key: string,
  query = '',
): Promise<{ mcp: McpCaller; close: () => Promise<void> }> {
  if (connect === undefined) throw new Error('no client to connect')
  let close = async () => {}
  const atEnd: AtEnd = (closing) => {
    close = closing
  }
  const mcp = await connect(key, undefined, atEnd, query)
  return { mcp, close }
}

/** The official clients, by what they are and what they speak. */
export const clients: ReadonlyArray<{ client: string; revision: string; connect: Connect }> = [
  { client: 'sdk 1', revision: '2025-11-25', connect: connectV1 },
  { client: 'client 2', revision: '2026-07-28', connect: speaking('2026-07-28') },
  { client: 'client 2', revision: '2025-06-18', connect: speaking('2025-06-18') },
]

/** The v1 package: what most deployed hosts are built with. */
export async function connectV1(
  key: string,
  apiUrl = inject('apiUrl'),
  atEnd: AtEnd = onTestFinished,
  query = '',
): Promise<McpCaller> {
  const client = new ClientV1({ name: 'test', version: '1' }, { jsonSchemaValidator: validatorV1 })
  const transport = new TransportV1(new URL(`${apiUrl}/api/mcp?${query}`), { requestInit: bearing(key) })
  await client.connect(transport)
  atEnd(() => client.close())
  // As every host does first. Having listed, this client validates structured content by itself, that of refusals too.
  const { tools } = await client.listTools()
  return caller(transport.protocolVersion, client.getServerCapabilities(), tools, (name, args) =>
    client.callTool({ name, arguments: args }),
  )
}

/** The current package, pinned to one revision: 2026-07-28 is discovered, anything earlier is initialised. */
export function speaking(revision: string): Connect {
  return connectCurrent(
    revision >= '2026-07-28'
      ? { versionNegotiation: { mode: { pin: revision } } }
      : { supportedProtocolVersions: [revision] },
  )
}

/** The current package as a host would use it: it finds out by itself what the server speaks. */
export const negotiating = connectCurrent({ versionNegotiation: { mode: 'auto' } })

function connectCurrent(options: ClientOptions): Connect {
  return async (key, apiUrl = inject('apiUrl'), atEnd = onTestFinished, query = '') => {
    const client = new Client({ name: 'test', version: '1' }, { jsonSchemaValidator: validator, ...options })
    const url = new URL(`${apiUrl}/api/mcp?${query}`)
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit: bearing(key) }))
    atEnd(() => client.close())
    const { tools } = await client.listTools()
    return caller(client.getNegotiatedProtocolVersion(), client.getServerCapabilities(), tools, (name, args) =>
      client.callTool({ name, arguments: args }),
    )
  }
}

const ToolResult = z.looseObject({
  content: z.tuple(
    [z.looseObject({ type: z.literal('text'), text: z.string() })],
    z.looseObject({ type: z.literal('image'), data: z.base64(), mimeType: z.literal('image/png') }),
  ),
  structuredContent: z.record(z.string(), z.unknown()).optional(),
  isError: z.boolean().optional(),
})

function caller(
  revision: string | undefined,
  capabilities: unknown,
  listed: unknown[],
  callTool: (name: string, args: Arguments) => Promise<unknown>,
): McpCaller {
  const tools = listed.map((tool) => Tool.parse(tool))
  return {
    revision,
    capabilities,
    tools,
    async call(name, args = {}) {
      const result = ToolResult.parse(await callTool(name, args))
      expect(result.isError ?? false, result.content[0].text).toBe(false)
      return heldAgainstDeclaration(name, result, revision)
    },
    async pictures(name, args = {}) {
      const [, ...pictures] = ToolResult.parse(await callTool(name, args)).content
      return pictures.map(({ data }) => Buffer.from(data, 'base64'))
    },
    async refusal(name, args = {}) {
      const result = ToolResult.parse(await callTool(name, args))
      expect(result.isError, result.content[0].text).toBe(true)
      return refusalOf(result)
    },
  }
}

/** The text is the structured content, or from 2026-07-28 on points to it; all of it is what the declaration allows. */
function heldAgainstDeclaration(name: string, result: z.infer<typeof ToolResult>, revision = ''): Body {
  const { structuredContent: body = {}, content } = result
  if (revision < '2026-07-28') expect(JSON.parse(content[0].text)).toEqual(body)
  else expect(content[0].text).toMatch(/^.{5,60}structuredContent/)
  const operation = operations.find((operation) => operation.name === name)
  const held = operation && validator.getValidator(partsOf(operation))(withoutWords(body))
  expect(held, `${name} ${JSON.stringify(body)}`).toMatchObject({ valid: true })
  return body
}

const schemas = new Map<string, unknown>()

/** What a part of an answer has to be, as declared: names and types, but no pattern, for times are in the zone of the event. */
function partsOf({ name, output }: Operation): never {
  const known = schemas.get(name)
  if (known !== undefined) return known as never
  const schema = z.toJSONSchema(output, {
    override: ({ jsonSchema }) => {
      for (const keyword of ['required', 'pattern', 'format'] as const) delete jsonSchema[keyword]
    },
  })
  schemas.set(name, schema)
  return schema as never
}

/** Without what is added in words, and places in a filtered list. */
function withoutWords(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutWords)
  if (typeof value !== 'object' || value === null) return value
  const isNamed = 'event_id' in value
  const isAdded = (name: string) =>
    name === 'when' || name === 'index' || /_text$/.test(name) || (isNamed && name === 'event')
  const kept = Object.entries(value).filter(([name]) => !isAdded(name))
  return Object.fromEntries(kept.map(([name, member]) => [name, withoutWords(member)]))
}

function refusalOf({ content, structuredContent }: z.infer<typeof ToolResult>): ErrorBody {
  const body = ErrorAnswer.parse(JSON.parse(content[0].text))
  if (structuredContent) expect(structuredContent).toEqual(body)
  return body.error as ErrorBody
}

export const bearing = (key: string) => ({ headers: { Authorization: `Bearer ${key}` } })

export type HttpAnswer = {
  status: number
  headers: Record<string, string | string[] | undefined>
  /** Parsed JSON; undefined where there is no body. */
  body: unknown
}

/** One bare request to /api/mcp, with exactly these headers: node:http adds no Accept, and lets a caller lie about Host. */
export function post(
  body: unknown,
  headers: Record<string, string>,
  { method = 'POST', apiUrl = inject('apiUrl'), query = '' }: { method?: string; apiUrl?: string; query?: string } = {},
): Promise<HttpAnswer> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return new Promise((resolve, reject) => {
    const req = request(`${apiUrl}/api/mcp?${query}`, { method, headers, agent: false }, (res) => {
      let received = ''
      res.setEncoding('utf8').on('data', (chunk: string) => {
        received += chunk
      })
      res.on('end', () =>
        resolve({
          status: res.statusCode ?? 0,
          headers: res.headers,
          body: received === '' ? undefined : JSON.parse(received),
        }),
      )
    })
    req.on('error', reject)
    req.end(method === 'POST' ? text : undefined)
  })
}

export const jsonHeaders = (key: string) => ({ ...bearing(key).headers, 'Content-Type': 'application/json' })

export const toolCall = (name: string, args: Arguments = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: args },
})
