// Purges what is kept for a while only. In comes the way to the database, out goes something that can be stopped. Every ten
// minutes; where there is much, a thousand rows of each kind at a time with a pause between, so that nobody waits for it.

import type { Logger } from 'pino'
import type { CourierRpc } from './courier-rpc.ts'

const everyMilliseconds = 600_000
const pauseMilliseconds = 200
const rowsAtOnce = 1_000

/** @returns how many rows went; there may be more from `rowsAtOnce` on. */
export async function purgeOnce(rpc: CourierRpc, retentionDays: number): Promise<number> {
  return Number(await rpc('purge', { retention_days: retentionDays, limit: rowsAtOnce }))
}

export function startHousekeeping(rpc: CourierRpc, retentionDays: number, log: Logger): { stop(): void } {
  let timer: NodeJS.Timeout
  let stopped = false

  const plan = (milliseconds: number) => {
    if (stopped) return
    timer = setTimeout(() => void purge(), milliseconds)
    timer.unref()
  }
  const purge = async () => {
    let purged = 0
    try {
      purged = await purgeOnce(rpc, retentionDays)
      if (purged > 0) log.info({ purged }, 'housekeeping')
    } catch (error) {
      log.error({ err: error }, 'housekeeping')
    }
    plan(purged >= rowsAtOnce ? pauseMilliseconds : everyMilliseconds)
  }

  plan(pauseMilliseconds)
  return {
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}
