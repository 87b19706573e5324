// Client of PostgREST: one RPC in the role of a token. Knows nothing of what the functions do.

import { setTimeout as sleep } from 'node:timers/promises'
import { createSend, noAnswerInTime, type RpcAnswer, type Send } from './data-api-send.ts'
import {
  apiErrorOfDatabase,
  brokenRule,
  type DatabaseError,
  fieldsOf,
  lostRace,
  refusedToken,
  unanswered,
} from './database-error.ts'
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
 * @param send sends the requests.
 */
export function createDataApi(
  url: string,
  tokens: Pick<Tokens, 'inPlaceOf'>,
  projectKey?: string,
  send: Send = createSend(url),
): DataApi {
  const constant = {
    'content-profile': 'api',
    'content-type': 'application/json',
    ...(projectKey !== undefined && { apikey: projectKey }),
  }

  return {
    async rpc(fn, args, token, repeatable, operation = { name: fn, args }, timeoutMs = usualTimeoutMs) {
      const path = `/rpc/${fn}`
      const body = JSON.stringify(args)
      const since = performance.now()
      const post = (path: string, body: string, token: string, timeoutMs: number): Promise<Result> =>
        send(path, { ...constant, authorization: `Bearer ${token}` }, body, timeoutMs).then(resultOf, failureOf)
      const ask = (token: string, timeoutMs: number): Promise<Result> => post(path, body, token, timeoutMs)
      const askAgain = async (token: string) => {
        const left = since + timeoutMs - performance.now()
        return left > 0 ? ask(token, left) : failureOf(noAnswerInTime())
      }

      let accepted = token
      let { data, error, status } = await ask(token, timeoutMs)
      // Nothing was executed. A second refusal has other reasons than when the token was signed.
      if (error !== null && refusedToken(error)) {
        accepted = await tokens.inPlaceOf(token)
        ;({ data, error, status } = await askAgain(accepted))
      }
      if (error !== null && lostRace(error)) {
        await sleep(Math.random() * maximumPauseMs)
        ;({ data, error, status } = await askAgain(accepted))
      }
      if (error === null) return data
      const rule = brokenRule(error)
      if (rule !== undefined) {
        const explained = await post('/rpc/explain_rule', JSON.stringify({ constraint: rule }), accepted, timeoutMs)
        error = explained.error ?? error
      }
      throw apiErrorOfDatabase(error, status, fieldsOf(operation.args), repeatable, operation.name)
    },
  }
}

type Result = { data?: unknown; error: DatabaseError | null; status: number }

function resultOf({ status, text }: RpcAnswer): Result {
  const isSuccess = status >= 200 && status < 300
  if (isSuccess && text === '') return { data: null, error: null, status }
  try {
    const data: unknown = JSON.parse(text)
    if (isSuccess) return { data, error: null, status }
    if (typeof data === 'object' && data !== null) return { error: { message: '', ...data }, status }
  } catch {
    // From a proxy in between it need not be JSON.
  }
  return { error: { message: text }, status }
}

const failureOf = (error: unknown): Result => ({ error: unanswered(error), status: 0 })
