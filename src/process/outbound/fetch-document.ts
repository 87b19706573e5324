// Fetches a small document from an address that a stranger gave. It must never follow a redirect, exceed its time or size, or connect to an
// address that allowed-addresses.ts refuses.

import { createRoutes, inTime } from './allowed-addresses.ts'
import type { FindAddresses } from './find-addresses.ts'

/** @throws when there is no answer in time, or it is too large. */
export type FetchDocument = (url: string) => Promise<Response>

const maxBytes = 64 * 1024

export function createDocumentFetcher({
  allowLoopback = false,
  timeoutMs = 5_000,
  findAddresses,
}: {
  allowLoopback?: boolean
  /** For all of it, from the DNS query to the last byte. */
  timeoutMs?: number
  findAddresses?: FindAddresses
} = {}): FetchDocument {
  const routes = createRoutes({ allowLoopback, timeoutMs, findAddresses })

  return async (url) => {
    const signal = AbortSignal.timeout(timeoutMs)
    const { statusCode, headers, body } = await inTime(
      signal,
      // Not kept open: nobody asks the same host again soon.
      routes.dispatcher.request({ ...routes.to(url), method: 'GET', headers: asked, signal, reset: true }),
    )
    if (statusCode !== 200) {
      body.on('error', () => {}).destroy()
      return new Response(null, { status: statusCode >= 300 ? statusCode : 502 })
    }
    const chunks: Buffer[] = []
    let bytes = 0
    // Leaving the loop closes the connection: the rest is not read.
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes > maxBytes) throw new Error(`The document is larger than ${maxBytes} bytes.`)
    }
    return new Response(Buffer.concat(chunks), { headers: kept(headers) })
  }
}

const asked = { Accept: 'application/json', 'Accept-Encoding': 'identity' }

/** How long it may be kept. */
const kept = (headers: Record<string, string | string[] | undefined>): [string, string][] =>
  ['cache-control', 'expires'].flatMap((name) => {
    const value = headers[name]
    return typeof value === 'string' ? [[name, value]] : []
  })
