// Resolves uncached keys, a few at a time per address, and one by one once the address has sent too many invalid ones: guessing
// keys must not exhaust the database, and others at the same address must still get in.

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
// For an address over its limit: how many requests may wait, and the pause after an invalid key.
const maximumWaiting = 32
const pauseMs = 25

export const addressOf = (req: Request): string => ipKeyGenerator(req.ip ?? '')

type AddressLine = {
  address: string
  /** The address has sent too many invalid keys. */
  isOver: boolean
  inFlight: number
  waiting: { admit: () => void; reject: (error: ApiError) => void }[]
  /** By hash of the key: concurrent requests with one key share an attempt. */
  attempts: Map<string, Promise<Principal>>
}

const hasPlace = (line: AddressLine): boolean => line.inFlight < (line.isOver ? 1 : concurrency)

/** Resolves when the request may use the database. @throws ApiError 429 */
async function takePlace(line: AddressLine): Promise<void> {
  if (line.waiting.length === 0 && hasPlace(line)) {
    line.inFlight += 1
    return
  }
  // The key may be valid, so the client may retry after a second.
  if (line.isOver && line.waiting.length >= maximumWaiting) throw tooManyFailures(1)
  await new Promise<void>((admit, reject) => line.waiting.push({ admit, reject }))
}

/** Admits those who wait, as far as the limit allows, and rejects those beyond it. */
function freePlace(line: AddressLine): void {
  line.inFlight -= 1
  if (line.isOver) for (const { reject } of line.waiting.splice(maximumWaiting)) reject(tooManyFailures(1))
  while (line.waiting.length > 0 && hasPlace(line)) {
    line.inFlight += 1
    line.waiting.shift()?.admit()
  }
}

export function createKeyAttempts(principals: Principals, failures: RateLimitRequestHandler): KeyAttempts {
  const lines = new Map<string, AddressLine>()
  // Hashes of keys that were valid: they do not wait, whatever others at their address send.
  const proven = new LRUCache<string, true>({ max: 10_000 })

  async function hasFailedTooOften(address: string): Promise<boolean> {
    try {
      const counted = await failures.getKey(address)
      if (counted === undefined || counted.totalHits < failuresPerMinute) return false
      return counted.resetTime === undefined || counted.resetTime.getTime() > Date.now()
    } catch {
      // A store that does not answer holds up nobody.
      return false
    }
  }

  /** Counts an invalid key. @returns the error to answer: the given one, or 429 once there were too many. */
  const count = (error: unknown, req: Request, res: Response): Promise<unknown> =>
    error instanceof ApiError && error.status === 401
      ? new Promise((resolve) => failures(req, res, (limited?: unknown) => resolve(limited ?? error)))
      : Promise.resolve(error)

  /** A pausing line is kept: else an address that tries keys one after another would get a new one each time. */
  function forgetIfEmpty(line: AddressLine): void {
    if (line.attempts.size === 0 && line.inFlight === 0) lines.delete(line.address)
  }

  function leave(line: AddressLine): void {
    freePlace(line)
    forgetIfEmpty(line)
  }

  async function attempt(key: string, line: AddressLine, req: Request, res: Response): Promise<Principal> {
    line.isOver = await hasFailedTooOften(line.address)
    await takePlace(line)
    let isValid = false
    try {
      const principal = await principals.resolve(key)
      isValid = true
      proven.set(hashOf(key), true)
      return principal
    } catch (error) {
      const counted = await count(error, req, res)
      line.isOver = await hasFailedTooOften(line.address)
      throw counted
    } finally {
      if (line.isOver && !isValid) setTimeout(leave, pauseMs, line)
      else leave(line)
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
      // A malformed key fails without the database.
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
