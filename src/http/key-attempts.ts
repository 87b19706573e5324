// Keys that are not in the cache, resolved a few at a time for each address, and one by one once it has sent too many that were
// invalid: whoever guesses keys must not use up the database, and whoever shares their address must still get in.

import type { Request, Response } from 'express'
import { ipKeyGenerator, type RateLimitRequestHandler } from 'express-rate-limit'
import { LRUCache } from 'lru-cache'
import { ApiError, tooManyFailures } from '../gateway/api-error.ts'
import { hashOf, isWellFormedKey } from '../gateway/api-key.ts'
import type { Principal, Principals } from '../gateway/principals.ts'

export type KeyAttempts = {
  /** @throws ApiError 401, or 429 where the address has failed too often. */
  resolve(key: string, req: Request, res: Response): Promise<Principal>
}

export const failuresPerMinute = 60
const concurrency = 8
// For an address over its limit: how many may wait for their turn, and how long the next has to after an invalid key.
const longestQueue = 32
const pauseMilliseconds = 25

export const addressOf = (req: Request): string => ipKeyGenerator(req.ip ?? '')

type Line = {
  address: string
  /** The address has failed too often. */
  isOver: boolean
  inFlight: number
  waiting: { admit: () => void; refuse: (refusal: ApiError) => void }[]
  /** By hash: requests that arrive together with one key take one place. */
  attempts: Map<string, Promise<Principal>>
}

export function createKeyAttempts(principals: Principals, failures: RateLimitRequestHandler): KeyAttempts {
  const lines = new Map<string, Line>()
  // Hashes of keys that were valid: they wait in no line, whatever others at their address try.
  const proven = new LRUCache<string, true>({ max: 10_000 })

  async function hasFailedTooOften(address: string): Promise<boolean> {
    try {
      const counted = await failures.getKey(address)
      if (counted === undefined || counted.totalHits < failuresPerMinute) return false
      return counted.resetTime === undefined || counted.resetTime.getTime() > Date.now()
    } catch {
      // A limit that cannot be counted is no reason to turn people away.
      return false
    }
  }

  /** @returns what the request is refused with: the error itself, or that there were too many of its kind. */
  const count = (error: unknown, req: Request, res: Response): Promise<unknown> =>
    error instanceof ApiError && error.status === 401
      ? new Promise((refuseWith) => failures(req, res, (limited?: unknown) => refuseWith(limited ?? error)))
      : Promise.resolve(error)

  async function turn(line: Line): Promise<void> {
    line.isOver = await hasFailedTooOften(line.address)
    if (line.waiting.length === 0 && line.inFlight < (line.isOver ? 1 : concurrency)) {
      line.inFlight += 1
      return
    }
    // Perhaps a valid key: its turn may come soon.
    if (line.isOver && line.waiting.length >= longestQueue) throw tooManyFailures(1)
    await new Promise<void>((admit, refuse) => line.waiting.push({ admit, refuse }))
  }

  function next(line: Line): void {
    line.inFlight -= 1
    if (line.isOver) for (const { refuse } of line.waiting.splice(longestQueue)) refuse(tooManyFailures(1))
    while (line.waiting.length > 0 && line.inFlight < (line.isOver ? 1 : concurrency)) {
      line.inFlight += 1
      line.waiting.shift()?.admit()
    }
    forgetIfEmpty(line)
  }

  /** A line that pauses is kept: whoever tries keys one after another would open a new one each time. */
  function forgetIfEmpty(line: Line): void {
    if (line.attempts.size === 0 && line.inFlight === 0) lines.delete(line.address)
  }

  async function attempt(key: string, line: Line, req: Request, res: Response): Promise<Principal> {
    await turn(line)
    let isValid = false
    try {
      const principal = await principals.resolve(key)
      isValid = true
      proven.set(hashOf(key), true)
      return principal
    } catch (error) {
      const refusal = await count(error, req, res)
      line.isOver = await hasFailedTooOften(line.address)
      throw refusal
    } finally {
      if (line.isOver && !isValid) setTimeout(next, pauseMilliseconds, line)
      else next(line)
    }
  }

  async function resolveProven(hash: string, key: string, req: Request, res: Response): Promise<Principal> {
    try {
      return await principals.resolve(key)
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) proven.delete(hash)
      throw await count(error, req, res)
    }
  }

  return {
    async resolve(key, req, res) {
      // Refused without the database.
      if (!isWellFormedKey(key)) throw await principals.resolve(key).catch((error: unknown) => count(error, req, res))
      const hash = hashOf(key)
      if (proven.has(hash)) return resolveProven(hash, key, req, res)
      const address = addressOf(req)
      const line = lines.get(address) ?? { address, isOver: false, inFlight: 0, waiting: [], attempts: new Map() }
      lines.set(address, line)
      const shared = line.attempts.get(hash)
      if (shared !== undefined)
        return shared.catch(async (error: unknown) => Promise.reject(await count(error, req, res)))
      const own = attempt(key, line, req, res)
      line.attempts.set(hash, own)
      try {
        return await own
      } finally {
        line.attempts.delete(hash)
        forgetIfEmpty(line)
      }
    },
  }
}
