// Who holds a key: in comes the text of a key, out goes its principal, from the cache where it was resolved less than a
// minute ago. The cache is never the last word: the database checks the key again in the transaction of every call.

import { LRUCache } from 'lru-cache'
import type { Scope } from '../operation.ts'
import { ApiError, unauthorised } from './api-error.ts'
import { hashOf, isWellFormedKey } from './api-key.ts'
import type { DataApi } from './data-api.ts'
import type { Tokens } from './tokens.ts'

/** As `api.resolve_api_key` answers it. */
export type Principal = {
  api_key_id: string
  /** Shared by keys that replace one another by rotation: rate limit and idempotency keys belong to it. */
  family_id: string
  organisation_id: string
  scopes: Scope[]
  rate_limit_per_minute: number
}

export type Principals = {
  /** The principal of a key if it is in the cache: no database, no waiting. */
  known(key: string): Principal | undefined
  /** @throws ApiError 401, when the key is malformed, unknown, revoked or expired. */
  resolve(key: string): Promise<Principal>
  /** After the database refused the key: it must be resolved again. */
  forget(principal: Principal): void
}

const keptMilliseconds = 60_000

export function createPrincipals(dataApi: DataApi, tokens: Tokens): Principals {
  const byHash = new LRUCache<string, Principal>({ max: 10_000, ttl: keptMilliseconds })
  const hashes = new WeakMap<Principal, string>()
  const inFlight = new Map<string, Promise<Principal>>()

  async function ask(hash: string): Promise<Principal> {
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
      const pending = inFlight.get(hash) ?? ask(hash).finally(() => inFlight.delete(hash))
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
