// The way to the database: one RPC through PostgREST, as the role of a token. Nothing here knows what the functions mean.

import { setTimeout as sleep } from 'node:timers/promises'
import { PostgrestClient } from '@supabase/postgrest-js'
import { lostRace, refusalOfDatabase } from './database-error.ts'

// The database gives up after 8 s (statement_timeout); what takes longer got lost on the way.
const timeoutMs = 15_000
// Two that met in a deadlock must not meet again.
const longestPauseMilliseconds = 50

export type DataApi = {
  /**
   * @param repeatable whether the call may be sent twice, which a caller has to know when its outcome is unknown. Left out, nobody
   * asks: the call is one of our own, which is repeated anyway.
   * @throws ApiError, when the function raised one or the database cannot be reached.
   */
  rpc(fn: string, args: Record<string, unknown>, token: string, repeatable?: boolean): Promise<unknown>
}

/**
 * @param url base URL of PostgREST; on Supabase it ends in `/rest/v1`.
 * @param projectKey Supabase's publishable (or anon) key, which its gateway wants beside the token.
 */
export function createDataApi(url: string, projectKey?: string): DataApi {
  const client = new PostgrestClient(url, {
    schema: 'api',
    ...(projectKey !== undefined && { headers: { apikey: projectKey } }),
  })

  return {
    async rpc(fn, args, token, repeatable) {
      const patience = AbortSignal.timeout(timeoutMs)
      const ask = () => client.rpc(fn, args).setHeader('Authorization', `Bearer ${token}`).abortSignal(patience)
      let { data, error, status } = await ask()
      if (error !== null && lostRace(error)) {
        await sleep(Math.random() * longestPauseMilliseconds)
        ;({ data, error, status } = await ask())
      }
      if (error === null) return data
      throw refusalOfDatabase(error, status, fieldsOf(args), repeatable)
    },
  }
}

/** The fields a caller named: the arguments, and those inside `changes` and inside the items of lists. */
function fieldsOf(args: Record<string, unknown>): string[] {
  const inside = [args.changes, ...Object.values(args).filter(Array.isArray).flat()]
  return [...new Set([args, ...inside.filter(isObject)].flatMap(Object.keys))]
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
