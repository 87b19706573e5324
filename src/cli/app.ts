// The app that `usher start` serves: its routers, from the Data API up. Must not start or stop anything.

import type { RequestListener } from 'node:http'
import type { RequestHandler } from 'express'
import type { Store } from 'express-rate-limit'
import type { Logger } from 'pino'
import { type Demo, publicRouter } from '../apps/docs/docs-page.ts'
import { doorRouter } from '../apps/door/door.ts'
import { eventPageRouter } from '../apps/events/event-page.ts'
import { exportPageRouter } from '../apps/exports/export-page.ts'
import { mailPreviewRouter } from '../apps/mail/mail-preview.ts'
import { orderPageRouter } from '../apps/orders/order-page.ts'
import { confirmRouter } from '../apps/sign-in/confirm.ts'
import { createOAuth, type OAuthParts } from '../apps/sign-in/oauth.ts'
import { guestPageRouter } from '../apps/tickets/guest-page.ts'
import { offerPageRouter } from '../apps/tickets/offer-page.ts'
import { optOutPageRouter } from '../apps/tickets/opt-out-page.ts'
import { ticketPageRouter } from '../apps/tickets/ticket-page.ts'
import { isWellFormedKey } from '../gateway/api-key.ts'
import type { Gateway } from '../gateway/calls.ts'
import type { CourierRpc } from '../gateway/courier-rpc.ts'
import type { DataApi } from '../gateway/data-api.ts'
import type { DatabaseHealth } from '../gateway/database-health.ts'
import { gatewayRpc } from '../gateway/gateway-rpc.ts'
import { createPrincipals } from '../gateway/principals.ts'
import { Queue } from '../gateway/queue.ts'
import type { Tokens } from '../gateway/tokens.ts'
import { connectPath, createAddresses } from '../http/addresses.ts'
import { createAskPerson } from '../http/mcp/confirmations.ts'
import { mcpRouter } from '../http/mcp/mcp.ts'
import { authenticate, limitFailures } from '../http/middleware/authenticate.ts'
import { guardHost } from '../http/middleware/guard-host.ts'
import { limitForms, limitRate } from '../http/middleware/rate-limit.ts'
import { recordRequests } from '../http/middleware/record-requests.ts'
import { createLookups } from '../http/middleware/secret-lookups.ts'
import { postmarkRouter } from '../http/postmark-webhook.ts'
import { healthRouter } from '../http/readiness.ts'
import type { RequestLog } from '../http/request-log.ts'
import { restRouter } from '../http/rest.ts'
import { createServer, mountAt, type ServerParts } from '../http/server.ts'
import { operations as declared } from '../operations/index.ts'
import type { Operation } from '../operations/operation.ts'

export type AppParts = Omit<ServerParts, 'routers'> & {
  dataApi: DataApi
  /** Left out: all that are declared. */
  operations?: readonly Operation[]
  /** For /ready. */
  health?: DatabaseHealth
  /** For /ready: whether webhooks and e-mails are held. */
  isHeld?: () => boolean
  tokens: Tokens
  /** How many calls the database works on at once, where that is known. */
  callsAtOnce?: number
  log: Logger
  requestLog: RequestLog
  /** Host names allowed for MCP, besides loopback. */
  allowedHosts: string[]
  stores: { requests?: Store; failures?: Store; forms?: Store }
  /** For Postmark's delivery and bounce webhooks. */
  postmark?: { secret: string; rpc: CourierRpc }
  /** The folder that e-mails are written to, for the mail preview. */
  mailFolder?: string
  /** Sender of e-mails, and so the organiser of a calendar entry where the organisation has no address. */
  mailFrom: string
  /** False: clients do not sign in by OAuth. */
  oauth?: false | Pick<OAuthParts, 'fetchDocument'>
  /** What calls of the documentation page are about. */
  demo?: Demo
}

// The Data API has twenty connections, for the courier as well.
const usualCallsAtOnce = 16

export function createApp(parts: AppParts): RequestListener {
  const { dataApi, health, isHeld, tokens, callsAtOnce = usualCallsAtOnce, log, allowedHosts, stores } = parts
  const { postmark, mailFolder, mailFrom, publicUrl, oauth = {}, demo, requestLog, operations = declared } = parts
  const principals = createPrincipals(dataApi, tokens)
  const gateway: Gateway = { tokens, queue: new Queue(dataApi, callsAtOnce) }
  const rate = limitRate(log, stores.requests)
  const countFailure = limitFailures(log, stores.failures)
  const lookups = createLookups({ isWellFormed: isWellFormedKey, resolve: principals.resolve }, countFailure)
  const guard = guardHost(allowedHosts)
  const askPerson = createAskPerson(gatewayRpc(dataApi, tokens))
  const mcp = mcpRouter({ operations, gateway, askPerson, addressesOf: createAddresses(publicUrl) })
  const signIn =
    oauth !== false && createOAuth({ dataApi, tokens, log, publicUrl, failures: countFailure, lookups, ...oauth })

  const routers: (RequestHandler | false | undefined)[] = [
    mountAt('/api', recordRequests(requestLog)),
    mountAt('/api/v1', authenticate(principals, 'api', lookups), rate, restRouter(operations, gateway)),
    signIn && mountAt(connectPath, guard, signIn.authenticate, rate, mcp),
    mountAt('/api/mcp', guard, authenticate(principals, 'mcp', lookups), rate, mcp),
    signIn !== false && signIn.router,
    confirmRouter({ dataApi, tokens, log, publicUrl, lookups }),
    healthRouter(health, isHeld),
    publicRouter(operations, demo, publicUrl),
    doorRouter(),
    ticketPageRouter({ dataApi, tokens, countFailure, mailFrom }),
    optOutPageRouter({ dataApi, tokens, countFailure }),
    guestPageRouter({ dataApi, tokens, countFailure }),
    offerPageRouter({ dataApi, tokens, countFailure }),
    orderPageRouter({ dataApi, tokens, countFailure }),
    eventPageRouter({
      ...{ operations, dataApi, tokens, countFailure, gateway, mailFrom, publicUrl },
      limitForms: limitForms(log, stores.forms),
    }),
    exportPageRouter({ operations, dataApi, tokens, gateway, countFailure }),
    postmark && postmarkRouter(postmark.secret, postmark.rpc, countFailure),
    mailFolder !== undefined && mailPreviewRouter(mailFolder),
  ]
  return createServer({ ...parts, routers: routers.filter((router) => typeof router === 'function') })
}
