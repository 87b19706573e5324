// Sends RPCs to PostgREST on undici's dispatcher. Node's own `fetch` makes web streams of every body, which costs more than twice as much.

import { gunzip } from 'node:zlib'
import { type Dispatcher, Pool } from 'undici'

// PostgREST closes a connection that is idle for a minute. Ours end well before: a request sent at that moment would be lost.
const keepAliveMs = 20_000

export type RpcAnswer = { status: number; text: string }

/**
 * Follows no redirect.
 * @param path below the base URL.
 * @param timeoutMs for all of it, also while it waits for a connection.
 * @throws a TypeError, whose cause says why, or a TimeoutError.
 */
export type Send = (
  path: string,
  headers: Record<string, string>,
  body: string,
  timeoutMs: number,
) => Promise<RpcAnswer>

/** @param url base URL of PostgREST. */
export function createSend(url: string): Send {
  const { origin, pathname } = new URL(url)
  const base = pathname.replace(/\/$/, '')
  const pool = new Pool(origin, { pipelining: 1, keepAliveTimeout: keepAliveMs, keepAliveMaxTimeout: keepAliveMs })

  return (path, headers, body, timeoutMs) =>
    new Promise((resolve, reject) => {
      const request: Dispatcher.DispatchOptions = {
        path: base + path,
        method: 'POST',
        // PostgREST compresses nothing, but the proxies of a hosted project do.
        headers: { 'accept-encoding': 'gzip', ...headers },
        body,
        // `timeoutMs` ends the call; until then it may wait, as for a lock in the database.
        headersTimeout: 0,
        bodyTimeout: 0,
      }
      pool.dispatch(request, new Exchange(resolve, reject, timeoutMs))
    })
}

export const noAnswerInTime = () => new DOMException('No answer in time.', 'TimeoutError')

type Controller = Dispatcher.DispatchController

/** One request and its answer, as undici reports it. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #resolve: (answer: RpcAnswer) => void
  readonly #reject: (error: unknown) => void
  readonly #timer: NodeJS.Timeout
  readonly #chunks: Buffer[] = []
  #controller: Controller | undefined
  #late: DOMException | undefined
  #status = 0
  #isCompressed = false

  constructor(resolve: (answer: RpcAnswer) => void, reject: (error: unknown) => void, timeoutMs: number) {
    this.#resolve = resolve
    this.#reject = reject
    this.#timer = setTimeout(giveUp, timeoutMs, this)
  }

  /** Does not wait for undici, which tells of an abort only once the request has a connection. */
  giveUp(): void {
    this.#late = noAnswerInTime()
    this.#reject(this.#late)
    this.#controller?.abort(this.#late)
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller
    if (this.#late !== undefined) controller.abort(this.#late)
  }

  onResponseStart(
    _controller: Controller,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.#status = status
    this.#isCompressed = headers['content-encoding'] === 'gzip'
  }

  onResponseData(_controller: Controller, chunk: Buffer): void {
    this.#chunks.push(chunk)
  }

  onResponseEnd(): void {
    clearTimeout(this.#timer)
    const [only] = this.#chunks
    const bytes = this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks)
    const answer = (text: Buffer) => this.#resolve({ status: this.#status, text: text.toString() })
    if (this.#isCompressed) gunzip(bytes, (error, text) => (error === null ? answer(text) : this.#reject(error)))
    else answer(bytes)
  }

  onResponseError(_controller: Controller, error: Error): void {
    clearTimeout(this.#timer)
    this.#reject(new TypeError('fetch failed', { cause: error }))
  }
}

const giveUp = (exchange: Exchange): void => exchange.giveUp()
