// MCP: the operations as tools, at POST /api/mcp, Streamable HTTP without sessions (SPEC.md, "MCP endpoint"). In comes
// JSON-RPC with a caller, out goes JSON. A tool knows nothing of its operation but what the declaration says.

import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node'
import {
  type CallToolResult,
  createMcpHandler,
  isLegacyRequest,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type Tool,
} from '@modelcontextprotocol/server'
import { type ErrorRequestHandler, type Request, type RequestHandler, type Response, Router } from 'express'
import * as z from 'zod'
import packageJson from '../package.json' with { type: 'json' }
import { callerOf } from './gateway/authenticate.ts'
import { type Call, type Caller, IdempotencyKeySchema } from './gateway/calls.ts'
import { isMalformed, readJson } from './gateway/json-body.ts'
import type { Principals } from './gateway/principals.ts'
import { Refusal, toRefusal } from './gateway/refusal.ts'
import { isRead, type Operation } from './operation.ts'
import { ifVersion, itemsOnAPage } from './operations/fields.ts'

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

/** `sent` are the arguments of a tool call as they were read: the SDK drops members that it cannot copy, such as `__proto__`. */
type Context = { caller: Caller; sent?: Record<string, unknown>; requestId: string; onError: (error: unknown) => void }

export function mcpRouter(operations: readonly Operation[], call: Call, principals: Principals): Router {
  const byName = new Map(operations.map((operation) => [operation.name, operation]))
  const tools = operations.map(toTool)

  function buildServer({ caller, sent = {}, requestId, onError }: Context): Server {
    const server = new Server(serverInfo, { capabilities: { tools: {} }, instructions })
    server.setRequestHandler('tools/list', () => ({ tools }))
    server.setRequestHandler('tools/call', async ({ params }): Promise<CallToolResult> => {
      const operation = byName.get(params.name)
      if (!operation) await principals.resolve(caller.key)
      if (!operation) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'Unknown tool.')
      const { idempotency_key, ...input } = sent
      try {
        // A read has no idempotency key: handing it on as a field gets it refused by name.
        const answer = isRead(operation)
          ? await call(operation, caller, { ...defaults(operation), ...sent })
          : await call(operation, caller, input, idempotency_key)
        const content = [...text(answer.body), ...(await pictures(operation, answer.body.data))]
        return { content, structuredContent: answer.body }
      } catch (error) {
        const refusal = toRefusal(error)
        if (refusal.status >= 500) onError(error)
        // Text alone: structured content has to fit the tool's output schema, and clients throw when it does not.
        return { content: text({ error: refusal.body(requestId) }), isError: true }
      }
    })
    return server
  }

  const modern = toNodeHandler(
    // No tool says anything before its result, so a result is plain JSON.
    createMcpHandler((context) => buildServer(context.authInfo?.extra as Context), { legacy: 'reject' }),
  )

  async function legacy(req: Request, res: Response, context: Context): Promise<void> {
    const server = buildServer(context)
    const transport = new NodeStreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true })
    res.on('close', () => {
      void transport.close()
      void server.close()
    })
    await server.connect(transport)
    await transport.handleRequest(req, res, req.body)
  }

  const serve: RequestHandler = async (req, res) => {
    const caller = callerOf(res)
    // Anything but a tool call is answered from memory, so a key revoked within the last minute is noticed here or never.
    if (req.body.method !== 'tools/call') await principals.resolve(caller.key)
    else if (byName.has(req.body.params?.name)) res.locals.operation = req.body.params.name

    const context: Context = {
      caller,
      sent: req.body.params?.arguments,
      requestId: String(req.id),
      onError: (error) => req.log.error({ err: error }, 'tool failed'),
    }
    if (await isLegacyRequest(webRequest(req), req.body)) return legacy(req, res, context)
    const auth = { token: '', clientId: caller.principal.api_key_id, scopes: [], extra: context }
    await modern(Object.assign(req, { auth }), res, req.body)
  }

  const router = Router()
  router.all('/', refuseOtherMethods, readJson, refuseOtherBodies, acceptJson, serve)
  router.use(answerUnreadable)
  return router
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
  throw new Refusal(405, 'method_not_allowed', `This path does not answer ${req.method}.`, {
    hint: 'There are no sessions and no streams: POST every request.',
    headers: { Allow: 'POST' },
  })
}

const refuseOtherBodies: RequestHandler = (req, _res, next) => {
  if (!req.is('application/json')) {
    throw new Refusal(415, 'unsupported_media_type', 'The body must be JSON.', {
      hint: 'Send the header Content-Type: application/json.',
    })
  }
  // A batch would be many requests for the price of one; MCP dropped it in revision 2025-06-18.
  if (Array.isArray(req.body)) {
    throw new ProtocolError(ProtocolErrorCode.InvalidRequest, 'Send one JSON-RPC request: batches are not supported.')
  }
  if (req.body === undefined) throw new ProtocolError(ProtocolErrorCode.ParseError, 'The body is empty.')
  next()
}

/** What cannot be read has no id to answer to, and is answered in JSON-RPC's own words all the same. */
const answerUnreadable: ErrorRequestHandler = (error, _req, res, next) => {
  const unreadable = isMalformed(error) ? new ProtocolError(ProtocolErrorCode.ParseError, error.message) : error
  if (!(unreadable instanceof ProtocolError)) return next(error)
  res.status(400).json({ jsonrpc: '2.0', id: null, error: { code: unreadable.code, message: unreadable.message } })
}

/** The spec's own example sends no Accept header, which the SDK would answer with 406. It reads the header in both places. */
const acceptJson: RequestHandler = (req, _res, next) => {
  const accept = 'application/json, text/event-stream'
  req.headers.accept = accept
  const at = req.rawHeaders.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === 'accept')
  if (at >= 0) req.rawHeaders[at + 1] = accept
  else req.rawHeaders.push('Accept', accept)
  next()
}

/** Only what the revision is told by: method and headers. */
function webRequest(req: Request): globalThis.Request {
  const headers = new Headers()
  for (const [name, value] of Object.entries(req.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value)
  }
  return new globalThis.Request('http://usher.invalid/api/mcp', { method: 'POST', headers, body: '{}' })
}
