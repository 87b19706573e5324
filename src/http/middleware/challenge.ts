// What tells a client that signed in by OAuth how to go on, in WWW-Authenticate. `res.locals.resourceMetadata` marks its requests.

import type { Response } from 'express'
import { ApiError } from '../../gateway/api-error.ts'
import type { Caller } from '../../gateway/caller.ts'
import { type Operation, type Scope, scopes } from '../../operations/operation.ts'

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
  throw new ApiError(403, 'missing_scope', `${name} needs the scope ${scope}, which was not granted.`, {
    details: { scope },
    hint: 'Sign in again with the scopes in WWW-Authenticate. The person decides.',
    headers: { 'WWW-Authenticate': `Bearer realm="usher", error="insufficient_scope", scope="${wanted}"` },
  })
}
