// Middleware: resolves the key in the Authorization header to `res.locals.caller`, or answers 401, and 403 to a key for people. Invalid keys
// are counted per address, to stop guessing and clients that keep sending a revoked key.

import type { RequestHandler, Response } from 'express'
import { type RateLimitRequestHandler, rateLimit, type Store } from 'express-rate-limit'
import type { Logger } from 'pino'
import { ApiError, tooManyFailures } from '../../gateway/api-error.ts'
import { Caller } from '../../gateway/caller.ts'
import type { Principal, Principals } from '../../gateway/principals.ts'
import type { Source } from '../../gateway/tokens.ts'
import { bearerOf } from './bearer.ts'
import { addressOf, type SecretLookups } from './secret-lookups.ts'

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
    if (principal.kind === 'person') throw keyForPeople()
    next()
  }
}

/** Counts an invalid key against its address. Valid keys are not blocked for it: a whole office may share an address. */
export const limitFailures = (log: Logger, store?: Store): RateLimitRequestHandler =>
  limitByAddress(60, tooManyFailures, log, store)

export const limitByAddress = (
  perMinute: number,
  refusal: () => ApiError,
  log: Logger,
  store?: Store,
): RateLimitRequestHandler =>
  rateLimit({
    windowMs: 60_000,
    limit: perMinute,
    standardHeaders: false,
    legacyHeaders: false,
    keyGenerator: addressOf,
    handler: (_req, _res, next) => next(refusal()),
    ...(store && { store }),
    logger: log,
    passOnStoreError: true,
  })

export function callerOf(res: Response): Caller {
  return res.locals.caller as Caller
}

const keyForPeople = () =>
  new ApiError(403, 'key_for_people', 'This API key is for a person to sign in with on pages.', {
    hint: 'Create a key for the program: npx usher keys create --name …, or create_api_key in SQL.',
  })

const missingKey = () =>
  new ApiError(401, 'missing_api_key', 'The request carries no API key.', {
    hint: 'Send the header Authorization: Bearer <API_KEY>.',
    headers: { 'WWW-Authenticate': 'Bearer realm="usher"' },
  })
