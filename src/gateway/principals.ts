// Resolves an API key to its principal, cached for a minute. The cache decides nothing alone: the database checks the key again in
// the transaction of every call.

import { LRUCache } from 'lru-cache'
import type { Scope } from '../operations/operation.ts'
import { ApiError, unauthorised } from './api-error.ts'
import { hashOf, isWellFormedKey } from './api-key.ts'
import type { DataApi } from './data-api.ts'
import type { Tokens } from './tokens.ts'

/** As `api.resolve_api_key` returns it. */
export type Principal = {
  api_key_id: string
  /** Shared by a key and its rotations: rate limit and idempotency keys belong to the family. */
  family_id: string
  organisation_id: string
  scopes: Scope[]
  rate_limit_per_minute: number
}

export type Principals = {
  /** The cached principal of a key, if there is one. */
  known(key: string): Principal | undefined
  /** @throws ApiError 401, when the key is malformed, unknown, revoked or expired. */
  resolve(key: string): Promise<Principal>
  /** To be called after the database refused the key, so that it is resolved again. */
  forget(principal: Principal): void
}

const ttlMs = 60_000

export function createPrincipals(dataApi: DataApi, tokens: Tokens): Principals {
  const byHash = new LRUCache<string, Principal>({ max: 10_000, ttl: ttlMs })
  const hashes = new WeakMap<Principal, string>()
  const inFlight = new Map<string, Promise<Principal>>()

  async function fetchPrincipal(hash: string): Promise<Principal> {
    const principal = (await dataApi.rpc('resolve_api_key', { key_hash: hash }, await tokens.forGateway())) as Principal
    byHash.set(hash, principal)
    hashes.set(principal, hash)
    return principal
  }

  return {
    known: (key) => byHash.get(hashOf(key)),

    async resolve(key) {
      if (!isWellFormedKey(key)) throw invalidKey()
      const hash = hashOf(key)
      const pending = inFlight.get(hash) ?? fetchPrincipal(hash).finally(() => inFlight.delete(hash))
      inFlight.set(hash, pending)
      try {
        return await pending
      } catch (error) {
        if (error instanceof ApiError && error.status === 401) byHash.delete(hash)
        throw error
      }
    },

    forget(principal) {
      const hash = hashes.get(principal)
      if (hash !== undefined) byHash.delete(hash)
    },
  }
}

const invalidKey = () =>
  unauthorised('invalid_api_key', 'The API key is not valid.', 'Send a live key of your organisation.')
