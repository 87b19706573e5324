// Calls of the REST API by the command line: waits for a limit, and sends again what may be sent again. Writes carry an idempotency key, so
// that one whose answer was lost is answered, not repeated.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Scope } from '../../operations/operation.ts'
import { CommandError } from '../command-error.ts'

/** An answer that sending the same again does not change. */
export class Refusal extends Error {
  readonly status: number
  readonly code: string
  readonly hint: string | undefined

  constructor(status: number, { code, message, hint }: { code: string; message: string; hint?: string }) {
    super(message)
    this.status = status
    this.code = code
    this.hint = hint
  }
}

/** The person asked to stop while it waited. */
export class Stopped extends Error {}

export type Page<T> = { data: T[]; has_more: boolean; next_cursor: string | null }

export type Client = {
  url: string
  call<T>(method: 'GET' | 'POST', path: string, body?: unknown, idempotencyKey?: string): Promise<T>
  /** Every item of a list, page by page. */
  list<T>(path: string, query?: Record<string, string>): AsyncGenerator<T>
}

export type Account = { scopes: Scope[]; organisation: { name: string; slug: string } }

type ErrorBody = { error: { code: string; message: string; hint?: string; retryable: boolean } }
/** `reason` is a sentence. */
type Trouble = { reason: string; seconds: number | undefined }

const timeOutMs = 60_000
const longestWaitSeconds = 30

type Options = {
  url: string
  key: string
  say: (text: string) => void
  stopping: AbortSignal
  patienceSeconds?: number
}

/** @param options.patienceSeconds for how long nothing need answer, once something has. */
export function createClient({ url, key, say, stopping, patienceSeconds = 600 }: Options): Client {
  let hasAnswered = false

  async function attempt(method: string, path: string, text: string | undefined, idempotencyKey: string | undefined) {
    let response: Response
    let body: unknown
    try {
      response = await fetch(`${url}/api/v1${path}`, {
        method,
        headers: {
          Authorization: `Bearer ${key}`,
          ...(text !== undefined && { 'Content-Type': 'application/json' }),
          ...(idempotencyKey !== undefined && { 'Idempotency-Key': idempotencyKey }),
        },
        // A redirected POST would become a GET.
        redirect: 'manual',
        signal: AbortSignal.timeout(timeOutMs),
        ...(text !== undefined && { body: text }),
      })
      body = await response.text().then(parseJson)
    } catch (error) {
      const { message, cause } = error as Error & { cause?: NodeJS.ErrnoException }
      return { trouble: { reason: `No answer (${cause?.code ?? cause?.message ?? message}).`, seconds: undefined } }
    }
    const { status, headers } = response
    if (status >= 300 && status < 400) {
      throw new CommandError(2, `${url} sends us on to ${headers.get('location')}. Give that address with --url.`)
    }
    if (response.ok && typeof body === 'object' && body !== null) return { body }
    const { error } = (body ?? {}) as Partial<ErrorBody>
    const retryAfter = Number(headers.get('retry-after') ?? Number.NaN)
    const seconds = Number.isFinite(retryAfter) ? retryAfter : undefined
    if (error?.code === undefined) {
      const isPassing = status >= 500 || status === 429 || status === 408
      if (isPassing) return { trouble: { reason: `An answer with status ${status}.`, seconds } }
      throw new CommandError(2, `At ${url} no Usher answers (status ${status} without its JSON).`)
    }
    if (!error.retryable) throw new Refusal(status, error)
    return { trouble: { reason: error.message, seconds } }
  }

  async function call<T>(method: 'GET' | 'POST', path: string, body?: unknown, idempotencyKey?: string): Promise<T> {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const deadline = performance.now() + patienceSeconds * 1000
    for (let failed = 0; ; ) {
      const outcome = await attempt(method, path, text, idempotencyKey)
      if (outcome.trouble === undefined) {
        hasAnswered = true
        return outcome.body as T
      }
      if (outcome.trouble.seconds === undefined) failed += 1
      await wait(outcome.trouble, failed, deadline)
    }
  }

  async function wait({ reason, seconds }: Trouble, failed: number, deadline: number): Promise<void> {
    // An address that is wrong does not become right.
    if (seconds === undefined && !hasAnswered) {
      throw new CommandError(1, `Usher cannot be reached at ${url}. ${reason} --url names another address.`)
    }
    if (performance.now() > deadline) throw new CommandError(1, `${url} is away for too long. ${reason}`)
    const pause = seconds ?? Math.min(2 ** (failed - 1), longestWaitSeconds)
    if (pause > 0) say(`${reason} Trying again in ${pause} s …`)
    await sleep(pause * 1000, undefined, { signal: stopping }).catch(() => {})
    if (stopping.aborted) throw new Stopped()
  }

  async function* list<T>(path: string, query: Record<string, string> = {}): AsyncGenerator<T> {
    const parameters = new URLSearchParams({ ...query, limit: '100' })
    for (;;) {
      const { data, next_cursor } = await call<Page<T>>('GET', `${path}?${parameters}`)
      yield* data
      if (next_cursor === null) return
      parameters.set('cursor', next_cursor)
    }
  }

  return { url, call, list }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
