// MCP: the operations as tools at POST /api/mcp, Streamable HTTP without sessions (docs/spec.md), with prompts and guides beside
// them. Must know nothing of an operation beyond its declaration.

import {
  type CallToolResult,
  createMcpHandler,
  isLegacyRequest,
  type JSONRPCRequest,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  type Result,
  Server,
  type ServerContext,
  type Tool,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import { type ErrorRequestHandler, type Request, type RequestHandler, type Response, Router } from 'express'
import { LRUCache } from 'lru-cache'
import packageJson from '../../package.json' with { type: 'json' }
import { toApiError } from '../gateway/api-error.ts'
import { type Call, type Caller, confirm } from '../gateway/calls.ts'
import type { Principals } from '../gateway/principals.ts'
import { type Operation, scopes } from '../operation.ts'
import { callerOf } from './authenticate.ts'
import { methodNotAllowed, notJson } from './errors.ts'
import { isMalformed, isUnbounded, readJson } from './json-body.ts'
import { logError, noteRoute } from './log-requests.ts'
import { listedGuides, readGuide } from './mcp-guides.ts'
import { answerOf, type PlainRequest, plainRequest, tailOf } from './mcp-plain.ts'
import { getPrompt, listedPrompts } from './mcp-prompts.ts'
import { callTool, toErrorResult, toTools } from './mcp-tools.ts'
import { countAlso } from './rate-limit.ts'
import { sendJson } from './send-json.ts'

const serverInfo = { name: 'usher', title: 'Usher', version: packageJson.version }
const instructions = [
  'Usher manages events: registrations, QR tickets and check-ins of one organisation.',
  'Start with get_api_key to see which scopes you have: tools whose scope the key lacks are not listed.',
  'To set an event up: create_event (a draft), update_event for dates and venue, create_ticket_type, perhaps create_promo_code, then publish_event.',
  'To register people: find the event with list_events and its ticket types with list_ticket_types, then register_attendee, one guest or a group. With payment_method invoice the order is pending until record_invoice_payment covers it.',
  'To help an attendee: find them with search of list_attendees or list_orders; update_attendee corrects or transfers a ticket, resend_ticket e-mails it, get_ticket_qr shows it.',
  'At the door: check_in takes the ticket code, or the attendee_id that find_attendees gives for a name; undo_check_in reverts a mistake, list_check_ins is the log.',
  'Before cancelling anything, call it with dry_run true and tell the person how many people it affects.',
  'An error is a result with isError and an error object: act on error.code, read error.hint, and repeat a call only when error.retryable is true. Give every write an idempotency_key, and repeat the same key when repeating the call. Amounts are in minor units: 49.00 EUR is 4900; times are RFC 3339 with their offset. In an update fields left out stay, and null clears one. Lists are pages: while has_more is true, send next_cursor as cursor.',
].join('\n')

const capabilities = { tools: {}, prompts: {}, resources: {} }

// What is listed depends on the scopes of the key, which may change; what is read does not depend on the key.
const [listsFor, textsFor] = [
  { ttlMs: 5 * 60_000, cacheScope: 'private' },
  { ttlMs: 60 * 60_000, cacheScope: 'public' },
] as const
const cacheHints = {
  'tools/list': listsFor,
  'prompts/list': listsFor,
  'resources/list': textsFor,
  'resources/templates/list': textsFor,
  'resources/read': textsFor,
  'server/discover': textsFor,
}

type Context = {
  caller: Caller
  /** The message or batch as received: the SDK drops members that it cannot copy, such as `__proto__`. */
  body: unknown
  requestId: string
  onError: (error: unknown) => void
  /** Of a batch: the size of its answers so far, and the request before this one. */
  batch: { answeredBytes: number; previous: Promise<unknown> } | undefined
}

// Revisions before 2025-06-18 allow batches; their clients do not name the revision with each request.
const lastRevisionWithBatches = '2025-03-26'
const maximumBatch = 20
// No further request of a batch is begun beyond this size of its answers.
const maximumBatchBytes = 1024 * 1024

/** Answers invalid parameters with InvalidParams for every method: the SDK does so for tool calls only. */
class StrictServer extends Server {
  protected override _wrapHandler(method: string, handler: Handler): Handler {
    const invalid = new ProtocolError(ProtocolErrorCode.InvalidParams, `The parameters of ${method} are not valid.`)
    if (method !== 'tools/call') {
      return super._wrapHandler(method, async (request, context) => {
        try {
          return await handler(request, context)
        } catch (error) {
          throw error instanceof ProtocolError ? error : invalid
        }
      })
    }
    const validated = super._wrapHandler(method, handler)
    return async (request, context) => {
      try {
        return await validated(request, context)
      } catch (error) {
        // The SDK quotes its schema library at length.
        throw error instanceof ProtocolError && error.message.startsWith('Invalid tools/call request') ? invalid : error
      }
    }
  }
}

type Handler = (request: JSONRPCRequest, context: ServerContext) => Promise<Result>

export function mcpRouter(all: readonly Operation[], call: Call, principals: Principals, rate: RequestHandler): Router {
  const operations = all.filter(({ mcp }) => mcp !== false)
  const byName = new Map(operations.map((operation) => [operation.name, operation]))
  // On the first request, for it takes as long as the rest of a start.
  let allTools: Tool[] | undefined

  /** A tool whose scope the key lacks is not listed. */
  function toolsFor({ principal }: Caller): Tool[] {
    allTools ??= toTools(operations, all)
    return allTools.filter((_, i) => {
      const scope = operations[i]?.scope ?? null
      return scope === null || principal.scopes.includes(scope)
    })
  }

  async function resultOf(operation: Operation, sent: Record<string, unknown>, context: Context) {
    try {
      return await callTool(operation, sent, context.caller, call)
    } catch (error) {
      const apiError = await confirm(context.caller, principals).then(() => toApiError(error), toApiError)
      if (apiError.status >= 500) context.onError(error)
      return toErrorResult(apiError, context.requestId)
    }
  }

  function buildServer(context: Context): Server {
    const server = new StrictServer(serverInfo, { capabilities, instructions, cacheHints })
    const scopesOfKey = async () => {
      await confirm(context.caller, principals)
      return context.caller.principal.scopes
    }
    server.setRequestHandler('tools/list', () =>
      inTurn(context, async () => {
        await scopesOfKey()
        return { tools: toolsFor(context.caller) }
      }),
    )
    server.setRequestHandler('tools/call', async ({ params }, { mcpReq }): Promise<CallToolResult> => {
      const operation = byName.get(params.name)
      if (!operation) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'Unknown tool.')
      const sent = argumentsOf(context.body, mcpReq.id)
      return inTurn(context, () => resultOf(operation, sent, context))
    })
    server.setRequestHandler('prompts/list', () =>
      inTurn(context, async () => ({ prompts: listedPrompts(await scopesOfKey()) })),
    )
    server.setRequestHandler('prompts/get', ({ params }) =>
      inTurn(context, async () => {
        const prompt = getPrompt(params.name, params.arguments)
        if (prompt !== undefined && typeof prompt !== 'string') return prompt
        const message = prompt === undefined ? 'Unknown prompt.' : `The argument ${prompt} of the prompt is missing.`
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, message)
      }),
    )
    server.setRequestHandler('resources/list', () => inTurn(context, async () => ({ resources: listedGuides })))
    server.setRequestHandler('resources/templates/list', () => inTurn(context, async () => ({ resourceTemplates: [] })))
    server.setRequestHandler('resources/read', ({ params }) =>
      inTurn(context, async () => {
        const guide = readGuide(params.uri)
        if (guide === undefined) throw new ResourceNotFoundError(params.uri)
        return guide
      }),
    )
    return server
  }

  // No tool sends anything before its result, so every answer is plain JSON.
  const modern = createMcpHandler((context) => buildServer(context.authInfo?.extra as Context), { legacy: 'reject' })

  async function legacy(request: globalThis.Request, body: unknown, context: Context): Promise<globalThis.Response> {
    const server = buildServer(context)
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: undefined,
      enableJsonResponse: true,
    })
    await server.connect(transport)
    try {
      return await transport.handleRequest(request, { parsedBody: body })
    } finally {
      await server.close()
    }
  }

  // The SDK's answers to tools/list up to their tail, by era and scopes of the key. All of them would be 10 MB.
  const lists = new LRUCache<string, Buffer>({ max: 64 })
  const nameOfList = ({ era }: PlainRequest, { principal }: Caller) =>
    [era, ...scopes.filter((scope) => principal.scopes.includes(scope))].join()

  /** @returns whether the request is answered. */
  async function answerPlain(request: PlainRequest, context: Context, res: Response): Promise<boolean> {
    const operation = request.method === 'tools/call' ? byName.get(request.name) : undefined
    if (request.method === 'tools/call') {
      if (operation === undefined) return false
      const result = await resultOf(operation, request.sent, context)
      await confirm(context.caller, principals)
      sendJson(res, answerOf(request, result, serverInfo))
      return true
    }
    await confirm(context.caller, principals)
    const list = lists.get(nameOfList(request, context.caller))
    if (list === undefined) return false
    const tail = tailOf(request.id)
    res.type('json').set('Content-Length', String(list.length + Buffer.byteLength(tail)))
    // Both in one packet, and the list is never copied.
    res.cork()
    res.write(list)
    res.end(tail)
    return true
  }

  const serve: RequestHandler = async (req, res) => {
    const caller = callerOf(res)
    const body: unknown = req.body
    const isBatch = Array.isArray(body)
    if (isBatch) await countAlso(rate, body.length - 1, req, res)
    const operation = isBatch || req.body.method !== 'tools/call' ? undefined : byName.get(req.body.params?.name)
    if (operation !== undefined) res.locals.operation = operation.name

    const context: Context = {
      caller,
      body,
      requestId: String(req.id),
      onError: (error) => logError(req, res, error, 'tool failed'),
      batch: isBatch ? { answeredBytes: 0, previous: Promise.resolve() } : undefined,
    }
    const plain = plainRequest(req.headers, body)
    if (plain !== undefined && (await answerPlain(plain, context, res))) return
    const request = webRequest(req)
    const auth = { token: '', clientId: caller.principal.api_key_id, scopes: [], extra: context }
    const response =
      isBatch || (await isLegacyRequest(request, body))
        ? await legacy(request, body, context)
        : await modern.fetch(request, { authInfo: auth, parsedBody: body })
    // Guides and protocol errors are answered without the database.
    await confirm(caller, principals)
    res.status(response.status).set(Object.fromEntries(response.headers))
    const answer = await response.text()
    if (plain?.method === 'tools/list' && answer.endsWith(tailOf(plain.id))) {
      lists.set(nameOfList(plain, caller), Buffer.from(answer.slice(0, -tailOf(plain.id).length)))
    }
    // The SDK answers a batch of one request like a single request.
    res.send(isBatch && answer.startsWith('{') && response.status === 200 ? `[${answer}]` : answer)
  }

  const router = Router()
  router.all('/', noteEndpoint, requirePost, readJson(), requireMessage, serve)
  router.use(answerUnreadable(principals))
  return router
}

