// MCP: the operations as tools at POST /api/mcp, Streamable HTTP without sessions (docs/spec.md), with prompts and guides beside
// them. Must know nothing of an operation beyond its declaration.

import {
  createMcpHandler,
  isLegacyRequest,
  ProtocolError,
  ProtocolErrorCode,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import { type ErrorRequestHandler, type Request, type RequestHandler, type Response, Router } from 'express'
import { createCache } from '../../gateway/cache.ts'
import type { Caller } from '../../gateway/caller.ts'
import type { Gateway } from '../../gateway/calls.ts'
import { clip } from '../../guests/plain-text.ts'
import type { Operation } from '../../operations/operation.ts'
import { type AddressesOf, baseOf, connectPath } from '../addresses.ts'
import { callerOf } from '../middleware/authenticate.ts'
import { isOfClient, requireAllowedScope } from '../middleware/challenge.ts'
import { methodNotAllowed, notJson } from '../middleware/errors.ts'
import { isMalformed, isUnbounded, readJson } from '../middleware/json-body.ts'
import { logError, noteRoute } from '../middleware/log-requests.ts'
import { countAlso } from '../middleware/rate-limit.ts'
import { sendJson } from '../send-json.ts'
import type { AskPerson } from './confirmations.ts'
import { answerOf, type PlainRequest, plainRequest, tailOf } from './plain.ts'
import { nameOfList, type Selection, selectionOf } from './selection.ts'
import { buildServer, type Context, createTools, type McpTools, maximumLists, serverInfo } from './server.ts'

// Revisions before 2025-06-18 allow batches; their clients do not name the revision with each request.
const lastRevisionWithBatches = '2025-03-26'
const maximumBatch = 20

export type McpParts = {
  operations: readonly Operation[]
  gateway: Gateway
  rate: RequestHandler
  askPerson: AskPerson
  addressesOf: AddressesOf
}

export function mcpRouter({ operations, gateway, rate, askPerson, addressesOf }: McpParts): Router {
  const tools = createTools(operations, gateway, askPerson)
  const answerBySdk = sdkHandler(tools)
  const lists = createListCache()

  const serve: RequestHandler = async (req, res) => {
    const caller = callerOf(res)
    const selection = selectionOf(req)
    const isBatch = Array.isArray(req.body)
    if (isBatch) await countAlso(rate, req.body.length - 1, req, res)
    const operation = !isBatch && req.body.method === 'tools/call' ? tools.find(req.body.params?.name) : undefined
    if (operation !== undefined) {
      res.locals.operation = operation.name
      if (isOfClient(res)) await requireAllowedScope(operation, caller)
    }
    // What is listed depends on the scopes. A call is checked by the database, if it comes so far.
    else await caller.confirm()

    const plain = plainRequest(req.headers, req.body)
    const context: Context = {
      caller,
      body: req.body,
      requestId: String(req.id),
      era: plain?.era ?? 'legacy',
      selection,
      pagesAt: () => baseOf(addressesOf(req)),
      onError: (error) => logError(req, res, error, 'tool failed'),
      batch: isBatch ? { answeredBytes: 0, previous: Promise.resolve() } : undefined,
    }
    if (plain?.method === 'tools/call' && operation !== undefined) {
      const result = await tools.call(operation, plain.sent, context, req.body)
      await caller.confirm()
      return sendJson(res, answerOf(plain, result, serverInfo))
    }
    const list = plain && lists.get(plain, context)
    if (plain && list) return sendList(res, list, tailOf(plain.id))

    const response = await answerBySdk(webRequest(req), context)
    await caller.confirm()
    res.status(response.status).set(Object.fromEntries(response.headers))
    const answer = withShortMessage(response.status, await response.text())
    if (plain !== undefined) lists.keep(plain, context, answer)
    // The SDK answers a batch of one request like a single request.
    res.send(isBatch && answer.startsWith('{') && response.status === 200 ? `[${answer}]` : answer)
  }

  const router = Router()
  router.all('/', noteEndpoint, requirePost, readJson(), requireMessage, serve)
  router.use(answerUnreadable)
  return router
}

/** Answers of the SDK, by the revision that the client speaks. No tool sends anything before its result, so every answer is plain JSON. */
function sdkHandler(tools: McpTools) {
  const modern = createMcpHandler((context) => buildServer(tools, context.authInfo?.extra as Context), {
    legacy: 'reject',
  })

  async function legacy(request: globalThis.Request, context: Context): Promise<globalThis.Response> {
    const server = buildServer(tools, context)
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: undefined,
      enableJsonResponse: true,
    })
    await server.connect(transport)
    try {
      return await transport.handleRequest(request, { parsedBody: context.body })
    } finally {
      await server.close()
    }
  }

  return async (request: globalThis.Request, context: Context): Promise<globalThis.Response> => {
    const { body, caller, batch } = context
    if (batch !== undefined || (await isLegacyRequest(request, body))) return legacy(request, context)
    const extra = { ...context, era: 'modern' }
    const authInfo = { token: '', clientId: caller.principal.api_key_id, scopes: [], extra }
    return modern.fetch(request, { authInfo, parsedBody: body })
  }
}

