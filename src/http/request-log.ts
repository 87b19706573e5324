// The log of requests that `list_requests` shows (supabase/schemas/98-requests). Lines gather in memory and are written every two seconds, so
// that no request waits for them; what is not written is lost with the process.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { GatewayRpc } from '../gateway/gateway-rpc.ts'
import type { Source } from '../gateway/tokens.ts'

/** A row of `private.requests`. */
export type RequestLine = {
  organisation_id: string
  api_key_id: string
  source: Source
  method: string
  route: string | null
  status: number
  code: string | null
  param: string | null
  duration_ms: number
  request_id: string
  idempotency_key: string | null
  created_at: string
}

export type RequestLog = {
  add(line: RequestLine): void
  /** Writes what is left. */
  stop(): Promise<void>
}

/** Most lines between two writes. */
export const maximumLines = 2_000
/**
 * Of one organisation, successes and refusals apart: neither a busy organisation nor its successes displace what others look for. That is 100
 * a second, all that a key may send on the standard plan.
 */
export const maximumShare = 200

// The stop of a service has ten seconds in all.
const lastWriteMs = 1_000

export function createRequestLog(rpc: GatewayRpc, log: Logger, intervalMs = 2_000): RequestLog {
  let lines: RequestLine[] = []
  let shares = new Map<string, number>()
  let dropped = 0
  let isFailing = false
  let writing: Promise<void> | undefined

  async function write(): Promise<void> {
    const batch = lines
    if (dropped > 0) log.warn({ dropped }, 'The log of requests is full: some are missing.')
    lines = []
    shares = new Map()
    dropped = 0
    try {
      await rpc('record_requests', { lines: batch })
      isFailing = false
    } catch (err) {
      // Once, until it can be written again.
      if (!isFailing) log.warn({ err }, 'The log of requests cannot be written: they are missing.')
      isFailing = true
    }
  }

  function flush(): Promise<void> | undefined {
    if (lines.length > 0) {
      writing ??= write().finally(() => {
        writing = undefined
      })
    }
    return writing
  }

  const timer = setInterval(flush, intervalMs).unref()

  return {
    add(line) {
      const share = `${line.organisation_id} ${line.code === null}`
      const count = shares.get(share) ?? 0
      if (count >= maximumShare || lines.length >= maximumLines) {
        dropped += 1
        return
      }
      shares.set(share, count + 1)
      lines.push(line)
    },
    async stop() {
      clearInterval(timer)
      await Promise.race([writing?.then(flush) ?? flush(), sleep(lastWriteMs, undefined, { ref: false })])
    },
  }
}
