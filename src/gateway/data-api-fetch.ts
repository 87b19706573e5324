// The `fetch` of the Data API client on Node, by undici's `request`: Node's own makes web streams of every body, which costs twice as much.

import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { Agent, request } from 'undici'

const decompress = promisify(gunzip)

// PostgREST closes a connection that is idle for a minute. Ours end well before: a request sent at that moment would be lost.
const keepAliveMs = 20_000
// The signal of a call ends it; until then it may wait, as for a lock in the database.
const waits = { headersTimeout: 0, bodyTimeout: 0 }
const dispatcher = new Agent({ keepAliveTimeout: keepAliveMs, keepAliveMaxTimeout: keepAliveMs, ...waits })

/** What the client needs of `fetch`: it posts text, and reads the status and the text of the answer. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** Follows no redirect. */
export const fetchByUndici: Fetch = async (url, { body, headers: given, signal = null }) => {
  const headers = new Headers(given)
  // PostgREST compresses nothing, but the proxies of a hosted project do.
  headers.set('accept-encoding', 'gzip')
  try {
    const answer = await request(url, { dispatcher, method: 'POST', headers, body: body as string, signal })
    const isCompressed = answer.headers['content-encoding'] === 'gzip'
    const text = isCompressed ? String(await decompress(await answer.body.bytes())) : await answer.body.text()
    const status = answer.statusCode
    const isSuccess = status >= 200 && status < 300
    return { ok: isSuccess, status, headers: new Headers(), text: async () => text } as Response
  } catch (cause) {
    throw signal?.aborted ? signal.reason : new TypeError('fetch failed', { cause })
  }
}
