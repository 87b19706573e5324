// Signals that stop a server. The first asks for a clean stop; repeats are ignored, because npm forwards a Ctrl-C that the terminal
// has already sent. One that comes more than five seconds later ends the process at once.

import { interrupted } from './start-error.ts'

/** Ctrl-C, a supervisor, and a terminal that is closed. */
export const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

// npm, shells and supervisors repeat a signal sooner; a person who waited this long means it.
const ignoreRepeatsMs = 5_000
// A longer stop is forced, so that everything has ended within ten seconds.
const forceAfterMs = 8_000

/**
 * Called once, before anything is started. The returned signal aborts at the first stop signal, and is never reset.
 * @param force ends the process at once; its children are stopped by a handler of its `exit` event.
 */
export function stopSignal(force: () => void): AbortSignal {
  const asked = new AbortController()
  let since: number | undefined
  for (const name of signals) {
    process.on(name, () => {
      if (since === undefined) {
        since = performance.now()
        setTimeout(force, forceAfterMs).unref()
        asked.abort()
      } else if (performance.now() - since > ignoreRepeatsMs) force()
    })
  }
  return asked.signal
}

/** Aborts a start at a stop signal, so that it can undo itself; after `release` these signals are for the caller alone. */
export function interruption(): { signal: AbortSignal; release: () => void } {
  const controller = new AbortController()
  const abort = () => controller.abort(interrupted())
  for (const name of signals) process.on(name, abort)
  return { signal: controller.signal, release: () => signals.forEach((name) => void process.off(name, abort)) }
}

/** Resolves when the signal aborts, or at once if it has. */
export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
}