/** The arguments of a tool call, as received. */
function argumentsOf(body: unknown, id: unknown): Record<string, unknown> {
  const message = [body].flat().find((message) => (message as { id?: unknown } | null)?.id === id)
  return (message as { params?: { arguments?: Record<string, unknown> } } | undefined)?.params?.arguments ?? {}
}

/** Runs the requests of a batch one by one: a batch must not run many calls at once over one connection. */
async function inTurn<T>({ batch }: Context, work: () => Promise<T>): Promise<T> {
  if (batch === undefined) return work()
  const result = batch.previous.then(async () => {
    if (batch.answeredBytes >= maximumBatchBytes) {
      throw new ProtocolError(
        ProtocolErrorCode.InvalidRequest,
        'The answers of the batch are too large: send this request alone.',
      )
    }
    const result = await work()
    batch.answeredBytes += JSON.stringify(result).length
    return result
  })
  batch.previous = result.catch(() => {})
  return result
}

const noteEndpoint: RequestHandler = (req, res, next) => {
  noteRoute(req, res, '/api/mcp')
  next()
}

const requirePost: RequestHandler = (req, _res, next) => {
  if (req.method === 'POST') return next()
  throw methodNotAllowed(req.method, 'POST', 'There are no sessions and no streams: POST every request.')
}

const requireMessage: RequestHandler = (req, _res, next) => {
  if (!req.is('application/json')) throw notJson()
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
function answerUnreadable(principals: Principals): ErrorRequestHandler {
  return async (error, _req, res, next) => {
    const unreadable = protocolErrorOf(error)
    if (!(unreadable instanceof ProtocolError)) return next(error)
    await confirm(callerOf(res), principals)
    res.status(400).json({ jsonrpc: '2.0', id: null, error: { code: unreadable.code, message: unreadable.message } })
  }
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
