// Resolves an API key, or an access token, to its principal, cached for a minute. The cache decides nothing alone: the database checks the key again in
// the transaction of every call.

import type { Scope } from '../operations/operation.ts'
import { ApiError, unauthorised } from './api-error.ts'
import { hashOf, isWellFormedKey } from './api-key.ts'
import { createCache } from './cache.ts'
import type { DataApi } from './data-api.ts'
import type { Tokens } from './tokens.ts'

/** As `api.resolve_api_key` returns it. What a client presents is a key to a principal of its own: the grant. */
export type Principal = {
  api_key_id: string
  /** Of an API key. A person's signs in on pages, and calls nothing; that of a page registers guests. */
  kind?: 'key' | 'person' | 'page'
  /** Shared by a key and its rotations: rate limit and idempotency keys belong to the family. A grant has one of its own. */
  family_id: string
  organisation_id: string
  scopes: Scope[]
  rate_limit_per_minute: number
  /** Of an access token, as `api.resolve_access_token` adds it. */
  access_token?: {
    /** The address that it is for. */
    resource: string
    /** Seconds, when it was resolved. */
    expires_in: number
    /** Scopes of the key that the person signed in with: what they could still allow. */
    allowable: Scope[]
    /** Of that key. All that was allowed with it shares its rate limit: else whoever holds a key could make more of it. */
    parent_family_id: string
  }
}

export type Principals = {
  /** The cached principal of a key, if there is one. */
  known(key: string): Principal | undefined
  /** @throws ApiError 401, when the key is malformed, unknown, revoked or expired. */
  resolve(key: string): Promise<Principal>
  /** To be called after the database refused the key, so that it is resolved again. */
  forget(key: string): void
}

const ttlMs = 60_000

/** What a principal is resolved from. */
type Credential = {
  isWellFormed(text: string): boolean
  invalid(): ApiError
  /** The SQL function, and its arguments. */
  resolve(text: string): [fn: string, args: Record<string, unknown>]
}

const apiKey: Credential = {
  isWellFormed: isWellFormedKey,
  invalid: () => unauthorised('invalid_api_key', 'The API key is not valid.', 'Send a live key of your organisation.'),
  resolve: (key) => ['resolve_api_key', { key_hash: hashOf(key) }],
}

export const createPrincipals = (dataApi: DataApi, tokens: Tokens): Principals => principalsOf(apiKey, dataApi, tokens)

export function principalsOf(credential: Credential, dataApi: DataApi, tokens: Tokens): Principals {
  const byHash = createCache<Principal>(10_000, { ttl: ttlMs })
  const inFlight = new Map<string, Promise<Principal>>()

  async function fetchPrincipal(key: string, hash: string): Promise<Principal> {
    const [fn, args] = credential.resolve(key)
    const principal = (await dataApi.rpc(fn, args, await tokens.forGateway())) as Principal
    const leftMs = (principal.access_token?.expires_in ?? Number.POSITIVE_INFINITY) * 1000
    byHash.set(hash, principal, { ttl: Math.max(1, Math.min(ttlMs, Math.floor(leftMs))) })
    return principal
  }

  return {
    known: (key) => byHash.get(hashOf(key)),

    async resolve(key) {
      if (!credential.isWellFormed(key)) throw credential.invalid()
      const hash = hashOf(key)
      const pending = inFlight.get(hash) ?? fetchPrincipal(key, hash).finally(() => inFlight.delete(hash))
      inFlight.set(hash, pending)
      try {
        return await pending
      } catch (error) {
        if (error instanceof ApiError && error.status === 401) byHash.delete(hash)
        throw error
      }
    },

    forget: (key) => void byHash.delete(hashOf(key)),
  }
}
