// Builds the Express app: which middleware runs, in which order. Must not start or stop anything.

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { localhostAllowedHostnames, validateHostHeader, validateOriginHeader } from '@modelcontextprotocol/server'
import express, { type ErrorRequestHandler, type Request, type RequestHandler, type Response } from 'express'
import type { Store } from 'express-rate-limit'
import helmet, { type HelmetOptions } from 'helmet'
import type { Logger } from 'pino'
import { ApiError, toApiError } from '../gateway/api-error.ts'
import { isWellFormedKey } from '../gateway/api-key.ts'
import type { Caller } from '../gateway/caller.ts'
import { createCall } from '../gateway/calls.ts'
import type { CourierRpc } from '../gateway/courier-rpc.ts'
import type { DataApi } from '../gateway/data-api.ts'
import type { DatabaseHealth } from '../gateway/database-health.ts'
import { createExports } from '../gateway/exports.ts'
import { createPlaces } from '../gateway/places.ts'
import { createPrincipals } from '../gateway/principals.ts'
import type { Tokens } from '../gateway/tokens.ts'
import { operations } from '../operations/index.ts'
import { createAskPerson } from './mcp/confirmations.ts'
import { mcpRouter } from './mcp/mcp.ts'
import { authenticate, limitFailures } from './middleware/authenticate.ts'
import { apiErrorOfExpress } from './middleware/errors.ts'
import { logError, logRequests } from './middleware/log-requests.ts'
import { noticeProxy } from './middleware/notice-proxy.ts'
import { limitRate } from './middleware/rate-limit.ts'
import { createLookups } from './middleware/secret-lookups.ts'
import { gatewayRpc } from './oauth/adapter.ts'
import { createAddresses } from './oauth/addresses.ts'
import { connectRouter, nameResourceMetadata } from './oauth/connect.ts'
import { connectPath, createOAuth, type OAuthParts } from './oauth/oauth.ts'
import { confirmRouter } from './pages/confirm.ts'
import { type Demo, publicRouter } from './pages/docs-page.ts'
import { doorRouter } from './pages/door.ts'
import { exportPageRouter } from './pages/export-page.ts'
import { mailPreviewRouter } from './pages/mail-preview.ts'
import { optOutPageRouter } from './pages/opt-out-page.ts'
import { ticketPageRouter } from './pages/ticket-page.ts'
import { postmarkRouter } from './postmark-webhook.ts'
import { answerReadiness } from './readiness.ts'
import { restRouter } from './rest.ts'

export type AppParts = {
  dataApi: DataApi
  /** For /ready. */
  health?: DatabaseHealth
  /** For /ready: whether webhooks and e-mails are held. */
  isHeld?: () => boolean
  tokens: Tokens
  /** How many calls the database works on at once, where that is known. */
  callsAtOnce?: number
  log: Logger
  /** Host names allowed for MCP, besides loopback. */
  allowedHosts: string[]
  /** Express's `trust proxy`: whose X-Forwarded-For is trusted. */
  trustProxy: boolean | number | string
  stores: { requests?: Store; failures?: Store }
  /** For Postmark's delivery and bounce webhooks. */
  postmark?: { secret: string; rpc: CourierRpc }
  /** The folder that e-mails are written to, for the mail preview. */
  mailFolder?: string
  /** Sender of e-mails, and so the organiser of a calendar entry where the organisation has no address. */
  mailFrom: string
  /** Where others reach the API. A proxy strips its path. */
  publicUrl?: string | undefined
  /** Whether every host below the one of an https `publicUrl` is for https only, too. */
  hstsIncludeSubDomains?: boolean
  /** False: clients do not sign in by OAuth. */
  oauth?: false | Pick<OAuthParts, 'fetchDocument'>
  /** What calls of the documentation page are about. */
  demo?: Demo
  /** Middleware that measures requests. */
  measure?: RequestHandler
}

