// The HTTP server: which middleware runs, in which order. In comes what the parts need, out goes an Express app; nothing
// here starts or stops anything.

import { localhostAllowedHostnames, validateHostHeader, validateOriginHeader } from '@modelcontextprotocol/server'
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express'
import type { Store } from 'express-rate-limit'
import helmet from 'helmet'
import type { Logger } from 'pino'
import type { CourierRpc } from '../courier/courier-rpc.ts'
import { ApiError, toApiError } from '../gateway/api-error.ts'
import { type Caller, confirm, createCall } from '../gateway/calls.ts'
import type { DataApi } from '../gateway/data-api.ts'
import type { DatabaseHealth } from '../gateway/database-health.ts'
import { createPrincipals, type Principals } from '../gateway/principals.ts'
import type { Tokens } from '../gateway/tokens.ts'
import { operations } from '../operations/index.ts'
import { authenticate, limitFailures } from './authenticate.ts'
import { publicRouter } from './docs-page.ts'
import { createKeyAttempts } from './key-attempts.ts'
import { logError, logRequests } from './log-requests.ts'
import { mailPreviewRouter } from './mail-preview.ts'
import { mcpRouter } from './mcp.ts'
import { postmarkRouter } from './postmark-webhook.ts'
import { limitRate } from './rate-limit.ts'
import { answerReadiness } from './readiness.ts'
import { restRouter } from './rest.ts'

export type AppParts = {
  dataApi: DataApi
  /** What /ready tells. */
  health?: DatabaseHealth
  tokens: Tokens
  log: Logger
  /** Host names MCP answers to, besides loopback. */
  allowedHosts: string[]
  /** Express's `trust proxy`: whose X-Forwarded-For to believe. */
  trustProxy: boolean | number | string
  stores: { requests?: Store; failures?: Store }
  /** Where Postmark may tell what became of e-mails: the secret it has to know, and whom it tells. */
  postmark?: { secret: string; outbox: CourierRpc }
  /** Where tickets are written to instead of being sent, to be looked at from this machine. */
  outbox?: string
  /** Told of every write, when it is committed. */
  onWritten?: () => void
  /** Measures requests, where anybody wants to know. */
  measure?: RequestHandler
}

export function createApp({
  dataApi,
  health,
  tokens,
  log,
  allowedHosts,
  trustProxy,
  stores,
  postmark,
  outbox,
  onWritten,
  measure,
}: AppParts): Express {
  const principals = createPrincipals(dataApi, tokens)
  const call = createCall({ dataApi, tokens, principals, onWritten })
  const rate = limitRate(log, stores.requests)
  const countFailure = limitFailures(log, stores.failures)
  const attempts = createKeyAttempts(principals, countFailure)

  const app = express()
  app.set('trust proxy', trustProxy)
  app.set('query parser', 'simple')
  app.disable('etag')
  app.use(logRequests(log))
  if (measure !== undefined) app.use(measure)
  app.use(helmet())
  app.get('/health', (_req, res) => void res.json({ status: 'ok' }))
  if (health !== undefined) app.get('/ready', answerReadiness(health))
  app.use(publicRouter(operations))
  if (postmark !== undefined) app.use(postmarkRouter(postmark.secret, postmark.outbox, countFailure))
  if (outbox !== undefined) app.use(mailPreviewRouter(outbox))

  app.use('/api/v1', authenticate(principals, 'api', attempts), rate, restRouter(operations, call, principals))
  app.use(
    '/api/mcp',
    guardHost(allowedHosts),
    authenticate(principals, 'mcp', attempts),
    rate,
    mcpRouter(operations, call, principals, rate),
  )

  app.use(refuseUnknownPath)
  app.use(answerError(principals))
  return app
}

/** Against DNS rebinding: a page in the organiser's browser must not speak to an MCP server on their machine. */
function guardHost(allowedHosts: string[]): RequestHandler {
  const allowed = [...localhostAllowedHostnames(), ...allowedHosts]
  return (req, _res, next) => {
    if (!validateHostHeader(req.headers.host, allowed).ok) {
      throw new ApiError(403, 'host_not_allowed', 'The Host header names a host this server does not answer to.', {
        hint: 'Add the host name to ALLOWED_HOSTS.',
      })
    }
    if (!validateOriginHeader(req.headers.origin, allowed).ok) {
      throw new ApiError(403, 'origin_not_allowed', 'The Origin header names a site that may not call this server.', {
        hint: 'Add its host name to ALLOWED_HOSTS.',
      })
    }
    next()
  }
}

const refuseUnknownPath: RequestHandler = () => {
  throw new ApiError(404, 'unknown_path', 'There is nothing at this path.', {
    hint: 'REST lives below /api/v1, MCP at /api/mcp.',
  })
}

/** The one place where an error becomes an answer. */
function answerError(principals: Principals): ErrorRequestHandler {
  return async (error, req, res, _next) => {
    const refusal = await refusalToTell(refusalOfHttp(error) ?? toApiError(error), res.locals.caller, principals)
    if (refusal.status >= 500) logError(req, res, refusal.cause ?? error, refusal.message)
    // Half an answer is none.
    if (res.headersSent) return void res.destroy()
    res.locals.code = refusal.code
    res.set(refusal.headers)
    if (refusal.replayed) res.set('Idempotent-Replayed', 'true')
    res.status(refusal.status).json({ error: refusal.body(String(req.id)) })
  }
}

/** What was refused without the database is told only to a key that is still good. The rate limit is there to spare it, and comes first. */
async function refusalToTell(refusal: ApiError, caller: Caller | undefined, principals: Principals): Promise<ApiError> {
  if (caller === undefined || refusal.status >= 500 || [401, 429].includes(refusal.status)) return refusal
  return confirm(caller, principals).then(() => refusal, toApiError)
}

/** What Express and its body parser throw. */
function refusalOfHttp(error: { type?: string; status?: number }): ApiError | undefined {
  if (error instanceof ApiError) return undefined
  switch (error.type) {
    case 'entity.too.large':
      return new ApiError(413, 'payload_too_large', 'The body is larger than 256 KiB.')
    case 'encoding.unsupported':
      return new ApiError(415, 'unsupported_media_type', 'The body has a Content-Encoding that is not known here.')
  }
  if (typeof error.status === 'number' && error.status >= 400 && error.status < 500) {
    return new ApiError(400, 'bad_request', 'The request cannot be read.', { cause: error })
  }
  return undefined
}
