// The Express app around its routers: what every request passes, and how an error is answered. Must not start or stop anything.

import type { RequestListener } from 'node:http'
import express, { type ErrorRequestHandler, type Request, type RequestHandler, type Response, Router } from 'express'
import helmet from 'helmet'
import type { Logger } from 'pino'
import { ApiError, toApiError } from '../gateway/api-error.ts'
import type { Caller } from '../gateway/caller.ts'
import { nameResourceMetadata } from './middleware/challenge.ts'
import { apiErrorOfExpress, beginError } from './middleware/errors.ts'
import { logRequests } from './middleware/log-requests.ts'

export type ServerParts = {
  log: Logger
  /** Express's `trust proxy`: whose X-Forwarded-For is trusted. */
  trustProxy: boolean | number | string
  /** Where others reach the API. */
  publicUrl?: string | undefined
  /** Whether every host below the one of an https `publicUrl` is for https only, too. */
  hstsIncludeSubDomains?: boolean
  /** Middleware that measures requests. */
  measure?: RequestHandler | undefined
  /** In the order in which they are asked: each compares its routes with the path of every request that comes so far. */
  routers: RequestHandler[]
}

export function createServer(parts: ServerParts): RequestListener {
  const { log, trustProxy, publicUrl, hstsIncludeSubDomains = false, measure, routers } = parts
  const app = express()
  app.set('trust proxy', trustProxy)
  app.set('query parser', 'simple')
  app.disable('etag')
  app.disable('x-powered-by')
  app.use(logRequests(log))
  if (measure !== undefined) app.use(measure)
  if (trustProxy === false) app.use(noticeProxy(log))
  app.use(helmet({ strictTransportSecurity: hstsOf(publicUrl, hstsIncludeSubDomains) }))
  for (const router of routers) app.use(router)
  app.use(refuseUnknownPath)
  app.use(answerError)
  return answerAlways(app)
}

/** The handlers in order, at a path; what they do not answer goes on behind. */
export function mountAt(path: string, ...handlers: RequestHandler[]): RequestHandler {
  const router = Router()
  router.use(path, ...handlers)
  return router
}

/** Warns once that a proxy seems to be in front without TRUST_PROXY. Any client can send the header: no more than that. */
function noticeProxy(log: Logger): RequestHandler {
  let isSaid = false
  return (req, _res, next) => {
    if (!isSaid && 'x-forwarded-for' in req.headers) {
      isSaid = true
      log.warn(
        'A request has the header X-Forwarded-For, but TRUST_PROXY is not set: callers behind a proxy count as one address, ' +
          'which invalid keys of one of them slow down. Set TRUST_PROXY to the number of proxies in front, or to their addresses.',
      )
    }
    next()
  }
}

/** Express finds no path in a target such as `http://`, and would answer it before any middleware, with a page of its own. */
const answerAlways =
  (app: RequestHandler): RequestListener =>
  (req, res) =>
    app(req as Request, res as Response, () => {
      req.url = '/*'
      app(req as Request, res as Response, () => {})
    })

/** What is reached by http has no use for it, and other hosts of the domain are not ours to bind. */
const hstsOf = (publicUrl: string | undefined, includeSubDomains: boolean) =>
  publicUrl?.startsWith('https:') ? { includeSubDomains } : false

const refuseUnknownPath: RequestHandler = () => {
  throw new ApiError(404, 'unknown_path', 'There is nothing at this path.', {
    hint: 'REST lives below /api/v1, MCP at /api/mcp.',
  })
}

/** Where an error becomes an answer; MCP, and pages that answer with a page, have theirs. */
const answerError: ErrorRequestHandler = async (error, req, res, _next) => {
  const confirmed = await withKeyConfirmed(apiErrorOfExpress(error) ?? toApiError(error), res.locals.caller)
  const answer = beginError(confirmed, req, res)
  if (answer === undefined) return
  nameResourceMetadata(answer.status, res)
  if (answer.replayed) res.set('Idempotent-Replayed', 'true')
  res.status(answer.status).json({ error: answer.body(String(req.id)) })
}

/** The error, or 401 if the key was revoked meanwhile. Not for 429: the rate limit is there to spare the database. */
async function withKeyConfirmed(error: ApiError, caller: Caller | undefined): Promise<ApiError> {
  if (caller === undefined || error.status >= 500 || [401, 429].includes(error.status)) return error
  return caller.confirm().then(() => error, toApiError)
}
