// The courier as a Supabase Edge Function: a POST with the function's secret does one bounded run and answers how much it claimed. How to
// schedule it is in docs/operate/courier.md. It must do nothing without the secret.

import { env } from 'node:process'
import { runCourierOnce } from '../../../src/courier/courier.ts'
import { enforceDeadlinesOnce, expireOffersOnce, purgeOnce } from '../../../src/courier/housekeeping.ts'
import { announceOnce, heldMessage, namesOfProject, releaseFix } from '../../../src/courier/installation.ts'
import { openQueues } from '../../../src/courier/queues.ts'
import { ApiError, toApiError } from '../../../src/gateway/api-error.ts'
import { createCourierRpc } from '../../../src/gateway/courier-rpc.ts'
import { DataApi } from '../../../src/gateway/data-api.ts'
import { createTokens } from '../../../src/gateway/tokens.ts'
import { bearerOf } from '../../../src/http/middleware/bearer.ts'
import { sharedSecret } from '../../../src/http/middleware/shared-secret.ts'
import { createLog } from '../../../src/process/log.ts'
import { configuredPorts } from '../../../src/process/outbound/own-ports.ts'
import { readFunctionConfig } from './config.ts'

declare const Deno: { serve(handler: (request: Request) => Promise<Response>): unknown }

// Deliveries in flight are finished after this, so that a run ends well within what a platform allows one request.
const runMs = 20_000

const { courier: config, database, secret } = readFunctionConfig(env)
const log = createLog(config.logLevel, { write: (line) => console.error(line.trimEnd()) })
const tokens = await createTokens(database.signingKey, config.publicUrl, namesOfProject(database.url))
const address = { url: database.url, projectKey: database.publishableKey }
// Deno's own fetch is native code; undici on its sockets is many times slower.
const rpc = createCourierRpc(new DataApi(address, tokens, { fetch }), tokens)
const isSecret = sharedSecret(secret)

Deno.serve(async (request) => {
  try {
    authorise(request)
    return Response.json(await deliver())
  } catch (error) {
    const apiError = toApiError(error)
    if (apiError.status >= 500) log.error({ err: apiError.cause ?? error }, apiError.message)
    const answer = { error: apiError.body(crypto.randomUUID()) }
    return Response.json(answer, { status: apiError.status, headers: apiError.headers })
  }
})

/** @returns how many items of each queue were claimed, orders expired or reminded of, offers of the waiting list expired, and rows purged; `held` while nothing may be sent. */
async function deliver(): Promise<Record<string, number | boolean>> {
  const held = await announceOnce(rpc)
  if (held) log.warn(`${heldMessage} ${releaseFix}`)
  const { queues, close } = openQueues({ ...config, ownPorts: configuredPorts(config) }, rpc, log)
  try {
    // First, so that the e-mails that it queues are sent in this run.
    const { expired, reminded } = await enforceDeadlinesOnce(rpc)
    const { expired: offersExpired } = await expireOffersOnce(rpc)
    const claimed = await runCourierOnce(queues, log, runMs)
    return {
      ...claimed,
      expired,
      reminded,
      offers_expired: offersExpired,
      purged: await purgeOnce(rpc, config),
      ...(held && { held }),
    }
  } finally {
    // The platform may suspend the function between two requests, so no connection is kept.
    await close()
  }
}

function authorise({ method, headers }: Request): void {
  if (!isSecret(bearerOf(headers.get('Authorization')) ?? '')) {
    throw new ApiError(
      401,
      'invalid_credentials',
      'The Authorization header does not carry the secret of this function.',
      {
        hint: 'Send the header Authorization: Bearer COURIER_SECRET.',
        headers: { 'WWW-Authenticate': 'Bearer realm="usher courier"' },
      },
    )
  }
  if (method !== 'POST') {
    throw new ApiError(405, 'method_not_allowed', 'Only POST runs the courier.', { headers: { Allow: 'POST' } })
  }
}
