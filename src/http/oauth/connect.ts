// MCP for clients that signed in: takes access tokens that are for this address, and tells a client without one where to get it.

import { type RequestHandler, type Response, Router } from 'express'
import type { RateLimitRequestHandler } from 'express-rate-limit'
import { ApiError, unauthorised } from '../../gateway/api-error.ts'
import { isWellFormedKey } from '../../gateway/api-key.ts'
import { Caller } from '../../gateway/caller.ts'
import type { DataApi } from '../../gateway/data-api.ts'
import { type Principals, principalsOf } from '../../gateway/principals.ts'
import type { Tokens } from '../../gateway/tokens.ts'
import { type Operation, type Scope, scopes } from '../../operations/operation.ts'
import { bearerOf } from '../middleware/bearer.ts'
import { createLookups } from '../middleware/secret-lookups.ts'
import { recordHash } from './adapter.ts'
import type { AddressesOf } from './addresses.ts'

// As oidc-provider makes them: 256 bits in base64url.
const isWellFormedToken = (text: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(text)

const invalidToken = (hint = 'Renew it with the refresh token, or sign in again.') =>
  unauthorised('invalid_access_token', 'The access token is not valid.', hint)

/** Principals behind access tokens. */
export const createTokenPrincipals = (dataApi: DataApi, tokens: Tokens): Principals =>
  principalsOf(
    {
      isWellFormed: isWellFormedToken,
      invalid: invalidToken,
      resolve: (token) => ['resolve_access_token', { id_hash: recordHash('AccessToken', token) }],
    },
    dataApi,
    tokens,
  )

/** To be mounted at /api/mcp/connect. Passes on where OAuth is not offered. */
export function authenticateClient(
  principals: Principals,
  addressesOf: AddressesOf,
  failures: RateLimitRequestHandler,
): RequestHandler {
  const lookups = createLookups({ isWellFormed: isWellFormedToken, resolve: principals.resolve }, failures)
  return async (req, res, next) => {
    const addresses = addressesOf(req)
    if (addresses === undefined) return next('router')
    res.locals.resourceMetadata = addresses.resourceMetadata
    const token = bearerOf(req.headers.authorization)
    if (token === undefined) throw missingToken()
    if (isWellFormedKey(token)) throw invalidToken('An API key goes to /api/mcp; here clients sign in by OAuth.')
    const known = principals.known(token)
    const principal = known ?? (await lookups.resolve(token, req, res))
    if (principal.access_token?.resource !== addresses.resource) throw invalidToken()
    res.locals.caller = new Caller(token, 'mcp', principal, known !== undefined, principals)
    next()
  }
}

const missingToken = () =>
  new ApiError(401, 'missing_access_token', 'The request carries no access token.', {
    hint: 'Sign in by OAuth, as WWW-Authenticate says. With an API key, call /api/mcp.',
    headers: { 'WWW-Authenticate': 'Bearer realm="usher"' },
  })

/** Whether the request is of a client that signed in. */
export const isOfClient = (res: Response): boolean => res.locals.resourceMetadata !== undefined

/** Tells a client that was refused where to sign in. To be called before the answer is sent. */
export function nameResourceMetadata(status: number, res: Response): void {
  const challenge = res.get('WWW-Authenticate')
  if (status !== 401 && status !== 403) return
  if (challenge === undefined || !isOfClient(res)) return
  res.set('WWW-Authenticate', `${challenge}, resource_metadata="${res.locals.resourceMetadata}"`)
}

/**
 * Asks the client to have a scope allowed, where the person who signed in could allow it. Where they could not, the call itself is refused.
 * @throws ApiError 403
 */
export async function requireAllowedScope({ name, scope }: Operation, caller: Caller): Promise<void> {
  if (scope === null || caller.has(scope)) return
  // It may have been allowed within the last minute.
  await caller.refresh()
  const { access_token, scopes: allowed } = caller.principal
  if (caller.has(scope) || !access_token?.allowable.includes(scope)) return
  const wanted = scopes.filter((each: Scope) => each === scope || allowed.includes(each)).join(' ')
  throw new ApiError(403, 'missing_scope', `${name} needs the scope ${scope}, which was not allowed.`, {
    details: { scope },
    hint: 'Sign in again for the scopes in WWW-Authenticate; the person decides.',
    headers: { 'WWW-Authenticate': `Bearer realm="usher", error="insufficient_scope", scope="${wanted}"` },
  })
}

/** The handlers in order; a request that is not for them goes on behind. */
export function connectRouter(...handlers: RequestHandler[]): Router {
  const router = Router()
  router.use(...handlers)
  return router
}
