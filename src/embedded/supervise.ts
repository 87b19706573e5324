// Keeps a server running: takes one that runs and how to start it again, and does so when it ends by itself, a bounded number of
// times in a row. Whoever stops it gets a promise that nothing of it is left.

import { setTimeout as sleep } from 'node:timers/promises'

type Server = { ended: Promise<string>; stop: () => Promise<void> }

export type Supervised = {
  /** Resolves with a sentence when it ended, and starting it again did not help. */
  failed: Promise<string>
  stop(): Promise<void>
}

export type SuperviseOptions<S extends Server> = {
  /** For a sentence: "Postgres". */
  name: string
  first: S
  /** Rejects when it cannot be started, and when the signal aborts; then nothing of it is left. */
  restart: (signal: AbortSignal) => Promise<S>
  /** Told of each end and each start, in whole sentences. */
  report: (message: string) => void
  /** Waited before each attempt in a row; there are no more attempts than these. */
  pausesMilliseconds?: number[]
  /** One that ran as long as this had recovered: its end begins a new row. */
  steadyMilliseconds?: number
}

const usualPauses = [0, 500, 1_000, 2_000, 4_000]
const usualSteadyTime = 60_000

export function supervise<S extends Server>(options: SuperviseOptions<S>): Supervised {
  const { name, restart, report, pausesMilliseconds = usualPauses, steadyMilliseconds = usualSteadyTime } = options
  const stopping = new AbortController()
  let current = options.first

  /** Resolves with a sentence when it gives up, and with null when it is stopped. */
  async function watch(): Promise<string | null> {
    let startedAt = performance.now()
    let inARow = 0
    for (;;) {
      let how = await current.ended
      if (stopping.signal.aborted) return null
      if (performance.now() - startedAt >= steadyMilliseconds) inARow = 0
      for (;;) {
        const pause = pausesMilliseconds[inARow]
        if (pause === undefined) return `${name} ended unexpectedly (${how}), and starting it again did not help.`
        inARow += 1
        report(`${name} ended unexpectedly (${how}). Starting it again (attempt ${inARow}) …`)
        try {
          await sleep(pause, undefined, { signal: stopping.signal })
          current = await restart(stopping.signal)
          startedAt = performance.now()
          break
        } catch (error) {
          if (stopping.signal.aborted) return null
          how = (error as Error).message
        }
      }
      report(`${name} runs again.`)
    }
  }

  const watched = watch()
  return {
    failed: new Promise((resolve) => void watched.then((sentence) => sentence !== null && resolve(sentence))),
    async stop() {
      stopping.abort()
      await current.stop()
      await watched
      // One may have been on its way up meanwhile.
      await current.stop()
    },
  }
}
