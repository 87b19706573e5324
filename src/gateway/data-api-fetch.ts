// The `fetch` under the Data API client, on undici's dispatcher. Node's own makes web streams of every body, which costs more than
// twice as much. Supports what postgrest-js uses of a response, and nothing else.

import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { type Dispatcher, Pool } from 'undici'

// PostgREST closes a connection that is idle for a minute. Ours end well before: a request sent at that moment would be lost.
const keepAliveMs = 20_000

export type Fetch = typeof globalThis.fetch

/**
 * @param url whose origin all requests go to.
 * @returns a function that rejects with a TypeError, whose cause says why, or with the reason of the signal, also while it waits for
 * a connection. It follows no redirect.
 */
export function createDataApiFetch(url: string): Fetch {
  const { origin } = new URL(url)
  const pool = new Pool(origin, { pipelining: 1, keepAliveTimeout: keepAliveMs, keepAliveMaxTimeout: keepAliveMs })

  const send = (input: string, { method = 'GET', headers, body, signal }: RequestInit = {}) =>
    new Promise<Answer>((resolve, reject) => {
      const exchange = new Exchange(resolve, reject, signal)
      if (signal?.aborted) return exchange.abort()
      signal?.addEventListener('abort', exchange.abort)
      pool.dispatch(
        {
          path: input.slice(origin.length),
          method: method as Dispatcher.HttpMethod,
          headers: listOf(headers as Headers),
          body: body as string,
          // The signal ends the call; until then it may wait, as for a lock in the database.
          headersTimeout: 0,
          bodyTimeout: 0,
        },
        exchange,
      )
    })
  return send as unknown as Fetch
}

/** Names and values in turn. PostgREST compresses nothing, but the proxies of a hosted project do. */
function listOf(headers: Headers): string[] {
  const list = ['accept-encoding', 'gzip']
  for (const [name, value] of headers) list.push(name, value)
  return list
}

type Answer = Pick<Response, 'ok' | 'status' | 'statusText' | 'text'> & { headers: Pick<Headers, 'get'> }
type Controller = Dispatcher.DispatchController

/** One request and its answer, as undici reports it. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #resolve: (answer: Answer) => void
  readonly #reject: (error: unknown) => void
  readonly #signal: AbortSignal | null | undefined
  readonly #chunks: Buffer[] = []
  #controller: Controller | undefined
  #status = 0
  #statusText = ''
  #headers: Record<string, string | string[] | undefined> = {}

  constructor(resolve: (answer: Answer) => void, reject: (error: unknown) => void, signal?: AbortSignal | null) {
    this.#resolve = resolve
    this.#reject = reject
    this.#signal = signal
  }

  /** Does not wait for undici, which tells of an abort only once the request has a connection. */
  readonly abort = (): void => {
    const reason = this.#signal?.reason
    this.#reject(reason)
    this.#controller?.abort(reason)
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller
    if (this.#signal?.aborted) controller.abort(this.#signal.reason)
  }

  onResponseStart(
    _controller: Controller,
    status: number,
    headers: Record<string, string | string[] | undefined>,
    statusText = '',
  ): void {
    this.#status = status
    this.#statusText = statusText
    this.#headers = headers
  }

  onResponseData(_controller: Controller, chunk: Buffer): void {
    this.#chunks.push(chunk)
  }

  onResponseEnd(): void {
    this.#signal?.removeEventListener('abort', this.abort)
    const [only] = this.#chunks
    const bytes = this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks)
    const status = this.#status
    this.#resolve({
      ok: status >= 200 && status < 300,
      status,
      statusText: this.#statusText,
      headers: { get: (name) => String(this.#headers[name.toLowerCase()] ?? '') || null },
      text: () => textOf(bytes, this.#headers['content-encoding']),
    })
  }

  onResponseError(_controller: Controller, error: Error): void {
    this.#signal?.removeEventListener('abort', this.abort)
    this.#reject(new TypeError('fetch failed', { cause: error }))
  }
}

const decompress = promisify(gunzip)

async function textOf(bytes: Buffer, encoding: unknown): Promise<string> {
  return (encoding === 'gzip' ? await decompress(bytes) : bytes).toString()
}
