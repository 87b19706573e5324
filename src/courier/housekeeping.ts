// What the courier does on a schedule. Every ten seconds: payment deadlines, and those of offers of the waiting list. Every ten minutes:
// purges rows that are older than the retention time, and e-mails kept as files of people who were erased. A backlog is worked off in
// batches with a pause in between, so that no other query has to wait for it.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { CourierRpc } from '../gateway/courier-rpc.ts'
import { forgetErased } from './mail/files.ts'

const purgeIntervalMs = 600_000
const deadlineIntervalMs = 10_000
const pauseMs = 200
// Each batch passes the rows that the ones before it deleted, until they are vacuumed.
const batchSize = 5_000

/** Days to keep what is settled, and the audit trail. */
type Retention = { retentionDays: number; auditRetentionDays: number }

/** Purges one batch. @returns how many rows; if at least `batchSize`, there may be more. */
export async function purgeOnce(rpc: CourierRpc, { retentionDays, auditRetentionDays }: Retention): Promise<number> {
  const days = { retention_days: retentionDays, audit_retention_days: auditRetentionDays }
  return Number(await rpc('purge', { ...days, limit: batchSize }))
}

type Deadlines = { expired: number; reminded: number; has_more: boolean }

/** Reminds of payment deadlines and cancels orders after them: one batch, whose size the database decides. */
export const enforceDeadlinesOnce = async (rpc: CourierRpc) => (await rpc('enforce_payment_deadlines', {})) as Deadlines

type Offers = { expired: number; has_more: boolean }

/** Expires offers of the waiting list after their deadline: one batch, whose size the database decides. */
export const expireOffersOnce = async (rpc: CourierRpc) => (await rpc('expire_waiting_list_offers', {})) as Offers

type Options = Retention & { mail: { directory: string } | object }

export function startHousekeeping(rpc: CourierRpc, options: Options, log: Logger): { stop(): void } {
  const purge = async () => {
    const purged = await purgeOnce(rpc, options)
    if (purged > 0) log.info({ purged }, 'housekeeping')
    if ('directory' in options.mail) {
      await forgetErased(options.mail.directory, async (ids) => (await rpc('erased_emails', { ids })) as string[])
    }
    return purged >= batchSize
  }
  const enforceDeadlines = async () => {
    const { has_more: hasMore, ...done } = await enforceDeadlinesOnce(rpc)
    if (done.expired + done.reminded > 0) log.info(done, 'payment deadlines')
    return hasMore
  }
  const expireOffers = async () => {
    const { expired, has_more: hasMore } = await expireOffersOnce(rpc)
    if (expired > 0) log.info({ expired }, 'waiting list')
    return hasMore
  }
  const repeated = [
    repeat(purgeIntervalMs, log, purge),
    repeat(deadlineIntervalMs, log, enforceDeadlines),
    repeat(deadlineIntervalMs, log, expireOffers),
  ]
  return { stop: () => repeated.forEach(({ stop }) => void stop()) }
}

/** Runs `work` soon and then at intervals, or after a pause while it says that there is more. */
export function repeat(intervalMs: number, log: Logger, work: () => Promise<boolean>): { stop(): void } {
  const stopping = new AbortController()
  const { signal } = stopping
  const run = async () => {
    for (let delayMs = pauseMs; ; ) {
      await sleep(delayMs, undefined, { signal, ref: false })
      const hasMore = await work().catch((error) => log.error({ err: error }, 'housekeeping'))
      delayMs = hasMore === true ? pauseMs : intervalMs
    }
  }
  run().catch(() => {})
  return { stop: () => stopping.abort() }
}