export function createApp({
  dataApi,
  health,
  isHeld,
  tokens,
  // The Data API has twenty connections, for the courier as well.
  callsAtOnce = 16,
  log,
  allowedHosts,
  trustProxy,
  stores,
  postmark,
  mailFolder,
  mailFrom,
  publicUrl,
  hstsIncludeSubDomains = false,
  oauth = {},
  demo,
  measure,
}: AppParts): RequestListener {
  const principals = createPrincipals(dataApi, tokens)
  const places = createPlaces(callsAtOnce)
  const call = createCall({ dataApi, tokens, places })
  const exports = createExports({ dataApi, tokens, places })
  const rate = limitRate(log, stores.requests)
  const countFailure = limitFailures(log, stores.failures)
  const lookups = createLookups({ isWellFormed: isWellFormedKey, resolve: principals.resolve }, countFailure)

  const app = express()
  app.set('trust proxy', trustProxy)
  app.set('query parser', 'simple')
  app.disable('etag')
  app.disable('x-powered-by')
  app.use(logRequests(log))
  if (measure !== undefined) app.use(measure)
  if (trustProxy === false) app.use(noticeProxy(log))
  app.use(setHeaders(securityHeaders(hstsOf(publicUrl, hstsIncludeSubDomains))))
  app.use('/api/v1', authenticate(principals, 'api', lookups), rate, restRouter(operations, call, exports))
  const guard = guardHost(allowedHosts)
  const mcp = mcpRouter({
    operations,
    call,
    rate,
    askPerson: createAskPerson(gatewayRpc(dataApi, tokens)),
    addressesOf: createAddresses(publicUrl),
  })
  const signIn =
    oauth !== false && createOAuth({ dataApi, tokens, log, publicUrl, failures: countFailure, lookups, ...oauth })
  if (signIn) app.use(connectPath, connectRouter(guard, signIn.authenticate, rate, mcp))
  app.use('/api/mcp', guard, authenticate(principals, 'mcp', lookups), rate, mcp)

  // Behind the API: each of their routes is compared with the path of every request that comes so far.
  if (signIn) app.use(signIn.router)
  app.use(confirmRouter({ dataApi, tokens, log, publicUrl, lookups }))
  app.get('/health', (_req, res) => void res.json({ status: 'ok' }))
  if (health !== undefined) app.get('/ready', answerReadiness(health, isHeld))
  app.use(publicRouter(operations, demo, publicUrl))
  app.use(doorRouter())
  app.use(ticketPageRouter({ dataApi, tokens, countFailure, mailFrom }))
  app.use(optOutPageRouter({ dataApi, tokens, countFailure }))
  app.use(exportPageRouter({ operations, dataApi, tokens, exports, countFailure }))
  if (postmark !== undefined) app.use(postmarkRouter(postmark.secret, postmark.rpc, countFailure))
  if (mailFolder !== undefined) app.use(mailPreviewRouter(mailFolder))

  app.use(refuseUnknownPath)
  app.use(answerError)
  return answerAlways(app)
}

/** Express finds no path in a target such as `http://`, and would answer it before any middleware, with a page of its own. */
const answerAlways =
  (app: RequestHandler): RequestListener =>
  (req, res) =>
    app(req as Request, res as Response, () => {
      req.url = '/*'
      app(req as Request, res as Response, () => {})
    })

/** Helmet's headers, which are the same for every answer: it would make them again for each. */
function securityHeaders(strictTransportSecurity: HelmetOptions['strictTransportSecurity']): Map<string, string> {
  const headers = new Map<string, string>()
  const answer = {
    setHeader: (name: string, value: string) => headers.set(name, value),
    removeHeader: (name: string) => headers.delete(name),
  }
  helmet({ strictTransportSecurity })({} as IncomingMessage, answer as unknown as ServerResponse, () => {})
  return headers
}

/** What is reached by http has no use for it, and other hosts of the domain are not ours to bind. */
const hstsOf = (publicUrl: string | undefined, includeSubDomains: boolean) =>
  publicUrl?.startsWith('https:') ? { includeSubDomains } : false

const setHeaders =
  (headers: Map<string, string>): RequestHandler =>
  (_req, res, next) => {
    res.setHeaders(headers)
    next()
  }

/** Prevents DNS rebinding: a web page in the organiser's browser must not call an MCP server on their machine. */
function guardHost(allowedHosts: string[]): RequestHandler {
  const allowed = [...localhostAllowedHostnames(), ...allowedHosts]
  // Nearly every request names the same host as the one before.
  let last: string | undefined
  return (req, _res, next) => {
    const { host } = req.headers
    if (host === undefined || host !== last) {
      if (!validateHostHeader(host, allowed).ok) {
        throw new ApiError(403, 'host_not_allowed', 'The host in the Host header is not allowed.', {
          hint: 'Add the host name to ALLOWED_HOSTS.',
        })
      }
      last = host
    }
    if (!validateOriginHeader(req.headers.origin, allowed).ok) {
      throw new ApiError(403, 'origin_not_allowed', 'The site in the Origin header is not allowed.', {
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

/** The only place where an error becomes an answer, except for MCP. */
const answerError: ErrorRequestHandler = async (error, req, res, _next) => {
  const answer = await withKeyConfirmed(apiErrorOfExpress(error) ?? toApiError(error), res.locals.caller)
  if (answer.status >= 500) logError(req, res, answer.cause ?? error, answer.message)
  // An answer that has begun can only be cut off.
  if (res.headersSent) return void res.destroy()
  res.locals.code = answer.code
  res.set(answer.headers)
  nameResourceMetadata(answer.status, res)
  if (answer.replayed) res.set('Idempotent-Replayed', 'true')
  res.status(answer.status).json({ error: answer.body(String(req.id)) })
}

/** The error, or 401 if the key was revoked meanwhile. Not for 429: the rate limit is there to spare the database. */
async function withKeyConfirmed(error: ApiError, caller: Caller | undefined): Promise<ApiError> {
  if (caller === undefined || error.status >= 500 || [401, 429].includes(error.status)) return error
  return caller.confirm().then(() => error, toApiError)
}
