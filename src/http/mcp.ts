// MCP: the operations as tools, at POST /api/mcp, Streamable HTTP without sessions (SPEC.md, "MCP endpoint"). In comes
// JSON-RPC with a caller, out goes JSON. A tool knows nothing of its operation but what the declaration says.

import {
  type CallToolResult,
  createMcpHandler,
  isLegacyRequest,
  type JSONRPCRequest,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
  Server,
  type ServerContext,
  type Tool,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import { type ErrorRequestHandler, type Request, type RequestHandler, Router } from 'express'
import * as z from 'zod'
import packageJson from '../../package.json' with { type: 'json' }
import { ApiError, toApiError } from '../gateway/api-error.ts'
import { type Call, type Caller, confirm, IdempotencyKeySchema } from '../gateway/calls.ts'
import type { Principals } from '../gateway/principals.ts'
import { isRead, type Operation } from '../operation.ts'
import { ifVersion, itemsOnAPage } from '../operations/fields.ts'
import { callerOf } from './authenticate.ts'
import { isMalformed, readJson } from './json-body.ts'
import { logError, noteRoute } from './log-requests.ts'
import { countAlso } from './rate-limit.ts'

const serverInfo = { name: 'usher', title: 'Usher', version: packageJson.version }
const instructions = [
  'Usher manages events: registrations, QR tickets and check-ins of one organisation.',
  'Start with get_api_key to see which scopes you have.',
  'To set an event up: create_event (a draft), update_event for dates and venue, create_ticket_type, perhaps create_promo_code, then publish_event.',
  'To register people: find the event with list_events and its ticket types with list_ticket_types, then register_attendee, one guest or a group. With payment_method invoice the order is pending until record_invoice_payment covers it.',
  'To help somebody: find them with list_attendees or list_orders by e-mail address or reference; update_attendee corrects or transfers a ticket, resend_ticket e-mails it, get_ticket_qr shows it.',
  'At the door: check_in takes the ticket code, undo_check_in takes a mistake back, list_check_ins is the log.',
  'Before cancelling anything, call it with dry_run true and tell the person how many people it touches.',
  'A refusal is a result with isError and an error object: act on error.code, read error.hint, and repeat a call only when error.retryable is true. Give every write an idempotency_key, and repeat the same key when repeating the call. Amounts are in minor units: 49.00 EUR is 4900. Lists are pages: while has_more is true, send next_cursor as cursor.',
].join('\n')

type Context = {
  caller: Caller
  /** The message or batch as it was read: the SDK drops members that it cannot copy, such as `__proto__`. */
  body: unknown
  requestId: string
  onError: (error: unknown) => void
  /** Of a batch: what it has been answered so far, and the request before, which is waited for. */
  batch: { answered: number; turn: Promise<unknown> } | undefined
}

// Revisions before 2025-06-18 allow batches; their clients do not name the revision with each request.
const lastRevisionWithBatches = '2025-03-26'
const maximumBatch = 20
// Further requests of a batch are not begun after so much of an answer.
const maximumBatchAnswer = 1024 * 1024

/** Parameters that do not fit are the caller's mistake, whatever the method: the SDK says so of tool calls only. */
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

export function mcpRouter(
  operations: readonly Operation[],
  call: Call,
  principals: Principals,
  rate: RequestHandler,
): Router {
  const byName = new Map(operations.map((operation) => [operation.name, operation]))
  const tools = operations.map(toTool)
  const sizeOfTools = JSON.stringify(tools).length

  function buildServer(context: Context): Server {
    const { caller, requestId, onError } = context
    const server = new StrictServer(serverInfo, { capabilities: { tools: {} }, instructions })
    server.setRequestHandler('tools/list', () => inTurn(context, async () => ({ tools }), sizeOfTools))
    server.setRequestHandler('tools/call', async ({ params }, { mcpReq }): Promise<CallToolResult> => {
      const operation = byName.get(params.name)
      if (!operation) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'Unknown tool.')
      const sent = argumentsOf(context.body, mcpReq.id)
      const { idempotency_key, ...input } = sent
      return inTurn(context, async () => {
        try {
          // A read has no idempotency key: handing it on as a field gets it refused by name.
          const answer = isRead(operation)
            ? await call(operation, caller, { ...defaults(operation), ...sent })
            : await call(operation, caller, input, idempotency_key)
          const content = [...text(answer.body), ...(await pictures(operation, answer.body.data))]
          return { content, structuredContent: answer.body }
        } catch (error) {
          const refusal = await confirm(caller, principals).then(() => toApiError(error), toApiError)
          if (refusal.status >= 500) onError(error)
          // Text alone: structured content has to fit the tool's output schema, and clients throw when it does not.
          return { content: text({ error: refusal.body(requestId) }), isError: true }
        }
      })
    })
    return server
  }

  // No tool says anything before its result, so a result is plain JSON.
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
      batch: isBatch ? { answered: 0, turn: Promise.resolve() } : undefined,
    }
    const request = webRequest(req)
    const auth = { token: '', clientId: caller.principal.api_key_id, scopes: [], extra: context }
    const response =
      isBatch || (await isLegacyRequest(request, body))
        ? await legacy(request, body, context)
        : await modern.fetch(request, { authInfo: auth, parsedBody: body })
    // What was answered from memory: a list of tools, an error of the protocol.
    await confirm(caller, principals)
    res.status(response.status).set(Object.fromEntries(response.headers))
    const answer = await response.text()
    // The SDK answers a batch with one request in it as if it were none.
    res.send(isBatch && answer.startsWith('{') && response.status === 200 ? `[${answer}]` : answer)
  }

  const router = Router()
  router.all('/', noteEndpoint, refuseOtherMethods, readJson, refuseOtherBodies, serve)
  router.use(answerUnreadable(principals))
  return router
}

