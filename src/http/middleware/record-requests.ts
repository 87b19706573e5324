// Middleware: adds answered requests of a known key to the log of requests. Must never add a body, a value of a query or path, or a key.

import type { Request, RequestHandler, Response } from 'express'
import { hasMarker } from '../../gateway/api-key.ts'
import type { Caller } from '../../gateway/caller.ts'
import { IdempotencyKeySchema } from '../../gateway/calls.ts'
import type { RequestLog } from '../request-log.ts'
import { isAcceptable, type Route } from './log-requests.ts'

type Noted = { caller?: Caller; operation?: string; route?: Route; status?: number; code?: string; param?: string }

export const recordRequests =
  ({ add }: RequestLog): RequestHandler =>
  (req, res, next) => {
    const began = performance.now()
    res.once('finish', () => {
      const { caller, operation, route, status = res.statusCode, code, param } = (res as Response).locals as Noted
      if (caller === undefined) return
      // Over MCP clients ask for lists and streams besides, which they do without.
      const isCall = operation !== undefined || (code !== undefined && code !== 'method_not_allowed')
      if (caller.source === 'mcp' && !isCall) return
      const { source, principal } = caller
      add({
        organisation_id: principal.organisation_id,
        api_key_id: principal.api_key_id,
        source,
        method: req.method,
        route: (source === 'mcp' ? operation : undefined) ?? route?.pattern ?? null,
        status,
        code: code ?? null,
        param: param !== undefined && isAcceptable(param) ? param : null,
        duration_ms: Math.round(performance.now() - began),
        request_id: String(req.id),
        idempotency_key: idempotencyKeyOf(req, caller),
        created_at: new Date().toISOString(),
      })
    })
    next()
  }

function idempotencyKeyOf({ headers, body }: Request, { source }: Caller): string | null {
  const sent = source === 'mcp' ? body?.params?.arguments?.idempotency_key : headers['idempotency-key']
  if (sent === undefined) return null
  const { data } = IdempotencyKeySchema.safeParse(sent)
  return data === undefined || hasMarker(data) ? null : data
}
