// Waits at start-up until the database answers as Usher needs it to. A wrong setting aborts the start; an unreachable database is
// retried without limit.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Probe } from '../gateway/database-probe.ts'
import { interrupted, StartError } from '../process/start-error.ts'

const timeoutMs = 10_000
const firstPauseSeconds = 1
const longestPauseSeconds = 30

/** @throws StartError, naming the setting that is wrong, or when the signal aborts. */
export async function reachDatabase(
  probe: Probe,
  { name, say, signal }: { name: string; say: (message: string) => void; signal: AbortSignal },
): Promise<void> {
  for (let pause = firstPauseSeconds; ; pause = Math.min(pause * 2, longestPauseSeconds)) {
    const result = await probe(AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]))
    if (result.kind === 'answered') return
    if (result.kind === 'misconfigured') throw new StartError(`${result.message} ${result.fix}`)
    if (!signal.aborted) say(`${name} cannot be reached (${result.reason}). Trying again in ${pause} s …`)
    await sleep(pause * 1000, undefined, { signal }).catch(() => {})
    if (signal.aborted) throw interrupted()
  }
}
