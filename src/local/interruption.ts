// Aborts a start on Ctrl-C, SIGTERM or a closed terminal, with a StartError, so that the start can undo itself. No handler is left after
// `release`: the signals of a running server are handled by the caller.

import { interrupted } from '../process/start-error.ts'
import { signals } from '../process/stop-signals.ts'

export function interruption(): { signal: AbortSignal; release: () => void } {
  const controller = new AbortController()
  const abort = () => controller.abort(interrupted())
  for (const name of signals) process.on(name, abort)
  return {
    signal: controller.signal,
    release: () => {
      for (const name of signals) process.off(name, abort)
    },
  }
}
