// Purges what is kept for a while only. In comes the way to the database, out goes something that can be stopped. Every ten
// minutes; where there is much, a thousand rows of each kind at a time with a pause between, so that nobody waits for it.

import type { Logger } from 'pino'
import type { Outbox } from './outbox.ts'

const everyMilliseconds = 600_000
const pauseMilliseconds = 200
const rowsAtOnce = 1_000

export function startHousekeeping(outbox: Outbox, retentionDays: number, log: Logger): { stop(): void } {
  let timer: NodeJS.Timeout

  const purge = async () => {
    let next = everyMilliseconds
    try {
      const purged = await outbox('purge', { retention_days: retentionDays, limit: rowsAtOnce })
      if (Number(purged) > 0) log.info({ purged }, 'housekeeping')
      if (Number(purged) >= rowsAtOnce) next = pauseMilliseconds
    } catch (error) {
      log.error({ err: error }, 'housekeeping')
    }
    plan(next)
  }
  let stopped = false
  const plan = (milliseconds: number) => {
    if (stopped) return
    timer = setTimeout(() => void purge(), milliseconds)
    timer.unref()
  }

  plan(pauseMilliseconds)
  return {
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}
