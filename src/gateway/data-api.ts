// Client of PostgREST: one RPC in the role of a token. Knows nothing of what the functions do.

import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '@supabase/supabase-js'
import { type Fetch, fetchByUndici } from './data-api-fetch.ts'
import { apiErrorOfDatabase, brokenRule, fieldsOf, lostRace, refusedToken } from './database-error.ts'
import type { Tokens } from './tokens.ts'

// Postgres gives up after 8 s (statement_timeout); a longer wait means that the answer was lost.
const usualTimeoutMs = 15_000
// A random pause, so that two calls that deadlocked do not meet again.
const maximumPauseMs = 50

export type DataApi = {
  /**
   * @param repeatable whether sending the call twice does no harm; the error for an unknown outcome says so. Left out for
   * Usher's own calls, which are repeated anyway.
   * @param operation which the function calls with these arguments: errors are about them.
   * @param timeoutMs of a function that has a time-out of its own.
   * @throws ApiError, when the function raised one or the database cannot be reached.
   */
  rpc(
    fn: string,
    args: Record<string, unknown>,
    token: string,
    repeatable?: boolean,
    operation?: { name: string; args: Record<string, unknown> },
    timeoutMs?: number,
  ): Promise<unknown>
}

/**
 * @param url base URL of PostgREST; on Supabase it ends in `/rest/v1`.
 * @param tokens whose tokens the calls are made with.
 * @param projectKey Supabase's publishable (or anon) key, which its gateway requires beside the token.
 * @param fetch sends the requests.
 */
export function createDataApi(
  url: string,
  tokens: Pick<Tokens, 'inPlaceOf'>,
  projectKey = 'none',
  fetch: Fetch = fetchByUndici,
): DataApi {
  // The client takes the Data API to be below the project's URL; PostgREST alone has it at its root, and reads no key.
  const base = new URL(url).href.replace(/\/$/, '')
  const project = base.replace(/\/rest\/v1$/, '')
  const assumed = `${project}/rest/v1`
  const client = createClient(project, projectKey, {
    db: { schema: 'api' },
    global: { fetch: (input, init = {}) => fetch(base + String(input).slice(assumed.length), init) },
    // Each call has a token of its own. Without this there would be a client of Supabase Auth, with timers.
    accessToken: async () => null,
  })
  const post = (fn: string, args: Record<string, unknown>, token: string, signal: AbortSignal) =>
    client.rpc(fn, args).setHeader('Authorization', `Bearer ${token}`).abortSignal(signal)

  return {
    async rpc(fn, args, token, repeatable, operation = { name: fn, args }, timeoutMs = usualTimeoutMs) {
      const timeout = AbortSignal.timeout(timeoutMs)
      let accepted = token
      let { data, error, status } = await post(fn, args, accepted, timeout)
      // Nothing was executed. A second refusal has other reasons than when the token was signed.
      if (error !== null && refusedToken(error)) {
        accepted = await tokens.inPlaceOf(token)
        ;({ data, error, status } = await post(fn, args, accepted, timeout))
      }
      if (error !== null && lostRace(error)) {
        await sleep(Math.random() * maximumPauseMs)
        ;({ data, error, status } = await post(fn, args, accepted, timeout))
      }
      if (error === null) return data
      const rule = brokenRule(error)
      if (rule !== undefined) {
        const explained = await post('explain_rule', { constraint: rule }, accepted, AbortSignal.timeout(timeoutMs))
        error = explained.error ?? error
      }
      throw apiErrorOfDatabase(error, status, fieldsOf(operation.args), repeatable, operation.name)
    },
  }
}
