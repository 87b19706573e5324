// Middleware: resolves the key in the Authorization header to `res.locals.caller`, or answers 401. Invalid keys are counted per
// address, to stop guessing and clients that keep sending a revoked key.

import type { RequestHandler, Response } from 'express'
import { type RateLimitRequestHandler, rateLimit, type Store } from 'express-rate-limit'
import type { Logger } from 'pino'
import { ApiError, tooManyFailures } from '../../gateway/api-error.ts'
import { Caller } from '../../gateway/caller.ts'
import type { Principal, Principals } from '../../gateway/principals.ts'
import type { Source } from '../../gateway/tokens.ts'
import { bearerOf } from './bearer.ts'
import { addressOf, failuresPerMinute, type SecretLookups } from './secret-lookups.ts'

/** @param lookups shared by REST and MCP. */
export function authenticate(
  principals: Principals,
  source: Source,
  lookups: SecretLookups<Principal>,
): RequestHandler {
  return async (req, res, next) => {
    const key = bearerOf(req.headers.authorization)
    if (key === undefined) throw missingKey()
    const known = principals.known(key)
    const principal = known ?? (await lookups.resolve(key, req, res))
    res.locals.caller = new Caller(key, source, principal, known !== undefined, principals)
    next()
  }
}

/** Counts an invalid key against its address. Valid keys are not blocked for it: a whole office may share an address. */
export function limitFailures(log: Logger, store?: Store): RateLimitRequestHandler {
  return rateLimit({
    windowMs: 60_000,
    limit: failuresPerMinute,
    standardHeaders: false,
    legacyHeaders: false,
    keyGenerator: addressOf,
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
  new ApiError(401, 'missing_api_key', 'The request carries no API key.', {
    hint: 'Send the header Authorization: Bearer <API_KEY>.',
    headers: { 'WWW-Authenticate': 'Bearer realm="usher"' },
  })
