// Middleware: from the Authorization header to `res.locals.caller`, or 401. Invalid keys are counted per address, so that
// whoever tries them at leisure, or goes on with a revoked one, is told to stop.

import type { RequestHandler, Response } from 'express'
import { ipKeyGenerator, rateLimit, type Store } from 'express-rate-limit'
import type { Logger } from 'pino'
import { bearerOf } from './bearer.ts'
import type { Caller } from './calls.ts'
import type { Principals } from './principals.ts'
import { Refusal } from './refusal.ts'
import type { Source } from './tokens.ts'

const failuresPerMinute = 60

/** @param countFailure see `limitFailures`: one for all doors. */
export function authenticate(principals: Principals, source: Source, countFailure: RequestHandler): RequestHandler {
  return async (req, res, next) => {
    const key = bearerOf(req.headers.authorization)
    if (key === undefined) throw missingKey()
    try {
      const principal = principals.known(key) ?? (await principals.resolve(key))
      res.locals.caller = { key, principal, source } satisfies Caller
    } catch (error) {
      if (!(error instanceof Refusal) || error.status !== 401) throw error
      return countFailure(req, res, (limited?: unknown) => next(limited ?? error))
    }
    next()
  }
}

/** Counts an invalid key. A valid one is never refused for what others at its address do: a whole office may share one. */
export function limitFailures(log: Logger, store?: Store): RequestHandler {
  return rateLimit({
    windowMs: 60_000,
    limit: failuresPerMinute,
    standardHeaders: false,
    legacyHeaders: false,
    keyGenerator: (req) => ipKeyGenerator(req.ip ?? ''),
    handler: (_req, _res, next) => next(tooManyFailures()),
    ...(store && { store }),
    logger: log,
    passOnStoreError: true,
  })
}

export function callerOf(res: Response): Caller {
  return res.locals.caller as Caller
}

const missingKey = () =>
  new Refusal(401, 'missing_api_key', 'The request carries no API key.', {
    hint: 'Send the header Authorization: Bearer <API_KEY>.',
    headers: { 'WWW-Authenticate': 'Bearer realm="usher"' },
  })

const tooManyFailures = () =>
  new Refusal(429, 'too_many_failures', 'Too many requests with invalid credentials came from this address.', {
    hint: 'Wait a minute, and send a valid key.',
    headers: { 'Retry-After': '60' },
  })
