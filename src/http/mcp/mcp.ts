// MCP: the operations as tools at POST /api/mcp, Streamable HTTP without sessions (docs/spec.md), with prompts and guides beside
// them. Must know nothing of an operation beyond its declaration.

import {
  createMcpHandler,
  isLegacyRequest,
  ProtocolError,
  ProtocolErrorCode,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import { type ErrorRequestHandler, type Request, type RequestHandler, Router } from 'express'
import { clip } from '../../guests/plain-text.ts'
import { type AddressesOf, baseOf, connectPath } from '../addresses.ts'
import { callerOf } from '../middleware/authenticate.ts'
import { isOfClient, requireAllowedScope } from '../middleware/challenge.ts'
import { methodNotAllowed, notJson } from '../middleware/errors.ts'
import { isMalformed, isUnbounded, readJson } from '../middleware/json-body.ts'
import { logError, noteRefusal, noteRoute } from '../middleware/log-requests.ts'
import { type Context, findTool, type Tools } from './call-tool.ts'
import { selectionOf } from './selection.ts'
import { buildServer } from './server.ts'
import { createTimeZones } from './time-zones.ts'

export function mcpRouter(parts: Omit<Tools, 'zonesOf'> & { addressesOf: AddressesOf }): Router {
  const operations = parts.operations.filter(({ mcp }) => mcp !== false)
  const tools: Tools = { ...parts, operations, zonesOf: createTimeZones(parts.gateway) }

  const serve: RequestHandler = async (req, res) => {
    const caller = callerOf(res)
    const selection = selectionOf(req)
    const operation = req.body.method === 'tools/call' ? findTool(tools, req.body.params?.name) : undefined
    if (operation !== undefined) {
      res.locals.operation = operation.name
      if (isOfClient(res)) await requireAllowedScope(operation, caller)
    }
    // What is listed depends on the scopes. A call is checked by the database, if it comes so far.
    else await caller.confirm()

    const request = webRequest(req)
    const response = await answerBySdk(request, tools, {
      caller,
      message: req.body,
      requestId: String(req.id),
      era: (await isLegacyRequest(request, req.body)) ? 'legacy' : 'modern',
      selection,
      pages: baseOf(parts.addressesOf(req)),
      onRefusal: (refusal, error) => {
        if (refusal.status >= 500) logError(req, res, error, 'tool failed')
        noteRefusal(res, refusal)
      },
    })
    await caller.confirm()
    res.status(response.status).set(Object.fromEntries(response.headers))
    res.send(withShortMessage(response.status, await response.text()))
  }

  const router = Router()
  router.all('/', noteEndpoint, requirePost, readJson(), requireMessage, serve)
  router.use(answerUnreadable)
  return router
}

/** By the revision that the client speaks. No tool sends anything before its result, so every answer is plain JSON. */
async function answerBySdk(request: globalThis.Request, tools: Tools, context: Context): Promise<globalThis.Response> {
  const server = buildServer(tools, context)
  if (context.era === 'modern') {
    return createMcpHandler(() => server, { legacy: 'reject' }).fetch(request, { parsedBody: context.message })
  }
  // That handler answers earlier revisions with a stream of events.
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
  await server.connect(transport)
  try {
    return await transport.handleRequest(request, { parsedBody: context.message })
  } finally {
    await server.close()
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
  if (req.body === undefined) throw new ProtocolError(ProtocolErrorCode.ParseError, 'The body is empty.')
  if (Array.isArray(req.body)) {
    throw new ProtocolError(
      ProtocolErrorCode.InvalidRequest,
      'Send one JSON-RPC request at a time. Batches are not supported.',
    )
  }
  next()
}

/** Answers an unreadable message with a JSON-RPC error without an id. */
const answerUnreadable: ErrorRequestHandler = async (error, _req, res, next) => {
  const unreadable = protocolErrorOf(error)
  if (unreadable === undefined) return next(error)
  await callerOf(res).confirm()
  res.status(400).json({ jsonrpc: '2.0', id: null, error: { code: unreadable.code, message: unreadable.message } })
}

function protocolErrorOf(error: unknown): ProtocolError | undefined {
  if (error instanceof ProtocolError) return error
  if (isMalformed(error)) return new ProtocolError(ProtocolErrorCode.ParseError, error.message)
  if (isUnbounded(error)) return new ProtocolError(ProtocolErrorCode.InvalidRequest, `The ${error.message}.`)
  return undefined
}

/** The request for the SDK, which answers 406 without an Accept header; an example in docs/spec.md sends none. */
function webRequest(req: Request): globalThis.Request {
  const headers = new Headers(Object.entries(req.headers).map(([name, value]) => [name, String(value)]))
  headers.set('Accept', 'application/json, text/event-stream')
  return new globalThis.Request('http://usher.invalid/api/mcp', { method: 'POST', headers })
}
