// What is logged of a request: its id, method, path without the query (which may hold an e-mail address), status, time
// taken, and who called by id. Never a key, a token, a header or a body.

import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { RequestHandler, Response } from 'express'
import type { Logger } from 'pino'
import { pinoHttp } from 'pino-http'
import type { Caller } from './calls.ts'
import { serializers } from './log.ts'

const acceptableId = /^[A-Za-z0-9._~-]{1,128}$/

/** Gives each request its id, from X-Request-Id where it is a plain one, answers it in X-Request-Id, and logs one line at the end. */
export function logRequests(log: Logger): RequestHandler {
  return pinoHttp({
    logger: log,
    genReqId(req: IncomingMessage, res: ServerResponse) {
      const given = req.headers['x-request-id']
      const id = typeof given === 'string' && acceptableId.test(given) ? given : randomUUID()
      res.setHeader('X-Request-Id', id)
      return id
    },
    // pino-http would put serializers of its own before the log's.
    serializers,
    wrapSerializers: false,
    quietReqLogger: true,
    quietResLogger: true,
    customAttributeKeys: { reqId: 'request_id' },
    customLogLevel: (_req, res, error) => (error || res.statusCode >= 500 ? 'error' : 'info'),
    customSuccessMessage: () => 'request',
    customErrorMessage: () => 'request',
    customSuccessObject: (req, res, { responseTime }) => summarise(req, res, responseTime),
    customErrorObject: (req, res, _error, { responseTime }) => summarise(req, res, responseTime),
  }) as unknown as RequestHandler
}

function summarise(req: IncomingMessage, res: ServerResponse, milliseconds: number): Record<string, unknown> {
  const { caller, operation, code } = (res as Response).locals as { caller?: Caller; operation?: string; code?: string }
  return {
    method: req.method,
    path: ((req as { originalUrl?: string }).originalUrl ?? req.url ?? '').split('?', 1)[0],
    status: res.statusCode,
    duration_ms: milliseconds,
    ...(operation !== undefined && { operation }),
    ...(code !== undefined && { code }),
    ...(caller && { organisation_id: caller.principal.organisation_id, api_key_id: caller.principal.api_key_id }),
  }
}
