// Middleware: so many requests a minute for each key, as its organisation's plan says; one bucket for REST and MCP. In
// memory by default, in Redis where several copies of the BFF share the limit.

import type { Request, RequestHandler, Response } from 'express'
import { type ClientRateLimitInfo, MemoryStore, rateLimit, type Store } from 'express-rate-limit'
import type { Logger } from 'pino'
import { RedisStore } from 'rate-limit-redis'
import { createClient } from 'redis'
import { ApiError } from '../gateway/api-error.ts'
import { callerOf } from './authenticate.ts'

export function limitRate(log: Logger, store: Store = new ExactMemoryStore()): RequestHandler {
  return rateLimit({
    windowMs: 60_000,
    limit: (_req, res) => callerOf(res).principal.rate_limit_per_minute,
    // The key's id, never the key: the limiter derives a public partition name from it.
    keyGenerator: (_req, res) => callerOf(res).principal.family_id,
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    handler: (_req, _res, next) => next(tooManyRequests()),
    store,
    logger: log,
    // A limit that cannot be counted is no reason to turn people away.
    passOnStoreError: true,
    // A batch counts several times.
    validate: { singleCount: false },
  })
}

/** Counts the other requests of a batch: the first was counted with the HTTP request. @throws ApiError 429 */
export async function countAlso(rate: RequestHandler, others: number, req: Request, res: Response): Promise<void> {
  for (let i = 0; i < others; i++) {
    for (const name of ['RateLimit', 'RateLimit-Policy']) res.removeHeader(name)
    await new Promise<void>((resolve, reject) =>
      rate(req, res, (limited?: unknown) => (limited ? reject(limited) : resolve())),
    )
  }
}

/**
 * MemoryStore answers its live count. Of a burst that arrives together everybody would read the count of the last, and
 * nobody would be within the limit; this answers the count as it was at each one's turn.
 */
class ExactMemoryStore extends MemoryStore {
  override increment(key: string): Promise<ClientRateLimitInfo> {
    const counted = super.increment(key)
    const now = { ...this.current.get(key) } as ClientRateLimitInfo
    return counted.then(() => now)
  }
}

export type LimitStores = { requests?: Store; failures?: Store; close(): Promise<void> }

/**
 * The stores of the two limiters: in Redis where a URL is given, else each limiter keeps its own in memory.
 * @throws when Redis cannot be reached at the start; once it could, requests go on without it, uncounted, until it is back.
 */
export async function createLimitStores(
  redisUrl: string | undefined,
  onError: (error: Error) => void,
): Promise<LimitStores> {
  if (redisUrl === undefined) return { close: async () => {} }
  let connected = false
  const client = createClient({
    url: redisUrl,
    // Nobody waits for a counter.
    disableOfflineQueue: true,
    commandOptions: { timeout: 500 },
    socket: { connectTimeout: 3000, reconnectStrategy: (tries) => connected && Math.min(tries * 100, 2000) },
  })
  client.on('error', onError)
  await client.connect()
  connected = true
  const store = (prefix: string) =>
    new RedisStore({ prefix, sendCommand: (...command: string[]) => client.sendCommand(command) })
  return {
    requests: store('usher:requests:'),
    failures: store('usher:failures:'),
    close: async () => client.destroy(),
  }
}

const tooManyRequests = () =>
  new ApiError(429, 'rate_limited', 'The API key made more requests than its plan allows in a minute.', {
    hint: 'Wait as many seconds as Retry-After says; the RateLimit header shows what is left.',
  })
