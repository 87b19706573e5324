// Fetches a logo and checks that it is one. Whether it is tried again is decided by the caller. It must never throw, exceed its timeout,
// read more than the limit, trust a header, or connect to an address that allowed-addresses.ts refuses.

import { Buffer } from 'node:buffer'
import type { Dispatcher } from 'undici'
import packageJson from '../../package.json' with { type: 'json' }
import { AddressNotAllowed, createRoutes } from '../outbound/allowed-addresses.ts'
import type { FindAddresses } from '../outbound/find-addresses.ts'
import { inTime } from '../outbound/in-time.ts'
import type { OwnPorts } from '../outbound/own-ports.ts'
import { describeFailure, NoAnswerInTime } from './describe-failure.ts'
import { hasEnd, type ImageHeader, imageHeader } from './image-header.ts'

export type LogoResult =
  /** The content is in base64. */
  | ({ kind: 'fetched'; content: string } & ImageHeader)
  /** One sentence for the organiser. Permanent: it would fail again. */
  | { kind: 'failed'; error: string; permanent: boolean }
  /** The fetcher was closed meanwhile: no fault of the logo. */
  | { kind: 'abandoned' }

export type LogoFetcher = {
  /** Never rejects. */
  fetch(url: string): Promise<LogoResult>
  /** Closes all connections, including those in use. */
  close(): void
}

// The limits are constraints in supabase/schemas/10-organisations/logos.sql, too.
const maxBytes = 256 * 1024
const maxPixels = 2000
const maxRedirects = 3

/** What is at the address is no logo, whenever it is fetched. */
class NotALogo extends Error {}
class NoLogoNow extends Error {}

export function createLogoFetcher({
  allowLoopback,
  ownPorts,
  timeoutMs = 15_000,
  findAddresses,
}: {
  /** For development: allows localhost, 127.0.0.1 and [::1], also over http. */
  allowLoopback: boolean
  /** Ports that are refused on loopback even if it is allowed. */
  ownPorts?: OwnPorts | undefined
  /** For all of it, from the first DNS query to the last byte. */
  timeoutMs?: number
  /** Replaces the system's resolver. Its addresses are checked like any other. */
  findAddresses?: FindAddresses
}): LogoFetcher {
  const routes = createRoutes({ allowLoopback, ownPorts, timeoutMs, findAddresses })
  let closed = false

  /** Each address of a chain of redirects is checked like the first. */
  async function get(url: string, signal: AbortSignal, redirects = 0): Promise<Dispatcher.ResponseData> {
    const response = await inTime(
      signal,
      routes.dispatcher.request({ ...routes.to(url), method: 'GET', headers, signal }),
    )
    const { statusCode, headers: answered } = response
    if (statusCode === 200) return response
    discard(response)
    if (![301, 302, 303, 307, 308].includes(statusCode)) {
      const Failure = statusCode >= 500 || [408, 425, 429].includes(statusCode) ? NoLogoNow : NotALogo
      throw new Failure(`The address of the logo answered with the status ${statusCode}.`)
    }
    const next = URL.parse(String(answered.location ?? ''), url)
    if (next === null || redirects === maxRedirects) throw new NotALogo('The address of the logo redirects too often.')
    return get(next.href, signal, redirects + 1)
  }

  return {
    async fetch(url) {
      const deadline = new AbortController()
      const timer = setTimeout(() => deadline.abort(new NoAnswerInTime(timeoutMs)), timeoutMs)
      try {
        const content = await bodyOf(await get(url, deadline.signal))
        return { kind: 'fetched', content: content.toString('base64'), ...checked(content) }
      } catch (error) {
        if (closed) return { kind: 'abandoned' }
        if (error instanceof NotALogo) return { kind: 'failed', error: error.message, permanent: true }
        if (error instanceof NoLogoNow) return { kind: 'failed', error: error.message, permanent: false }
        const permanent = error instanceof AddressNotAllowed
        return { kind: 'failed', error: describeFailure(error, 'The logo could not be fetched.'), permanent }
      } finally {
        clearTimeout(timer)
      }
    },
    close() {
      closed = true
      routes.close()
    },
  }
}

const headers = {
  Accept: 'image/png, image/jpeg',
  'Accept-Encoding': 'identity',
  'User-Agent': `Usher/${packageJson.version}`,
}

function discard({ body }: Dispatcher.ResponseData): void {
  body.on('error', () => {}).destroy()
}

async function bodyOf(response: Dispatcher.ResponseData): Promise<Buffer> {
  // Only identity was requested. Decompressing anything else would allow a decompression bomb.
  if (!/^(identity)?$/i.test(String(response.headers['content-encoding'] ?? ''))) {
    discard(response)
    throw new NotALogo('The logo is compressed on its way, which was not asked for.')
  }
  const chunks: Buffer[] = []
  let bytes = 0
  // Leaving the loop closes the connection: the rest is not read.
  for await (const chunk of response.body as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > maxBytes) throw new NotALogo('The logo is larger than 256 KiB.')
  }
  return Buffer.concat(chunks)
}

function checked(content: Buffer): ImageHeader {
  const header = imageHeader(content)
  if (header === undefined) {
    const isPage = /^\s*<(!doctype|html)/i.test(content.toString('latin1', 0, 200))
    throw new NotALogo(
      isPage ? 'At the address of the logo is a web page, not a picture.' : 'The logo is neither a PNG nor a JPEG.',
    )
  }
  const { width, height } = header
  if (width === 0 || height === 0) throw new NotALogo('The logo has no pixels.')
  if (width > maxPixels || height > maxPixels) {
    throw new NotALogo(`The logo has ${width} by ${height} pixels; ${maxPixels} by ${maxPixels} are the most.`)
  }
  // It may be in the middle of being replaced.
  if (!hasEnd(content, header)) throw new NoLogoNow('The logo is not complete: its end is missing.')
  return header
}
