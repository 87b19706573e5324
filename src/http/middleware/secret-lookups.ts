// Bounds who guesses secrets: keys, access tokens, and tokens of pages. An address that has sent too many invalid ones is
// slowed down, so that guessing does not exhaust the database; others at the same address, such as a venue's, still get in.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Request, RequestHandler, Response } from 'express'
import { ipKeyGenerator } from 'express-rate-limit'
import pLimit, { type LimitFunction } from 'p-limit'
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

// Look-ups of one address at once. Over its limit, an invalid secret keeps its place for the pause: 32 a second.
const lookupsAtOnce = 8
const pauseMs = 250
// Of an address that was refused within the last minute.
const maximumWaiting = 32

export const addressOf = (req: Request): string => ipKeyGenerator(req.ip ?? '')

type Queue = { inTurn: LimitFunction; refusedAt: number }

/** @param failures of `limitFailures`, shared by all kinds of secrets. */
export function createLookups<T>({ isWellFormed, resolve }: Secrets<T>, failures: RequestHandler): SecretLookups<T> {
  // Hashes of secrets that were valid: they do not wait, whatever others at their address send.
  const proven = createCache<true>(10_000)
  const queues = createCache<Queue>(10_000)
  // By hash: concurrent requests with one secret share a look-up.
  const underWay = new Map<string, Promise<T>>()

  async function lookUp(secret: string, req: Request, res: Response): Promise<T> {
    try {
      const found = await resolve(secret)
      proven.set(hashOf(secret), true)
      return found
    } catch (error) {
      if (!(error instanceof ApiError && (error.status === 401 || error.status === 404))) throw error
      proven.delete(hashOf(secret))
      throw await new Promise((counted) => failures(req, res, (limited?: unknown) => counted(limited ?? error)))
    }
  }

  function lookUpInTurn(secret: string, req: Request, res: Response): Promise<T> {
    const address = addressOf(req)
    const queue = queues.get(address) ?? { inTurn: pLimit(lookupsAtOnce), refusedAt: Number.NEGATIVE_INFINITY }
    queues.set(address, queue)
    return queue.inTurn(async () => {
      const isOver = performance.now() - queue.refusedAt < 60_000
      // The secret may be valid, so the client may retry after a second.
      if (isOver && queue.inTurn.pendingCount >= maximumWaiting) throw tooManyFailures(1)
      try {
        return await lookUp(secret, req, res)
      } catch (error) {
        if (error instanceof ApiError && error.status === 429) {
          queue.refusedAt = performance.now()
          await sleep(pauseMs)
        }
        throw error
      }
    })
  }

  return {
    resolve(secret, req, res) {
      const hash = hashOf(secret)
      if (!isWellFormed(secret) || proven.has(hash)) return lookUp(secret, req, res)
      const shared = underWay.get(hash) ?? lookUpInTurn(secret, req, res).finally(() => void underWay.delete(hash))
      underWay.set(hash, shared)
      return shared
    },
  }
}
