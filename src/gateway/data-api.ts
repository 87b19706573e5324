// Client of PostgREST: one RPC in the role of a token. Knows nothing of what the functions do.

import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '@supabase/supabase-js'
import { createDataApiFetch, type Fetch } from './data-api-fetch.ts'
import { apiErrorOfDatabase, fieldsOf, lostRace, refusedToken } from './database-error.ts'
import type { Tokens } from './tokens.ts'

// Postgres gives up after 8 s (statement_timeout); a longer wait means that the answer was lost.
const timeoutMs = 15_000
// A random pause, so that two calls that deadlocked do not meet again.
const maximumPauseMs = 50

export type DataApi = {
  /**
   * @param repeatable whether sending the call twice does no harm; the error for an unknown outcome says so. Left out for
   * Usher's own calls, which are repeated anyway.
   * @param operation which the function calls with these arguments: errors are about them.
   * @throws ApiError, when the function raised one or the database cannot be reached.
   */
  rpc(
    fn: string,
    args: Record<string, unknown>,
    token: string,
    repeatable?: boolean,
    operation?: { name: string; args: Record<string, unknown> },
  ): Promise<unknown>
}

/**
 * @param url base URL of PostgREST; on Supabase it ends in `/rest/v1`.
 * @param tokens whose tokens the calls are made with.
 * @param projectKey Supabase's publishable (or anon) key, which its gateway requires beside the token.
 * @param send sends the requests.
 */
export function createDataApi(
  url: string,
  tokens: Pick<Tokens, 'inPlaceOf'>,
  projectKey?: string,
  send: Fetch = createDataApiFetch(url),
): DataApi {
  // The client takes the Data API to be below the project's URL; PostgREST alone has it at its root, and reads no key.
  const base = new URL(url).href.replace(/\/$/, '')
  const project = base.replace(/\/rest\/v1$/, '')
  const assumed = new URL('rest/v1', `${project}/`).href
  const client = createClient(project, projectKey ?? 'none', {
    db: { schema: 'api' },
    global: { fetch: (input, init) => send(base + (input as string).slice(assumed.length), init) },
    // Each call has a token of its own. Without this there would be a client of Supabase Auth, with timers.
    accessToken: async () => null,
  })

  return {
    async rpc(fn, args, token, repeatable, operation = { name: fn, args }) {
      const timeout = new AbortController()
      const timer = setTimeout(() => timeout.abort(new DOMException('No answer in time.', 'TimeoutError')), timeoutMs)
      let accepted = token
      const ask = () =>
        client.rpc(fn, args).setHeader('Authorization', `Bearer ${accepted}`).abortSignal(timeout.signal)
      try {
        let { data, error, status } = await ask()
        // Nothing was executed. A second refusal has other reasons than when the token was signed.
        if (error !== null && refusedToken(error)) {
          accepted = await tokens.inPlaceOf(token)
          ;({ data, error, status } = await ask())
        }
        if (error !== null && lostRace(error)) {
          await sleep(Math.random() * maximumPauseMs)
          ;({ data, error, status } = await ask())
        }
        if (error === null) return data
        throw apiErrorOfDatabase(error, status, fieldsOf(operation.args), repeatable, operation.name)
      } finally {
        clearTimeout(timer)
      }
    },
  }
}
