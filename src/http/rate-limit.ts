// Middleware: limits requests per minute and key to the organisation's plan, with one bucket for REST and MCP. Counts in memory,
// or in Redis where several instances of the API share the limit.

import type { Request, RequestHandler, Response } from 'express'
import { type ClientRateLimitInfo, MemoryStore, rateLimit, type Store } from 'express-rate-limit'
import type { Logger } from 'pino'
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
    // Without a working store requests pass uncounted.
    passOnStoreError: true,
    // A batch counts several times.
    validate: { singleCount: false },
  })
}

/** Counts the requests of a batch beyond the first, which was counted with the HTTP request. @throws ApiError 429 */
export async function countAlso(rate: RequestHandler, others: number, req: Request, res: Response): Promise<void> {
  for (let i = 0; i < others; i++) {
    for (const name of ['RateLimit', 'RateLimit-Policy']) res.removeHeader(name)
    await new Promise<void>((resolve, reject) =>
      rate(req, res, (limited?: unknown) => (limited ? reject(limited) : resolve())),
    )
  }
}

/**
 * MemoryStore returns its live counter, so that each request of a burst would read the count after the last one, and all would be
 * over the limit. This returns the count as it was for each request.
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
 * The stores of the two limiters: in Redis if a URL is given, else each limiter has its own in memory.
 * @throws when Redis cannot be reached at start-up. If it fails later, requests pass uncounted until it is back.
 */
export async function createLimitStores(
  redisUrl: string | undefined,
  onError: (error: Error) => void,
): Promise<LimitStores> {
  if (redisUrl === undefined) return { close: async () => {} }
  // Loaded here: an eighth of the time of a start, which most have no use for.
  const [{ RedisStore }, { createClient }] = await Promise.all([import('rate-limit-redis'), import('redis')])
  let connected = false
  const client = createClient({
    url: redisUrl,
    // A request must not wait for its counter.
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