/** Of a tool call, as they were read. */
function argumentsOf(body: unknown, id: unknown): Record<string, unknown> {
  const message = [body].flat().find((message) => (message as { id?: unknown } | null)?.id === id)
  return (message as { params?: { arguments?: Record<string, unknown> } } | undefined)?.params?.arguments ?? {}
}

/** One by one within a batch, which then is no way to have many calls under way for the price of a connection. */
async function inTurn<T>({ batch }: Context, work: () => Promise<T>, size?: number): Promise<T> {
  if (batch === undefined) return work()
  const result = batch.turn.then(async () => {
    if (batch.answered >= maximumBatchAnswer) {
      throw new ProtocolError(
        ProtocolErrorCode.InvalidRequest,
        'The answers of the batch are too large: send this request alone.',
      )
    }
    const result = await work()
    batch.answered += size ?? JSON.stringify(result).length
    return result
  })
  batch.turn = result.catch(() => {})
  return result
}

const noteEndpoint: RequestHandler = (req, res, next) => {
  noteRoute(req, res, '/api/mcp')
  next()
}

const defaults = (operation: Operation) => ('limit' in operation.input.shape ? { limit: itemsOnAPage.mcp } : {})

async function pictures(operation: Operation, data: unknown): Promise<CallToolResult['content']> {
  const png = operation.pictures?.png
  if (png === undefined) return []
  const picture = Buffer.from(await png.draw(data))
  return [{ type: 'image', data: picture.toString('base64'), mimeType: png.mediaType }]
}

/** As `tools/list` shows it; made once, when the server starts. */
export function toTool(operation: Operation): Tool {
  const input = inputOf(operation)
  const scope = operation.scope === null ? 'Needs no scope: any valid key.' : `Needs scope ${operation.scope}.`
  return {
    name: operation.name,
    title: operation.title,
    description: `${operation.description} ${scope}`,
    inputSchema: z.toJSONSchema(input, { io: 'input' }) as Tool['inputSchema'],
    outputSchema: z.toJSONSchema(operation.output) as Tool['outputSchema'],
    annotations: {
      title: operation.title,
      readOnlyHint: isRead(operation),
      destructiveHint: operation.hints?.destructive ?? false,
      idempotentHint: operation.hints?.idempotent ?? true,
      openWorldHint: false,
    },
  }
}

/** Extending leaves behind what is said of the input as a whole, such as anyOf: hosts refuse tools that say it. */
function inputOf(operation: Operation): z.ZodObject {
  const { input } = operation
  if (!isRead(operation)) {
    return input.safeExtend({
      // A list of versions is for If-Match.
      ...('if_version' in input.shape && { if_version: ifVersion }),
      idempotency_key: IdempotencyKeySchema.optional(),
    })
  }
  if (!('limit' in input.shape)) return input
  const { limit } = input.shape
  return input.safeExtend({ limit: (limit as z.ZodType).default(itemsOnAPage.mcp).describe(limit.description ?? '') })
}

function text(body: Record<string, unknown>): CallToolResult['content'] {
  return [{ type: 'text', text: JSON.stringify(body) }]
}

const refuseOtherMethods: RequestHandler = (req, _res, next) => {
  if (req.method === 'POST') return next()
  throw new ApiError(405, 'method_not_allowed', `This path does not answer ${req.method}.`, {
    hint: 'There are no sessions and no streams: POST every request.',
    headers: { Allow: 'POST' },
  })
}

const refuseOtherBodies: RequestHandler = (req, _res, next) => {
  if (!req.is('application/json')) {
    throw new ApiError(415, 'unsupported_media_type', 'The body must be JSON.', {
      hint: 'Send the header Content-Type: application/json.',
    })
  }
  if (Array.isArray(req.body)) refuseBatch(req.body, req.headers['mcp-protocol-version'])
  if (req.body === undefined) throw new ProtocolError(ProtocolErrorCode.ParseError, 'The body is empty.')
  next()
}

/** Each request of a batch counts against the rate limit, and they are answered one by one. */
function refuseBatch(batch: unknown[], revision: unknown): void {
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

/** What cannot be read has no id to answer to, and is answered in JSON-RPC's own words all the same. */
function answerUnreadable(principals: Principals): ErrorRequestHandler {
  return async (error, _req, res, next) => {
    const unreadable = isMalformed(error) ? new ProtocolError(ProtocolErrorCode.ParseError, error.message) : error
    if (!(unreadable instanceof ProtocolError)) return next(error)
    await confirm(callerOf(res), principals)
    res.status(400).json({ jsonrpc: '2.0', id: null, error: { code: unreadable.code, message: unreadable.message } })
  }
}

/** As the SDK wants it: the spec's own example sends no Accept header, which the SDK would answer with 406. */
function webRequest(req: Request): globalThis.Request {
  const headers = new Headers()
  for (const [name, value] of Object.entries(req.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value)
  }
  headers.set('Accept', 'application/json, text/event-stream')
  return new globalThis.Request('http://usher.invalid/api/mcp', { method: 'POST', headers, body: '{}' })
}
