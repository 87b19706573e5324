// Waits at the start until the database answers as it has to, so that "ready" is true. A setting that cannot work ends the start;
// a database that is away is tried again for as long as it takes.

import { setTimeout as sleep } from 'node:timers/promises'
import { StartError } from '../start-error.ts'
import type { Probe } from './database-probe.ts'

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
    if (result.kind === 'misconfigured') throw new StartError(result.message)
    if (!signal.aborted) say(`${name} cannot be reached (${result.reason}). Trying again in ${pause} s …`)
    await sleep(pause * 1000, undefined, { signal }).catch(() => {})
    if (signal.aborted) throw new StartError('Interrupted; everything begun was stopped again.')
  }
}
