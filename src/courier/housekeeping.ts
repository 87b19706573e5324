// Purges rows that are older than the retention time, every ten minutes, and e-mails kept as files of people who were erased. A backlog is purged in batches of a thousand rows of each
// kind with a pause in between, so that no other query has to wait for it.

import type { Logger } from 'pino'
import type { CourierRpc } from './courier-rpc.ts'
import { forgetErased } from './mail/files.ts'

const intervalMs = 600_000
const pauseMs = 200
const batchSize = 1_000

/** Days to keep what is settled, and the audit trail. */
type Retention = { retentionDays: number; auditRetentionDays: number }

/** Purges one batch. @returns how many rows; if at least `batchSize`, there may be more. */
export async function purgeOnce(rpc: CourierRpc, { retentionDays, auditRetentionDays }: Retention): Promise<number> {
  const days = { retention_days: retentionDays, audit_retention_days: auditRetentionDays }
  return Number(await rpc('purge', { ...days, limit: batchSize }))
}

type Options = Retention & { mail: { directory: string } | object }

export function startHousekeeping(rpc: CourierRpc, options: Options, log: Logger): { stop(): void } {
  let timer: NodeJS.Timeout
  let stopped = false

  const schedule = (delayMs: number) => {
    if (stopped) return
    timer = setTimeout(() => void purge(), delayMs)
    timer.unref()
  }
  const purge = async () => {
    let purged = 0
    try {
      purged = await purgeOnce(rpc, options)
      if (purged > 0) log.info({ purged }, 'housekeeping')
      if ('directory' in options.mail) {
        await forgetErased(
          options.mail.directory,
          async (ids) => (await rpc('erased_ticket_emails', { ids })) as string[],
        )
      }
    } catch (error) {
      log.error({ err: error }, 'housekeeping')
    }
    schedule(purged >= batchSize ? pauseMs : intervalMs)
  }

  schedule(pauseMs)
  return {
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}