// More than any refusal that quotes a name or a revision.
const maximumRefusal = 4_000

/** The SDK quotes what it refuses, however long that is. */
function withShortMessage(status: number, answer: string): string {
  if (status < 400 || answer.length <= maximumRefusal) return answer
  const { error, ...rest } = JSON.parse(answer) as { error: { code: number; message: string } }
  return JSON.stringify({ ...rest, error: { code: error.code, message: clip(error.message, 500) } })
}

type Selecting = { caller: Caller; selection: Selection }

/** The SDK's answers to tools/list up to their tail, by era, scopes of the key, and what is selected. All of them would be gigabytes. */
function createListCache() {
  const lists = createCache<Buffer>(maximumLists)
  const nameOf = ({ era }: PlainRequest, { caller, selection }: Selecting) => `${era} ${nameOfList(caller, selection)}`
  return {
    get: (request: PlainRequest, selecting: Selecting): Buffer | undefined =>
      request.method === 'tools/list' ? lists.get(nameOf(request, selecting)) : undefined,

    keep(request: PlainRequest, selecting: Selecting, answer: string): void {
      const tail = tailOf(request.id)
      if (request.method !== 'tools/list' || !answer.endsWith(tail)) return
      lists.set(nameOf(request, selecting), Buffer.from(answer.slice(0, -tail.length)))
    },
  }
}

function sendList(res: Response, list: Buffer, tail: string): void {
  res.type('json').set('Content-Length', String(list.length + Buffer.byteLength(tail)))
  // Both in one packet, and the list is never copied.
  res.cork()
  res.write(list)
  res.end(tail)
}

const noteEndpoint: RequestHandler = (req, res, next) => {
  noteRoute(req, res, isOfClient(res) ? connectPath : '/api/mcp')
  next()
}

const requirePost: RequestHandler = (req, _res, next) => {
  if (req.method === 'POST') return next()
  throw methodNotAllowed(req.method, 'POST', 'There are no sessions and no streams: POST every request.')
}

const requireMessage: RequestHandler = (req, _res, next) => {
  // A body was read only if its type is JSON.
  if (req.body === undefined && !req.is('application/json')) throw notJson()
  if (Array.isArray(req.body)) requireValidBatch(req.body, req.headers['mcp-protocol-version'])
  if (req.body === undefined) throw new ProtocolError(ProtocolErrorCode.ParseError, 'The body is empty.')
  next()
}

/** @throws ProtocolError InvalidRequest */
function requireValidBatch(batch: unknown[], revision: unknown): void {
  const refuse = (message: string) => {
    throw new ProtocolError(ProtocolErrorCode.InvalidRequest, message)
  }
  if (revision !== undefined && String(revision) > lastRevisionWithBatches) {
    refuse(`Send one JSON-RPC request: batches ended with revision ${lastRevisionWithBatches} of the protocol.`)
  }
  if (batch.length === 0 || batch.length > maximumBatch) refuse(`A batch holds 1 to ${maximumBatch} requests.`)
  const ids = batch.flatMap((message) => (message as { id?: unknown } | null)?.id ?? [])
  if (new Set(ids).size < ids.length) refuse('Two requests of the batch have the same id.')
}

/** Answers an unreadable message with a JSON-RPC error without an id. */
const answerUnreadable: ErrorRequestHandler = async (error, _req, res, next) => {
  const unreadable = protocolErrorOf(error)
  if (!(unreadable instanceof ProtocolError)) return next(error)
  await callerOf(res).confirm()
  res.status(400).json({ jsonrpc: '2.0', id: null, error: { code: unreadable.code, message: unreadable.message } })
}

function protocolErrorOf(error: unknown): unknown {
  if (isMalformed(error)) return new ProtocolError(ProtocolErrorCode.ParseError, error.message)
  if (isUnbounded(error)) return new ProtocolError(ProtocolErrorCode.InvalidRequest, `The ${error.message}.`)
  return error
}

/** The request for the SDK, which answers 406 without an Accept header; an example in docs/spec.md sends none. */
function webRequest(req: Request): globalThis.Request {
  const headers = new Headers()
  for (const [name, value] of Object.entries(req.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value)
  }
  headers.set('Accept', 'application/json, text/event-stream')
  return new globalThis.Request('http://usher.invalid/api/mcp', { method: 'POST', headers, body: '{}' })
}
