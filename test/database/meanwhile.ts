// Arranges a race step by step, so that it happens every time and not only on a busy machine.

import type pg from 'pg'
import { expect } from 'vitest'
import { during, studio } from '../support/database.ts'

type Step = (client: pg.PoolClient) => Promise<unknown>

/** Does `first` in a transaction, starts `work`, and commits once that waits for the transaction or is done; `last` comes before the commit. */
export async function meanwhile<T>(first: Step, work: () => Promise<T>, last: Step = async () => {}): Promise<T> {
  return during(async (client) => {
    const { pid } = (await client.query('select pg_backend_pid() as pid')).rows[0]
    await first(client)
    let isOver = false
    const done = work().finally(() => {
      isOver = true
    })
    // Seen below, after the commit.
    done.catch(() => {})
    const isWaitedFor = async () =>
      isOver ||
      (await studio.query('select from pg_stat_activity where $1 = any (pg_blocking_pids(pid))', [pid])).rowCount
    await expect.poll(isWaitedFor, { timeout: 60_000 }).toBeTruthy()
    await last(client)
    await client.query('commit')
    return done
  })
}
