// Middleware: limits requests per minute and key to the organisation's plan, with one bucket for REST and MCP. Counts in memory,
// or in Redis where several instances of the API share the limit.

import { setTimeout as sleep } from 'node:timers/promises'
import type { RequestHandler } from 'express'
import { type ClientRateLimitInfo, MemoryStore, type Options, rateLimit, type Store } from 'express-rate-limit'
import type { Logger } from 'pino'
import { ApiError, tooManyFailures } from '../../gateway/api-error.ts'
import { callerOf, limitByAddress } from './authenticate.ts'

export function limitRate(log: Logger, store: Store = new ExactMemoryStore()): RequestHandler {
  return rateLimit({
    windowMs: 60_000,
    limit: (_req, res) => callerOf(res).principal.rate_limit_per_minute,
    // The key's id, never the key: the limiter derives a public partition name from it.
    keyGenerator: (_req, res) => {
      const { access_token, family_id } = callerOf(res).principal
      return access_token?.parent_family_id ?? family_id
    },
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    handler: (_req, _res, next) => next(tooManyRequests()),
    store,
    logger: log,
  })
}

/** Of pages where guests register: a person sends a few, and a company of many has one address. */
export const limitForms = (log: Logger, store: Store = new ExactMemoryStore()): RequestHandler =>
  limitByAddress(10, tooManyFailures, log, store)

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

// How long a request waits for its counter, and how often a shared store that did not answer in that time is asked again.
const answerMs = 500
const askAgainMs = 1_000

type Ask = <T>(use: () => T | Promise<T>) => Promise<T>

/** Asks Redis, which may keep its connections and say nothing: stopped, or behind a network that drops what is sent. */
function createAsk(log: Logger): Ask {
  /** When it is asked next, while it is silent; 0: it answers. */
  let askAt = 0
  const giveUp = () => {
    if (askAt === 0) log.error('Redis does not answer: this process limits requests on its own.')
    askAt = performance.now() + askAgainMs
    throw new Error('Redis did not answer in time.')
  }
  return async (use) => {
    if (performance.now() < askAt) throw new Error('Redis is silent.')
    // Others do not wait for it meanwhile.
    if (askAt !== 0) askAt = performance.now() + askAgainMs
    const answered = new AbortController()
    try {
      const answer = await Promise.race([use(), sleep(answerMs, undefined, answered).then(giveUp)])
      if (askAt !== 0) log.info('Redis answers again: all processes share the limits.')
      askAt = 0
      return answer
    } finally {
      answered.abort()
    }
  }
}

type FallbackStore = Store & { renew(): void; shutdown(): void }

/** Counts in a shared store, and in this process while that one fails or is silent. */
function withFallback(prefix: string, shared: Store, ask: Ask): FallbackStore {
  const own = new ExactMemoryStore()
  let options: Options | undefined
  const inEither = <T>(use: (store: Store) => T | Promise<T>): Promise<T> =>
    ask(() => use(shared)).catch(() => use(own))
  /** Loads the scripts of the shared store, also again: once that has failed, it would fail for good. */
  const renew = () => {
    if (options) void Promise.resolve(shared.init?.(options)).catch(() => {})
  }
  return {
    prefix,
    init(given) {
      options = given
      own.init(given)
      renew()
    },
    renew,
    increment: (key) => inEither((store) => store.increment(key)),
    decrement: (key) => inEither((store) => store.decrement(key)),
    resetKey: (key) => inEither((store) => store.resetKey(key)),
    shutdown: () => own.shutdown(),
  }
}

export type LimitStores = { requests?: Store; failures?: Store; forms?: Store; close(): Promise<void> }

/**
 * The stores of the limiters: in Redis if a URL is given, else each limiter has its own in memory.
 * @throws when Redis cannot be reached at start-up. If it fails later, each process counts for itself until it is back.
 */
export async function createLimitStores(redisUrl: string | undefined, log: Logger): Promise<LimitStores> {
  if (redisUrl === undefined) return { close: async () => {} }
  // Loaded here: an eighth of the time of a start, which most have no use for.
  const [{ RedisStore }, { createClient }] = await Promise.all([import('rate-limit-redis'), import('redis')])
  let isAway: boolean | undefined
  const client = createClient({
    url: redisUrl,
    // A request must not wait for its counter.
    disableOfflineQueue: true,
    // Of what waits to be sent. What was sent has no limit of its own: see createAsk.
    commandOptions: { timeout: answerMs },
    socket: { connectTimeout: 3000, reconnectStrategy: (tries) => isAway !== undefined && Math.min(tries * 100, 2000) },
  })
  // Emitted again with each attempt to reconnect.
  client.on('error', (err) => {
    if (isAway === false) log.error({ err }, 'Redis is unreachable: this process limits requests on its own.')
    if (isAway !== undefined) isAway = true
  })
  const ask = createAsk(log)
  const store = (prefix: string) => {
    const shared = new RedisStore({ prefix, sendCommand: (...command: string[]) => client.sendCommand(command) })
    return withFallback(prefix, shared, ask)
  }
  const stores = {
    requests: store('usher:requests:'),
    failures: store('usher:failures:'),
    forms: store('usher:forms:'),
  }
  client.on('ready', () => {
    if (isAway) {
      log.info('Redis is reachable again: all processes share the limits.')
      for (const each of Object.values(stores)) each.renew()
    }
    isAway = false
  })
  await client.connect()
  return {
    ...stores,
    async close() {
      for (const each of Object.values(stores)) each.shutdown()
      client.destroy()
    },
  }
}

const tooManyRequests = () =>
  new ApiError(429, 'rate_limited', 'The API key made more requests than its plan allows in a minute.', {
    hint: 'Wait for the seconds in Retry-After. The RateLimit header shows the remaining requests.',
  })
