// Calling as the courier, in a transaction that is rolled back: it claims and purges for every organisation, so nothing of it
// may last. In between, the transaction is Studio's.

import type { PoolClient } from 'pg'
import { studio } from '../support/database.ts'

/** What the first column of the first row holds: `select api.claim_webhooks($1)`. */
export type AsCourier = (text: string, values?: unknown[]) => Promise<unknown>

export async function rolledBack(work: (client: PoolClient, asCourier: AsCourier) => Promise<void>): Promise<void> {
  const client = await studio.connect()
  try {
    await client.query('begin')
    await work(client, async (text, values = []) => {
      await client.query('set local role courier')
      const { rows } = await client.query({ text, values, rowMode: 'array' })
      await client.query('reset role')
      return rows[0]?.[0]
    })
  } finally {
    await client.query('rollback')
    client.release()
  }
}

export function first<T>(items: T[]): T {
  if (items[0] === undefined) throw new Error('nothing was claimed')
  return items[0]
}
