// Middleware: limits requests per minute and key to the organisation's plan, with one bucket for REST and MCP. Counts in memory,
// or in Redis where several instances of the API share the limit.

import type { Request, RequestHandler, Response } from 'express'
import { type ClientRateLimitInfo, MemoryStore, type Options, rateLimit, type Store } from 'express-rate-limit'
import type { Logger } from 'pino'
import { ApiError } from '../../gateway/api-error.ts'
import { callerOf } from './authenticate.ts'

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

// How long a request waits for its counter, and how often a shared store that did not answer in that time is asked again.
const answerMs = 500
const askAgainMs = 1_000

/** Whether Redis answers in time. It may keep its connections and say nothing: stopped, or behind a network that drops what is sent. */
function createPatience(log: Logger) {
  /** When it is asked next, while it is silent; 0: it answers. */
  let askAt = 0
  return {
    /** While it is silent, one call a second. */
    mayAsk(): boolean {
      if (performance.now() < askAt) return false
      if (askAt !== 0) askAt = performance.now() + askAgainMs
      return true
    },
    /** @throws when the answer is an error, or does not come in time. */
    async wait<T>(answer: T): Promise<Awaited<T>> {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => {
          if (askAt === 0) log.error('Redis is silent: this process limits requests for itself.')
          askAt = performance.now() + askAgainMs
          reject(new Error('Redis did not answer in time.'))
        }, answerMs)
      })
      try {
        const answered = await Promise.race([answer, late])
        if (askAt !== 0) log.info('Redis answers again: requests are limited together.')
        askAt = 0
        return answered
      } finally {
        clearTimeout(timer)
      }
    },
  }
}

/** Counts in a shared store, and in this process while that one fails or is silent. */
class FallbackStore implements Store {
  readonly prefix: string
  readonly #shared: Store
  readonly #patience: ReturnType<typeof createPatience>
  readonly #own = new ExactMemoryStore()
  #options: Options | undefined

  constructor(prefix: string, shared: Store, patience: ReturnType<typeof createPatience>) {
    this.prefix = prefix
    this.#shared = shared
    this.#patience = patience
  }
  init(options: Options): void {
    this.#options = options
    this.#own.init(options)
    this.renew()
  }
  /** Loads the scripts of the shared store, also again: once that has failed, it would fail for good. */
  renew(): void {
    if (this.#options) void Promise.resolve(this.#shared.init?.(this.#options)).catch(() => {})
  }
  get = (key: string) => this.#try((store) => store.get?.(key))
  increment = (key: string) => this.#try((store) => store.increment(key))
  decrement = (key: string) => this.#try((store) => store.decrement(key))
  resetKey = (key: string) => this.#try((store) => store.resetKey(key))
  shutdown(): void {
    this.#own.shutdown()
  }

  async #try<T>(use: (store: Store) => T): Promise<Awaited<T>> {
    try {
      if (this.#patience.mayAsk()) return await this.#patience.wait(use(this.#shared))
    } catch {
      // Counted here.
    }
    return await use(this.#own)
  }
}

export type LimitStores = { requests?: Store; failures?: Store; close(): Promise<void> }

/**
 * The stores of the two limiters: in Redis if a URL is given, else each limiter has its own in memory.
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
    // Of what waits to be sent. What was sent has no limit of its own: see createPatience.
    commandOptions: { timeout: answerMs },
    socket: { connectTimeout: 3000, reconnectStrategy: (tries) => isAway !== undefined && Math.min(tries * 100, 2000) },
  })
  // Emitted again with each attempt to reconnect.
  client.on('error', (err) => {
    if (isAway === false) log.error({ err }, 'Redis is away: this process limits requests for itself.')
    if (isAway !== undefined) isAway = true
  })
  const patience = createPatience(log)
  const store = (prefix: string) =>
    new FallbackStore(
      prefix,
      new RedisStore({ prefix, sendCommand: (...command: string[]) => client.sendCommand(command) }),
      patience,
    )
  const stores = { requests: store('usher:requests:'), failures: store('usher:failures:') }
  client.on('ready', () => {
    if (isAway) {
      log.info('Redis is back: requests are limited together again.')
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
    hint: 'Wait as many seconds as Retry-After says; the RateLimit header shows what is left.',
  })
