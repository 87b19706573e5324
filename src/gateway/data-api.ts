// Client of PostgREST: one RPC in the role of a token. Knows nothing of what the functions do.

import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '@supabase/supabase-js'
import { type Fetch, fetchByUndici } from './data-api-fetch.ts'
import {
  apiErrorOfDatabase,
  brokenRule,
  type DatabaseError,
  fieldsOf,
  lostRace,
  refusedToken,
} from './database-error.ts'
import type { DatabaseHealth } from './database-health.ts'
import type { DataApiAddress } from './database-probe.ts'
import type { Tokens } from './tokens.ts'

// Postgres gives up after 8 s (statement_timeout); a longer wait means that the answer was lost.
const usualTimeoutMs = 15_000
// A random pause, so that two calls that deadlocked do not meet again.
const maximumPauseMs = 50

export type Args = Record<string, unknown>

export type RpcOptions = {
  /**
   * Whether sending the call twice does no harm; the error for an unknown outcome says so. Left out for Usher's own calls, which are
   * repeated anyway.
   */
  repeatable?: boolean | undefined
  /** Which operation the function calls with these arguments: errors are about them. */
  about?: { name: string; args: Args } | undefined
  /** Of a function that has a time-out of its own. */
  timeoutMs?: number | undefined
}

type Answered = { data: unknown; error: DatabaseError | null; status: number }

export class DataApi {
  private readonly client
  private readonly tokens: Pick<Tokens, 'inPlaceOf'>
  private readonly health: DatabaseHealth | undefined

  /**
   * @param tokens whose tokens the calls are made with.
   * @param options.health calls fail at once while the database does not answer its probes.
   * @param options.fetch sends the requests.
   */
  constructor(
    { url, projectKey = 'none' }: DataApiAddress,
    tokens: Pick<Tokens, 'inPlaceOf'>,
    { health, fetch = fetchByUndici }: { health?: DatabaseHealth; fetch?: Fetch } = {},
  ) {
    // The client takes the Data API to be below the project's URL; PostgREST alone has it at its root, and reads no key.
    const base = new URL(url).href.replace(/\/$/, '')
    const project = base.replace(/\/rest\/v1$/, '')
    const assumed = `${project}/rest/v1`
    this.client = createClient(project, projectKey, {
      db: { schema: 'api' },
      global: { fetch: (input, init = {}) => fetch(base + String(input).slice(assumed.length), init) },
      // Each call has a token of its own. Without this there would be a client of Supabase Auth, with timers.
      accessToken: async () => null,
    })
    this.tokens = tokens
    this.health = health
  }

  /** @throws ApiError, when the function raised one or the database cannot be reached. */
  async rpc(fn: string, args: Args, token: string, options: RpcOptions = {}): Promise<unknown> {
    const send = () => this.send(fn, args, token, options)
    return this.health === undefined ? send() : this.health.during(send)
  }

  private async send(fn: string, args: Args, token: string, options: RpcOptions): Promise<unknown> {
    const { repeatable, about = { name: fn, args }, timeoutMs = usualTimeoutMs } = options
    const timeout = AbortSignal.timeout(timeoutMs)
    let accepted = token
    let { data, error, status } = await this.post(fn, args, accepted, timeout)
    // Nothing was executed. A second refusal has other reasons than when the token was signed.
    if (error !== null && refusedToken(error)) {
      accepted = await this.tokens.inPlaceOf(token)
      ;({ data, error, status } = await this.post(fn, args, accepted, timeout))
    }
    if (error !== null && lostRace(error)) {
      await sleep(Math.random() * maximumPauseMs)
      ;({ data, error, status } = await this.post(fn, args, accepted, timeout))
    }
    if (error === null) return data
    const rule = brokenRule(error)
    if (rule !== undefined) {
      const explained = await this.post('explain_rule', { constraint: rule }, accepted, AbortSignal.timeout(timeoutMs))
      error = explained.error ?? error
    }
    throw apiErrorOfDatabase(error, status, fieldsOf(about.args), repeatable, about.name)
  }

  private async post(fn: string, args: Args, token: string, signal: AbortSignal): Promise<Answered> {
    const call = this.client.rpc(fn, args).setHeader('Authorization', `Bearer ${token}`).abortSignal(signal)
    const { data, error, status } = await call
    // postgrest-js takes an empty 404, as of a proxy, for an answer of nothing.
    return { data, error: error ?? (status < 400 ? null : { message: '' }), status }
  }
}
