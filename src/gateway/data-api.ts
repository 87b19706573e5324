// The way to the database: one RPC through PostgREST, as the role of a token. In come the name of an `api` function, its
// arguments and a token; out comes what the function returned. Nothing here knows what the functions mean.

import { PostgrestClient } from '@supabase/postgrest-js'
import { refusalOfDatabase } from './refusal-of-database.ts'

// The database gives up after 8 s (statement_timeout); what takes longer got lost on the way.
const patienceMilliseconds = 15_000

export type DataApi = {
  /** @throws Refusal, when the function raised one or the database cannot be reached. */
  rpc(fn: string, args: Record<string, unknown>, token: string): Promise<unknown>
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
    async rpc(fn, args, token) {
      const { data, error, status } = await client
        .rpc(fn, args)
        .setHeader('Authorization', `Bearer ${token}`)
        .abortSignal(AbortSignal.timeout(patienceMilliseconds))
      if (error === null) return data
      throw refusalOfDatabase(error, status, fieldsOf(args))
    },
  }
}

/** The fields a caller named: the arguments, and those inside `changes` and inside the items of lists. */
function fieldsOf(args: Record<string, unknown>): string[] {
  const inside = [args.changes, ...Object.values(args).filter(Array.isArray).flat()]
  return [...new Set([args, ...inside.filter(isObject)].flatMap(Object.keys))]
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
