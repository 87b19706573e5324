// Logs one line per request: id, method, path pattern with its UUID parameters, status, duration, and the ids of the caller. Must
// never log other text of a path or query, a key, a token, a header or a body.

import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import querystring from 'node:querystring'
import type { Request, RequestHandler, Response } from 'express'
import type { Logger } from 'pino'
import { pinoHttp } from 'pino-http'
import type { ApiError } from '../../gateway/api-error.ts'
import { hasMarker } from '../../gateway/api-key.ts'
import type { Caller } from '../../gateway/caller.ts'
import { serializers } from '../../process/log.ts'

// A key sent by mistake must not reach the log.
export const isAcceptable = (text: string) => /^[A-Za-z0-9._~-]{1,128}$/.test(text) && !hasMarker(text)

/** Takes the request id from X-Request-Id if it is acceptable, else generates one; answers it in X-Request-Id. */
export function logRequests(log: Logger): RequestHandler {
  return pinoHttp({
    logger: log,
    genReqId(req: IncomingMessage, res: ServerResponse) {
      const given = req.headers['x-request-id']
      const id = typeof given === 'string' && isAcceptable(given) ? given : randomUUID()
      res.setHeader('X-Request-Id', id)
      return id
    },
    // Otherwise pino-http would apply its own serializers first.
    serializers,
    wrapSerializers: false,
    // Of a request, the loggers name its id alone.
    quietReqLogger: true,
    quietResLogger: true,
    customAttributeKeys: { reqId: 'request_id' },
    customLogLevel: (_req, res, error) => (error || res.statusCode >= 500 ? 'error' : 'info'),
    customSuccessMessage: () => 'request',
    customErrorMessage: () => 'request',
    customSuccessObject: (req, res, { responseTime }) => summarise(req, res, responseTime),
    customErrorObject: (req, res, _error, { responseTime }) => summarise(req, res, responseTime),
  })
}

/** To be called by the route of a request: `pattern` is its whole path, with `{name}` for parameters. */
export function noteRoute(req: Request, res: Response, pattern: string): void {
  res.locals.route = { pattern, ids: Object.fromEntries(Object.entries(req.params).filter(([, text]) => isUuid(text))) }
}

/** To be called with the refusal that is answered, whose status over MCP is not that of HTTP. */
export function noteRefusal(res: Response, { status, code, param }: ApiError): void {
  Object.assign(res.locals, { status, code, param })
}

/** Logs an error, without parts of the path that the caller made up. */
export function logError(req: Request, res: Response, error: unknown, message: string): void {
  const fixed = new Set(routeOf(req, res)?.pattern.split('/'))
  const typed = req.originalUrl
    .split(/[/?#]/)
    .flatMap((part) => [part, querystring.unescape(part)])
    .filter((part) => part.length > 3 && !fixed.has(part) && !isUuid(part))
  const err = (error: unknown) =>
    typed.reduce<unknown>((described, part) => replaceIn(described, part), serializers.err(error))
  req.log.child({}, { serializers: { err } }).error({ err: error }, message)
}

function replaceIn(value: unknown, part: string): unknown {
  if (typeof value === 'string') return value.replaceAll(part, '…')
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inside]) => [name, replaceIn(inside, part)]))
}

export type Route = { pattern: string; ids: Record<string, unknown> }

/** As noted by the route; for routes of the app itself, which have no prefix, as matched by Express. */
function routeOf(req: IncomingMessage, res: ServerResponse): Route | undefined {
  const noted = (res as Response).locals.route as Route | undefined
  const matched: unknown = (req as Request).route?.path
  return noted ?? (typeof matched === 'string' ? { pattern: matched.replace(/:(\w+)/g, '{$1}'), ids: {} } : undefined)
}

export const isUuid = (text: unknown): boolean =>
  typeof text === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)

// Node's parser accepts more, which are sent only to appear in the log.
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'CONNECT', 'TRACE'])

function summarise(req: IncomingMessage, res: ServerResponse, durationMs: number): Record<string, unknown> {
  const { caller, operation, code } = (res as Response).locals as { caller?: Caller; operation?: string; code?: string }
  const route = routeOf(req, res)
  return {
    method: methods.has(req.method ?? '') ? req.method : 'other',
    ...(route && { path: route.pattern, ...route.ids }),
    status: res.statusCode,
    duration_ms: durationMs,
    ...(operation !== undefined && { operation }),
    ...(code !== undefined && { code }),
    ...(caller && { organisation_id: caller.principal.organisation_id, api_key_id: caller.principal.api_key_id }),
  }
}
