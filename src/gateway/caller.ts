// Who calls, and whether the database has checked their key for this request.

import type { Scope } from '../operations/operation.ts'
import type { Principal, Principals } from './principals.ts'
import type { Source } from './tokens.ts'

/** Never log one: `key` is the secret itself. */
export class Caller {
  readonly key: string
  readonly source: Source
  principal: Principal
  /** Whether the database has checked the key for this request. Until then it may have been revoked within the last minute. */
  confirmed: boolean
  readonly #principals: Principals

  /** @param known whether `principal` is from the cache; else it was resolved just now. */
  constructor(key: string, source: Source, principal: Principal, known: boolean, principals: Principals) {
    this.key = key
    this.source = source
    this.principal = principal
    this.confirmed = !known
    this.#principals = principals
  }

  has(scope: Scope | null): boolean {
    return scope === null || this.principal.scopes.includes(scope)
  }

  /** Asks the database for the principal again: a scope may have been added, or the key revoked. @throws ApiError 401 */
  async refresh(): Promise<void> {
    this.principal = await this.#principals.resolve(this.key)
    this.confirmed = true
  }

  /** To be called before answering without the database. @throws ApiError 401 */
  async confirm(): Promise<void> {
    if (!this.confirmed) await this.refresh()
  }

  /** To be called after the database refused the key, so that the next request resolves it again. */
  forget(): void {
    this.#principals.forget(this.key)
  }
}
