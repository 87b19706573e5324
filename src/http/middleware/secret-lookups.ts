// Looks up secrets, which are uncached keys and tokens of ticket pages: a few at a time per address, and one by one once the address has
// sent too many invalid ones. Guessing must not exhaust the database, and others at the same address must still get in.

import type { Request, Response } from 'express'
import { ipKeyGenerator, type RateLimitRequestHandler } from 'express-rate-limit'
import { ApiError, tooManyFailures } from '../../gateway/api-error.ts'
import { hashOf } from '../../gateway/api-key.ts'
import { createCache } from '../../gateway/cache.ts'

/** One kind of secret. */
export type Secrets<T> = {
  /** Whether it can be valid: otherwise `resolve` fails without the database. */
  isWellFormed(secret: string): boolean
  /** @throws ApiError 401 or 404, when it is not valid. */
  resolve(secret: string): Promise<T>
}

export type SecretLookups<T> = {
  /** @throws what `Secrets.resolve` throws, or ApiError 429 where the address has failed too often. */
  resolve(secret: string, req: Request, res: Response): Promise<T>
}

const isInvalid = (error: unknown): error is ApiError =>
  error instanceof ApiError && (error.status === 401 || error.status === 404)

export const failuresPerMinute = 60
const concurrency = 8
// For an address over its limit: how many requests may wait, and the pause after an invalid secret.
const maximumWaiting = 32
const pauseMs = 25

export const addressOf = (req: Request): string => ipKeyGenerator(req.ip ?? '')

type AddressQueue<T> = {
  address: string
  /** The address has sent too many invalid secrets. */
  isOver: boolean
  inFlight: number
  waiting: { admit: () => void; reject: (error: ApiError) => void }[]
  /** By hash of the secret: concurrent requests with one share a look-up. */
  lookups: Map<string, Promise<T>>
}

type Queue = Omit<AddressQueue<unknown>, 'lookups'>

const hasPlace = (queue: Queue): boolean => queue.inFlight < (queue.isOver ? 1 : concurrency)

/** Resolves when the request may use the database. @throws ApiError 429 */
async function takePlace(queue: Queue): Promise<void> {
  if (queue.waiting.length === 0 && hasPlace(queue)) {
    queue.inFlight += 1
    return
  }
  // The secret may be valid, so the client may retry after a second.
  if (queue.isOver && queue.waiting.length >= maximumWaiting) throw tooManyFailures(1)
  await new Promise<void>((admit, reject) => queue.waiting.push({ admit, reject }))
}

/** Admits those who wait, as far as the limit allows, and rejects those beyond it. */
function freePlace(queue: Queue): void {
  queue.inFlight -= 1
  if (queue.isOver) for (const { reject } of queue.waiting.splice(maximumWaiting)) reject(tooManyFailures(1))
  while (queue.waiting.length > 0 && hasPlace(queue)) {
    queue.inFlight += 1
    queue.waiting.shift()?.admit()
  }
}

/** @param failures counts per address, for all kinds of secrets. */
export function createLookups<T>(secrets: Secrets<T>, failures: RateLimitRequestHandler): SecretLookups<T> {
  const queues = new Map<string, AddressQueue<T>>()
  // Hashes of secrets that were valid: they do not wait, whatever others at their address send.
  const proven = createCache<true>(10_000)

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

  /** Counts an invalid secret. @returns the error to answer: the given one, or 429 once there were too many. */
  const count = (error: unknown, req: Request, res: Response): Promise<unknown> =>
    isInvalid(error)
      ? new Promise((resolve) => failures(req, res, (limited?: unknown) => resolve(limited ?? error)))
      : Promise.resolve(error)

  /** A queue that pauses is kept: else an address that tries secrets one after another would get a new one each time. */
  function forgetIfEmpty(queue: AddressQueue<T>): void {
    if (queue.lookups.size === 0 && queue.inFlight === 0) queues.delete(queue.address)
  }

  function leave(queue: AddressQueue<T>): void {
    freePlace(queue)
    forgetIfEmpty(queue)
  }

  async function lookUp(secret: string, queue: AddressQueue<T>, req: Request, res: Response): Promise<T> {
    queue.isOver = await hasFailedTooOften(queue.address)
    await takePlace(queue)
    let isValid = false
    try {
      const found = await secrets.resolve(secret)
      isValid = true
      proven.set(hashOf(secret), true)
      return found
    } catch (error) {
      const counted = await count(error, req, res)
      queue.isOver = await hasFailedTooOften(queue.address)
      throw counted
    } finally {
      if (queue.isOver && !isValid) setTimeout(leave, pauseMs, queue)
      else leave(queue)
    }
  }

  async function resolveProven(hash: string, secret: string, req: Request, res: Response): Promise<T> {
    try {
      return await secrets.resolve(secret)
    } catch (error) {
      if (isInvalid(error)) proven.delete(hash)
      throw await count(error, req, res)
    }
  }

  return {
    async resolve(secret, req, res) {
      // A malformed one fails without the database.
      if (!secrets.isWellFormed(secret))
        throw await secrets.resolve(secret).catch((error: unknown) => count(error, req, res))
      const hash = hashOf(secret)
      if (proven.has(hash)) return resolveProven(hash, secret, req, res)
      const address = addressOf(req)
      const queue = queues.get(address) ?? { address, isOver: false, inFlight: 0, waiting: [], lookups: new Map() }
      queues.set(address, queue)
      const shared = queue.lookups.get(hash)
      if (shared !== undefined)
        return shared.catch(async (error: unknown) => Promise.reject(await count(error, req, res)))
      const own = lookUp(secret, queue, req, res)
      queue.lookups.set(hash, own)
      try {
        return await own
      } finally {
        queue.lookups.delete(hash)
        forgetIfEmpty(queue)
      }
    },
  }
}
