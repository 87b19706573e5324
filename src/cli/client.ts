// Calls of the REST API by the command line: waits for a limit, and sends again what may be sent again. Writes carry an idempotency key, so
// that one whose answer was lost is answered, not repeated.

import { setTimeout as sleep } from 'node:timers/promises'
import { CommandError } from './command-error.ts'
import { printable } from './import/shown.ts'

type ErrorBody = { code: string; message: string; hint?: string; retryable: boolean }

/** An answer that sending the same again does not change. */
export class Refusal extends CommandError {
  readonly status: number
  readonly code: string

  constructor(status: number, { code, message, hint }: ErrorBody) {
    super(1, printable([message, hint].filter(Boolean).join(' ')))
    this.status = status
    this.code = code
  }
}

/** The person asked to stop. */
export class Stopped extends Error {}

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

export type Client = {
  call<T>(method: Method, path: string, body?: unknown, idempotencyKey?: string): Promise<T>
  /** Every item of a list, page by page. */
  list<T>(path: string): Promise<T[]>
  /** The clock of the server at its last answer, to the second. */
  serverTime(): Date
}

type Answer = { body: object; date: string | null }
/** `reason` is a sentence. `seconds`: when to come again, where the server says so. */
type Trouble = { reason: string; seconds: number | undefined }

const timeOutMs = 60_000
const longestWaitSeconds = 30
// A timer takes no more than 24 days, and fires at once beyond them.
const longestRetryAfterSeconds = 86_400

export function createClient(
  { url, key }: { url: string; key: string },
  say: (text: string) => void,
  stopping: AbortSignal,
  /** For how long nothing need answer, once something has. */
  patienceMs = 600_000,
): Client {
  let hasAnswered = false
  let serverTime = new Date()

  async function call<T>(method: Method, path: string, body?: unknown, idempotencyKey?: string): Promise<T> {
    if (stopping.aborted) throw new Stopped()
    const request = {
      method,
      headers: {
        Authorization: `Bearer ${key}`,
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...(idempotencyKey !== undefined && { 'Idempotency-Key': idempotencyKey }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }
    const deadline = performance.now() + patienceMs
    for (let failed = 0; ; ) {
      const outcome = await attempt(url, path, request)
      if ('body' in outcome) {
        hasAnswered = true
        serverTime = new Date(outcome.date ?? Date.now())
        if (failed > 0) say(`${url} answers again.`)
        return outcome.body as T
      }
      const { reason, seconds } = outcome
      // An address that is wrong does not become right.
      if (seconds === undefined && !hasAnswered) {
        throw new CommandError(1, `Usher cannot be reached at ${url}. ${reason} --url names another address.`)
      }
      if (performance.now() > deadline) throw new CommandError(1, `${url} was unreachable for too long. ${reason}`)
      const pause = seconds ?? Math.min(2 ** failed++, longestWaitSeconds)
      if (pause > 0) say(`${reason} Trying again in ${pause} s …`)
      await sleep(pause * 1000, undefined, { signal: stopping }).catch(() => {})
      if (stopping.aborted) throw new Stopped()
    }
  }

  async function list<T>(path: string): Promise<T[]> {
    const items: T[] = []
    const parameters = new URLSearchParams({ limit: '100' })
    for (;;) {
      const page = await call<{ data: T[]; next_cursor: string | null }>('GET', `${path}?${parameters}`)
      items.push(...page.data)
      if (page.next_cursor === null) return items
      parameters.set('cursor', page.next_cursor)
    }
  }

  return { call, list, serverTime: () => serverTime }
}

async function attempt(url: string, path: string, request: RequestInit): Promise<Answer | Trouble> {
  try {
    // A redirected POST would become a GET.
    const limits = { redirect: 'manual', signal: AbortSignal.timeout(timeOutMs) } as const
    const response = await fetch(`${url}/api/v1${path}`, { ...request, ...limits })
    return read(url, response, await response.text())
  } catch (error) {
    if (error instanceof CommandError) throw error
    const { message, cause } = error as Error & { cause?: NodeJS.ErrnoException }
    return { reason: `No answer (${cause?.code ?? cause?.message ?? message}).`, seconds: undefined }
  }
}

function read(url: string, { ok, status, headers }: Response, text: string): Answer | Trouble {
  if (status >= 300 && status < 400) {
    throw new CommandError(
      2,
      printable(`${url} redirects to ${headers.get('location')}. Give that address with --url.`),
    )
  }
  const body = parseJson(text)
  if (ok && body !== undefined) return { body, date: headers.get('date') }
  const retryAfter = Number(headers.get('retry-after') ?? Number.NaN)
  const seconds = Number.isFinite(retryAfter) ? Math.min(retryAfter, longestRetryAfterSeconds) : undefined
  if (body?.error?.code !== undefined) {
    if (!body.error.retryable) throw new Refusal(status, body.error)
    return { reason: body.error.message, seconds }
  }
  const isPassing = status >= 500 || status === 429 || status === 408
  if (isPassing) return { reason: `An answer with status ${status}.`, seconds }
  throw new CommandError(2, `The server at ${url} is not Usher (status ${status}).`)
}

function parseJson(text: string): { error?: ErrorBody } | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}
