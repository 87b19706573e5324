// Restarts a server when it ends by itself, a limited number of times in a row. Once `stop` has resolved, no process of it is left.

import { setTimeout as sleep } from 'node:timers/promises'

type Server = { ended: Promise<string>; stop: () => Promise<unknown> }

export type Supervised = {
  /** Resolves with a sentence when it has ended and restarting it has failed. */
  failed: Promise<string>
  stop(): Promise<void>
}

export type SuperviseOptions<S extends Server> = {
  /** For messages: "Postgres". */
  name: string
  first: S
  /** Rejects if it cannot be started or the signal aborts; no process of it is left then. */
  restart: (signal: AbortSignal) => Promise<S>
  /** Called with a sentence for each unexpected end and each restart. */
  report: (message: string) => void
  /** The delay before each restart in a row; their number limits the restarts. */
  restartDelaysMs?: number[]
  /** A server that ran this long has recovered: the restarts are counted from zero again. */
  recoveredAfterMs?: number
}

export function supervise<S extends Server>({
  name,
  first,
  restart,
  report,
  restartDelaysMs = [0, 500, 1_000, 2_000, 4_000],
  recoveredAfterMs = 60_000,
}: SuperviseOptions<S>): Supervised {
  const stopping = new AbortController()
  const { signal } = stopping
  let current = first

  /** Resolves with a sentence when it gives up, with null when it is stopped. */
  async function watch(): Promise<string | null> {
    let startedAt = performance.now()
    let attempts = 0
    let how = await current.ended
    while (!signal.aborted) {
      if (performance.now() - startedAt >= recoveredAfterMs) attempts = 0
      const delay = restartDelaysMs[attempts]
      if (delay === undefined) return `${name} stopped unexpectedly (${how}) and could not be restarted.`
      attempts += 1
      report(`${name} stopped unexpectedly (${how}). Restarting it (attempt ${attempts}) …`)
      try {
        await sleep(delay, undefined, { signal })
        current = await restart(signal)
      } catch (error) {
        how = (error as Error).message
        // It has not run since.
        startedAt = Number.POSITIVE_INFINITY
        continue
      }
      // A restart that was finished before it heard of the stop: nobody else would end it.
      if (signal.aborted) await current.stop()
      else report(`${name} runs again.`)
      startedAt = performance.now()
      how = await current.ended
    }
    return null
  }

  const watched = watch()
  return {
    failed: new Promise((resolve) => void watched.then((sentence) => sentence !== null && resolve(sentence))),
    async stop() {
      stopping.abort()
      await current.stop()
      await watched
    },
  }
}
