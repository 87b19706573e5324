// Whether the database answers. It is asked only while a call waits or has just failed, or somebody asks /ready, and at most once a
// second. While it leaves a probe unanswered, calls are refused at once: a paused database must not collect writes that it would
// do later, when nobody waits for them.

import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError, unavailable } from './api-error.ts'
import type { DataApi } from './data-api.ts'
import type { Probe } from './database-probe.ts'

export type DatabaseHealth = {
  /** False from five seconds after a probe that is not answered until one is. */
  isAvailable(): boolean
  /** Notes a call for as long as it waits. */
  during<T>(call: Promise<T>): Promise<T>
  /** Whether the database answers now, or did within the last second: all who ask share one probe. */
  isReady(): Promise<boolean>
}

// A call that takes longer gives reason to ask.
const slowMilliseconds = 500
const pauseMilliseconds = 1_000
const unansweredMilliseconds = 5_000
// A probe that was answered late is an answer, so it is given up late: its connection may be dead.
const givenUpMilliseconds = 15_000
// How long after a failure it is still asked.
const alertMilliseconds = 5_000
// Whoever asks for /ready does not wait longer.
const readyMilliseconds = 2_000

export function createDatabaseHealth(probe: Probe): DatabaseHealth {
  /** When each call that waits began; the first is the oldest. */
  const waiting = new Set<{ since: number }>()
  let lastFailure = Number.NEGATIVE_INFINITY
  let away = false
  let last = { at: Number.NEGATIVE_INFINITY, ok: false }
  let inFlight: Promise<boolean> | null = null
  let timer: NodeJS.Timeout | undefined

  async function ask(): Promise<boolean> {
    const unanswered = setTimeout(() => {
      away = true
    }, unansweredMilliseconds)
    const { kind } = await probe(AbortSignal.timeout(givenUpMilliseconds))
    clearTimeout(unanswered)
    last = { at: performance.now(), ok: kind === 'answered' }
    if (last.ok) away = false
    return last.ok
  }

  function probeOnce(): Promise<boolean> {
    if (performance.now() - last.at < pauseMilliseconds) return Promise.resolve(last.ok)
    inFlight ??= ask().finally(() => {
      inFlight = null
      watch()
    })
    return inFlight
  }

  function hasReason(): boolean {
    const now = performance.now()
    const [oldest] = waiting
    return (
      away || now - lastFailure < alertMilliseconds || (oldest !== undefined && now - oldest.since >= slowMilliseconds)
    )
  }

  /** Looks again soon, while there is anything to look at. */
  function watch(): void {
    if (timer !== undefined || (waiting.size === 0 && !hasReason())) return
    timer = setTimeout(() => {
      timer = undefined
      if (hasReason()) void probeOnce()
      watch()
    }, slowMilliseconds).unref()
  }

  return {
    isAvailable: () => !away,

    async during(call) {
      const entry = { since: performance.now() }
      waiting.add(entry)
      watch()
      try {
        return await call
      } catch (error) {
        if (error instanceof ApiError && error.status >= 500) lastFailure = performance.now()
        throw error
      } finally {
        waiting.delete(entry)
      }
    },

    async isReady() {
      if (away) return false
      const impatient = sleep(readyMilliseconds, false, { ref: false })
      return Promise.race([probeOnce(), impatient])
    },
  }
}

/** The same way to the database, closed while it does not answer. */
export function guardDataApi(dataApi: DataApi, health: DatabaseHealth): DataApi {
  return {
    ...dataApi,
    async rpc(...call) {
      if (!health.isAvailable()) throw unavailable(new Error('The database leaves probes unanswered.'))
      return health.during(dataApi.rpc(...call))
    },
  }
}
