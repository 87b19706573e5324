// MCP for clients that signed in: takes access tokens that are for this address, and tells a client without one where to get it.

import type { RequestHandler } from 'express'
import type { RateLimitRequestHandler } from 'express-rate-limit'
import { ApiError, unauthorised } from '../../gateway/api-error.ts'
import { isWellFormedKey } from '../../gateway/api-key.ts'
import { Caller } from '../../gateway/caller.ts'
import type { DataApi } from '../../gateway/data-api.ts'
import { principalsOf } from '../../gateway/principals.ts'
import type { Tokens } from '../../gateway/tokens.ts'
import type { AddressesOf } from '../../http/addresses.ts'
import { bearerOf } from '../../http/middleware/bearer.ts'
import { createLookups } from '../../http/middleware/secret-lookups.ts'
import { recordHash } from './adapter.ts'

// As oidc-provider makes them: 256 bits in base64url.
const isWellFormedToken = (text: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(text)

const invalidToken = (hint = 'Renew it with the refresh token, or sign in again.') =>
  unauthorised('invalid_access_token', 'The access token is not valid.', hint)

/** To be mounted at /api/mcp/connect. Passes on where OAuth is not offered. */
export function authenticateClient(
  dataApi: DataApi,
  tokens: Tokens,
  failures: RateLimitRequestHandler,
  addressesOf: AddressesOf,
): RequestHandler {
  const principals = principalsOf(
    {
      isWellFormed: isWellFormedToken,
      invalid: invalidToken,
      resolve: (token) => ['resolve_access_token', { id_hash: recordHash('AccessToken', token) }],
    },
    dataApi,
    tokens,
  )
  const lookups = createLookups({ isWellFormed: isWellFormedToken, resolve: principals.resolve }, failures)
  return async (req, res, next) => {
    const addresses = addressesOf(req)
    if (addresses === undefined) return next('router')
    res.locals.resourceMetadata = addresses.resourceMetadata
    const token = bearerOf(req.headers.authorization)
    if (token === undefined) throw missingToken()
    if (isWellFormedKey(token))
      throw invalidToken('Send API keys to /api/mcp. At this address clients sign in by OAuth.')
    const known = principals.known(token)
    const principal = known ?? (await lookups.resolve(token, req, res))
    if (principal.access_token?.resource !== addresses.resource) throw invalidToken()
    res.locals.caller = new Caller(token, 'mcp', principal, known !== undefined, principals)
    next()
  }
}

const missingToken = () =>
  new ApiError(401, 'missing_access_token', 'The request carries no access token.', {
    hint: 'Sign in by OAuth, as in WWW-Authenticate. With an API key, call /api/mcp.',
    headers: { 'WWW-Authenticate': 'Bearer realm="usher"' },
  })
