// Tracks whether the database answers. It is probed only while a call is slow or has just failed, or on /ready, at most once a
// second. While a probe is unanswered, calls fail at once: a paused database must not collect writes and carry them out later,
// when nobody waits for them.

import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError, unavailable } from './api-error.ts'
import type { Probe } from './database-probe.ts'

export type DatabaseHealth = {
  /** Tracks a call until it settles. @throws ApiError 503 once a probe has been unanswered for five seconds, until one is answered. */
  during<T>(call: () => Promise<T>): Promise<T>
  /** Whether the database answers, or did within the last second; concurrent callers share one probe. */
  isReady(): Promise<boolean>
}

// A longer call is a reason to probe.
const slowCallMs = 500
const probeIntervalMs = 1_000
const unansweredMs = 5_000
// A late answer still counts, so a probe is aborted much later: its connection may be dead.
const probeTimeoutMs = 15_000
// Probing goes on for this long after a failure.
const afterFailureMs = 5_000
const readyTimeoutMs = 2_000

export function createDatabaseHealth(probe: Probe): DatabaseHealth {
  /** Start of each pending call, oldest first. */
  const waiting = new Set<{ since: number }>()
  let lastFailure = Number.NEGATIVE_INFINITY
  let away = false
  let last = { at: Number.NEGATIVE_INFINITY, ok: false }
  let inFlight: Promise<boolean> | null = null
  let timer: NodeJS.Timeout | undefined

  async function runProbe(): Promise<boolean> {
    const unanswered = setTimeout(() => {
      away = true
    }, unansweredMs)
    const { kind } = await probe(AbortSignal.timeout(probeTimeoutMs))
    clearTimeout(unanswered)
    last = { at: performance.now(), ok: kind === 'answered' }
    if (last.ok) away = false
    return last.ok
  }

  function probeOnce(): Promise<boolean> {
    if (performance.now() - last.at < probeIntervalMs) return Promise.resolve(last.ok)
    inFlight ??= runProbe().finally(() => {
      inFlight = null
      watch()
    })
    return inFlight
  }

  function hasReason(): boolean {
    const now = performance.now()
    const [oldest] = waiting
    return away || now - lastFailure < afterFailureMs || (oldest !== undefined && now - oldest.since >= slowCallMs)
  }

  /** Checks again soon, while there is a pending call or a reason to probe. */
  function watch(): void {
    if (timer !== undefined || (waiting.size === 0 && !hasReason())) return
    timer = setTimeout(() => {
      timer = undefined
      if (hasReason()) void probeOnce()
      watch()
    }, slowCallMs).unref()
  }

  return {
    async during(call) {
      if (away) throw unavailable(new Error('The database does not answer probes.'))
      const entry = { since: performance.now() }
      waiting.add(entry)
      watch()
      try {
        return await call()
      } catch (error) {
        if (error instanceof ApiError && error.status >= 500) lastFailure = performance.now()
        throw error
      } finally {
        waiting.delete(entry)
      }
    },

    async isReady() {
      if (away) return false
      const timeout = sleep(readyTimeoutMs, false, { ref: false })
      return Promise.race([probeOnce(), timeout])
    },
  }
}
