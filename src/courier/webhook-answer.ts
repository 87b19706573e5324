// Reads what is kept of an endpoint's answer: an excerpt of the body, and how long to wait before the next attempt. It must never buffer
// more of the body than the excerpt, nor trust the body or a header.

import { Buffer } from 'node:buffer'
import type { Dispatcher } from 'undici'

const EXCERPT_CHARACTERS = 1024
/** That many characters of four bytes each, and a byte order mark. */
const EXCERPT_BYTES = 4 * EXCERPT_CHARACTERS + 3
const MAX_RETRY_AFTER_SECONDS = 24 * 60 * 60

/**
 * The first 1024 characters of the body, as text that Postgres can store. The rest is not read: the connection is closed.
 * Of a body that breaks off, the part that arrived: the status alone is an answer already.
 */
export async function excerptOf({ headers, body }: Dispatcher.ResponseData): Promise<string> {
  // Only identity was requested. Decompressing anything else would allow a decompression bomb.
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
  return storableText(Buffer.concat(chunks))
}

/** Postgres cannot store NUL in text. Bytes that are not UTF-8 become the replacement character as well. */
function storableText(bytes: Uint8Array): string {
  const text = new TextDecoder().decode(bytes).replaceAll('\0', '\ufffd')
  return Array.from(text).slice(0, EXCERPT_CHARACTERS).join('')
}

/** The delay that `Retry-After` asks for, at most a day (RFC 9110, section 10.2.3). Null: none that is valid. */
export function retryAfterSeconds(header: string | string[] | undefined, now = Date.now()): number | null {
  const text = [header].flat()[0]?.trim() ?? ''
  const seconds = /^\d+$/.test(text) ? Number(text) : Math.ceil((httpDate(text) - now) / 1000)
  return Number.isNaN(seconds) ? null : Math.min(Math.max(seconds, 0), MAX_RETRY_AFTER_SECONDS)
}

/** Date.parse accepts nearly anything as a date, even '-5'. HTTP dates begin with a weekday. */
function httpDate(text: string): number {
  if (!/^(mon|tue|wed|thu|fri|sat|sun)/i.test(text)) return Number.NaN
  // The asctime format has no zone, but means UTC.
  return Date.parse(/ \d{4}$/.test(text) ? `${text} GMT` : text)
}
