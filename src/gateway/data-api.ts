// Client of PostgREST: one RPC in the role of a token. Knows nothing of what the functions do.

import { setTimeout as sleep } from 'node:timers/promises'
import { PostgrestClient } from '@supabase/postgrest-js'
import { apiErrorOfDatabase, fieldsOf, lostRace } from './database-error.ts'

// Postgres gives up after 8 s (statement_timeout); a longer wait means that the answer was lost.
const timeoutMs = 15_000
// A random pause, so that two calls that deadlocked do not meet again.
const maximumPauseMs = 50

export type DataApi = {
  /**
   * @param repeatable whether sending the call twice does no harm; the error for an unknown outcome says so. Left out for
   * Usher's own calls, which are repeated anyway.
   * @throws ApiError, when the function raised one or the database cannot be reached.
   */
  rpc(fn: string, args: Record<string, unknown>, token: string, repeatable?: boolean): Promise<unknown>
}

/**
 * @param url base URL of PostgREST; on Supabase it ends in `/rest/v1`.
 * @param projectKey Supabase's publishable (or anon) key, which its gateway requires beside the token.
 */
export function createDataApi(url: string, projectKey?: string): DataApi {
  const client = new PostgrestClient(url, {
    schema: 'api',
    ...(projectKey !== undefined && { headers: { apikey: projectKey } }),
  })

  return {
    async rpc(fn, args, token, repeatable) {
      const timeout = AbortSignal.timeout(timeoutMs)
      const ask = () => client.rpc(fn, args).setHeader('Authorization', `Bearer ${token}`).abortSignal(timeout)
      let { data, error, status } = await ask()
      if (error !== null && lostRace(error)) {
        await sleep(Math.random() * maximumPauseMs)
        ;({ data, error, status } = await ask())
      }
      if (error === null) return data
      throw apiErrorOfDatabase(error, status, fieldsOf(args), repeatable)
    },
  }
}
