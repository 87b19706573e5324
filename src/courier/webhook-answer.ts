// What is kept of an endpoint's answer. In comes a response whose body was not read, out go an excerpt and how long to
// wait. It must never hold more of a body than the excerpt, nor trust what stands in it or in a header.

import { Buffer } from 'node:buffer'
import type { Dispatcher } from 'undici'

const EXCERPT_CHARACTERS = 1024
/** As many characters of four bytes each, and a byte order mark. */
const EXCERPT_BYTES = 4 * EXCERPT_CHARACTERS + 3
const LONGEST_WAIT_SECONDS = 24 * 60 * 60

/**
 * The first 1024 characters of the body as text that Postgres can hold. What follows is not read: the connection is closed.
 * A body that breaks off is as long as it got, for the status before it is an answer already.
 */
export async function excerptOf({ headers, body }: Dispatcher.ResponseData): Promise<string> {
  // Nothing but identity was asked for. Unpacking what was not would be work for whoever wants to burden us.
  if (!/^(identity)?$/i.test(String(headers['content-encoding'] ?? ''))) {
    body.on('error', () => {}).destroy()
    return '(compressed, and so not shown)'
  }
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk.subarray(0, EXCERPT_BYTES - bytes))
      bytes += chunk.length
      if (bytes >= EXCERPT_BYTES) break
    }
  } catch {}
  return harmless(Buffer.concat(chunks))
}

/** Postgres has no NUL in text; bytes that are no UTF-8 become the replacement character, too. */
function harmless(bytes: Uint8Array): string {
  const text = new TextDecoder().decode(bytes).replaceAll('\0', '\ufffd')
  return Array.from(text).slice(0, EXCERPT_CHARACTERS).join('')
}

/** Seconds from now until the time that a `Retry-After` names, at most a day (RFC 9110, section 10.2.3). Null: it names none. */
export function retryAfterSeconds(header: string | string[] | undefined, now = Date.now()): number | null {
  const text = [header].flat()[0]?.trim() ?? ''
  const seconds = /^\d+$/.test(text) ? Number(text) : Math.ceil((httpDate(text) - now) / 1000)
  return Number.isNaN(seconds) ? null : Math.min(Math.max(seconds, 0), LONGEST_WAIT_SECONDS)
}

/** Date.parse takes nearly anything for a date, '-5' for one. Those of HTTP begin with a weekday. */
function httpDate(text: string): number {
  if (!/^(mon|tue|wed|thu|fri|sat|sun)/i.test(text)) return Number.NaN
  // The oldest form, of asctime, names no zone: it is UTC all the same.
  return Date.parse(/ \d{4}$/.test(text) ? `${text} GMT` : text)
}
