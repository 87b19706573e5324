// The courier as a Supabase Edge Function. In comes a POST with the secret of this function, out goes how much one bounded run
// claimed; what is left is for the next. Who calls it, and how often, is told in docs/operations.md. It must do nothing for
// anybody who does not know the secret.

import { env } from 'node:process'
import { runCourierOnce } from '../../../src/courier/courier.ts'
import { createCourierRpc } from '../../../src/courier/courier-rpc.ts'
import { purgeOnce } from '../../../src/courier/housekeeping.ts'
import { openQueues } from '../../../src/courier/queues.ts'
import { ApiError, toApiError } from '../../../src/gateway/api-error.ts'
import { createDataApi } from '../../../src/gateway/data-api.ts'
import { createTokens } from '../../../src/gateway/tokens.ts'
import { bearerOf } from '../../../src/http/bearer.ts'
import { sharedSecret } from '../../../src/http/shared-secret.ts'
import { createLog } from '../../../src/process/log.ts'
import { readFunctionConfig } from './config.ts'

declare const Deno: { serve(handler: (request: Request) => Promise<Response>): unknown }

// What is under way then is finished, so that a run ends well within what a platform allows one request.
const runMilliseconds = 20_000

const { courier: config, database, secret } = readFunctionConfig(env)
const log = createLog(config.logLevel, { write: (line) => console.error(line.trimEnd()) })
const outbox = createCourierRpc(
  createDataApi(database.url, database.publishableKey),
  await createTokens(database.signingKey),
)
const isSecret = sharedSecret(secret)

Deno.serve(async (request) => {
  try {
    refuseStrangers(request)
    return Response.json(await deliver())
  } catch (error) {
    const refusal = toApiError(error)
    if (refusal.status >= 500) log.error({ err: refusal.cause ?? error }, refusal.message)
    const answer = { error: refusal.body(crypto.randomUUID()) }
    return Response.json(answer, { status: refusal.status, headers: refusal.headers })
  }
})

/** How many of each kind were claimed, and how many rows purged. */
async function deliver(): Promise<Record<string, number>> {
  const { queues, close } = openQueues(config, outbox, log)
  try {
    const claimed = await runCourierOnce(queues, log, runMilliseconds)
    return { ...claimed, purged: await purgeOnce(outbox, config.retentionDays) }
  } finally {
    // Between two requests the platform may stop everything: no connection is kept.
    await close()
  }
}

function refuseStrangers({ method, headers }: Request): void {
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
