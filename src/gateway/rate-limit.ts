// Middleware: so many requests a minute for each key, as its organisation's plan says; one bucket for REST and MCP. In
// memory by default, in Redis where several copies of the BFF share the limit.

import type { RequestHandler } from 'express'
import { rateLimit, type Store } from 'express-rate-limit'
import { RedisStore } from 'rate-limit-redis'
import { createClient } from 'redis'
import { callerOf } from './authenticate.ts'
import { Refusal } from './refusal.ts'

export function limitRate(store?: Store): RequestHandler {
  return rateLimit({
    windowMs: 60_000,
    limit: (_req, res) => callerOf(res).principal.rate_limit_per_minute,
    // The key's id, never the key: the limiter derives a public partition name from it.
    keyGenerator: (_req, res) => callerOf(res).principal.family_id,
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    handler: (_req, _res, next) => next(tooManyRequests()),
    ...(store && { store }),
    passOnStoreError: true,
  })
}

export type LimitStores = { requests?: Store; failures?: Store; close(): Promise<void> }

/** The stores of the two limiters: of Redis where a URL is given, else none, and each limiter keeps its own in memory. */
export async function createLimitStores(
  redisUrl: string | undefined,
  onError: (error: Error) => void,
): Promise<LimitStores> {
  if (redisUrl === undefined) return { close: async () => {} }
  // A limit that cannot be counted is not worth a request that waits: without Redis, requests pass (passOnStoreError).
  const client = createClient({ url: redisUrl, disableOfflineQueue: true, commandOptions: { timeout: 500 } })
  client.on('error', onError)
  await client.connect()
  const store = (prefix: string) =>
    new RedisStore({ prefix, sendCommand: (...command: string[]) => client.sendCommand(command) })
  return {
    requests: store('usher:requests:'),
    failures: store('usher:failures:'),
    close: async () => client.destroy(),
  }
}

const tooManyRequests = () =>
  new Refusal(429, 'rate_limited', 'The API key made more requests than its plan allows in a minute.', {
    hint: 'Wait as many seconds as Retry-After says; the RateLimit header shows what is left.',
  })
