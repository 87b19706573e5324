// Callers over MCP: the official clients, each in the revision it is made to speak, and a bare HTTP request for what no
// client would send. Every answer is held against what the operation declares and what tools/list advertises.

import { request } from 'node:http'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expect, inject, onTestFinished } from 'vitest'
import * as z from 'zod'
import type { ErrorBody } from '../../src/gateway/api-error.ts'
import { operations } from '../../src/operations/index.ts'
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
  outputSchema: JsonSchema.optional(),
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

/** Closed at the end of the test, or `atEnd`. */
export type Connect = (key: string, apiUrl?: string, atEnd?: AtEnd) => Promise<McpCaller>

/** For `beforeAll`: a client that several tests use. To connect and to list costs more than most calls. */
export async function connectForAll(
  connect: Connect | undefined,
  key: string,
): Promise<{ mcp: McpCaller; close: () => Promise<void> }> {
  if (connect === undefined) throw new Error('no client to connect')
  let close = async () => {}
  const mcp = await connect(key, undefined, (closing) => {
    close = closing
  })
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
): Promise<McpCaller> {
  const client = new ClientV1({ name: 'test', version: '1' }, { jsonSchemaValidator: validatorV1 })
  const transport = new TransportV1(new URL(`${apiUrl}/api/mcp`), { requestInit: bearing(key) })
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
  return async (key, apiUrl = inject('apiUrl'), atEnd = onTestFinished) => {
    const client = new Client(
      { name: 'test', version: '1' },
      revision >= '2026-07-28'
        ? { jsonSchemaValidator: validator, versionNegotiation: { mode: { pin: revision } } }
        : { jsonSchemaValidator: validator, supportedProtocolVersions: [revision] },
    )
    return connectCurrent(client, key, apiUrl, atEnd)
  }
}

/** The current package as a host would use it: it finds out by itself what the server speaks. */
export async function negotiating(key: string, apiUrl = inject('apiUrl')): Promise<McpCaller> {
  return connectCurrent(
    new Client(
      { name: 'test', version: '1' },
      { jsonSchemaValidator: validator, versionNegotiation: { mode: 'auto' } },
    ),
    key,
    apiUrl,
    onTestFinished,
  )
}

async function connectCurrent(client: Client, key: string, apiUrl: string, atEnd: AtEnd): Promise<McpCaller> {
  await client.connect(new StreamableHTTPClientTransport(new URL(`${apiUrl}/api/mcp`), { requestInit: bearing(key) }))
  atEnd(() => client.close())
  const { tools } = await client.listTools()
  return caller(client.getNegotiatedProtocolVersion(), client.getServerCapabilities(), tools, (name, args) =>
    client.callTool({ name, arguments: args }),
  )
}

const ToolResult = z.looseObject({
  content: z.tuple(
    [z.looseObject({ type: z.literal('text'), text: z.string() })],
    z.looseObject({ type: z.literal('image'), data: z.base64(), mimeType: z.literal('image/png') }),
  ),
  structuredContent: z.record(z.string(), z.unknown()).optional(),
  isError: z.boolean().optional(),
})

const ErrorAnswer = z.strictObject({
  error: z.strictObject({
    code: z.string().regex(/^[a-z_]+$/),
    message: z.string().min(1),
    param: z.string().optional(),
    details: z.unknown().optional(),
    hint: z.string().optional(),
    retryable: z.boolean(),
    request_id: z.string().min(1),
  }),
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
      return heldAgainstSchemas(name, tools, result)
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

/** The text is the structured content, which both the declaration and the advertised schema allow. */
function heldAgainstSchemas(name: string, tools: Tool[], result: z.infer<typeof ToolResult>): Body {
  const { structuredContent: body = {}, content } = result
  expect(JSON.parse(content[0].text)).toEqual(body)
  operations.find((operation) => operation.name === name)?.output.parse(body)
  const advertised = tools.find((tool) => tool.name === name)?.outputSchema
  if (!advertised) throw new Error(`${name} advertises no output schema`)
  expect(validator.getValidator(advertised)(body)).toMatchObject({ valid: true })
  return body
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
  { method = 'POST', apiUrl = inject('apiUrl') }: { method?: string; apiUrl?: string } = {},
): Promise<HttpAnswer> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return new Promise((resolve, reject) => {
    const req = request(`${apiUrl}/api/mcp`, { method, headers, agent: false }, (res) => {
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
