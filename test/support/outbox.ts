// The outbox of an organisation as it stands in the database: at once, where the API shows a notification only when no
// older transaction is open in the whole cluster.

import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { notificationTypes } from '../../src/operations/webhook-endpoints.ts'
import { during, idOf, studio } from './database.ts'

export type Told = { type: string; data: Record<string, unknown> }

/** Answers, each time, what was told since it was last asked, by type and then by the object's id: within one transaction
 * the order is nobody's promise. */
export async function listenIn(organisationId: string): Promise<() => Promise<Told[]>> {
  let heard = (await logOf(organisationId)).length
  return async () => {
    const log = await logOf(organisationId)
    const news = log.slice(heard)
    heard = log.length
    return byTypeAndId(news)
  }
}

/** The whole log in its own order. */
export async function logOf(organisationId: string): Promise<Told[]> {
  const { rows } = await studio.query<Told>(
    'select type, data from public.notifications where organisation_id = $1 order by transaction_id, id',
    [organisationId],
  )
  return rows
}

export const byTypeAndId = (told: Told[]): Told[] => told.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
const keyOf = ({ type, data }: Told) => `${type} ${data.id}`

/** An endpoint added in Studio. It is subscribed to everything unless types are named. */
export async function addEndpoint(
  organisationId: string,
  types: string[] = everyType,
  status: 'enabled' | 'disabled' = 'enabled',
): Promise<string> {
  return idOf(
    `insert into public.webhook_endpoints (organisation_id, url, types, status)
     select $1, 'https://hooks.example.com/usher', $2::public.notification_type[], $3 returning id`,
    [organisationId, types, status],
  )
}

/** Makes the deliveries of what is queued, as a claim does. Another test may be making them. */
export async function enqueued(organisationId: string): Promise<void> {
  const queued = 'select from public.notifications where organisation_id = $1 and queued_for is not null'
  while (((await studio.query(queued, [organisationId])).rowCount ?? 0) > 0) {
    await studio.query('select private.enqueue_deliveries()')
  }
}

/** That an endpoint can subscribe to. */
export const everyType: string[] = notificationTypes.filter((type) => type !== 'webhook_endpoint.test')

const lockNotAvailable = '55P03'

/**
 * Keeps every other transaction from writing to the outbox, and to tables that are named, until the end of this one. It never waits for one table while it holds
 * another, so it ends in no deadlock with what locks them in another order.
 */
export async function lockOutbox(client: pg.ClientBase, ...also: string[]): Promise<void> {
  await client.query('savepoint unlocked')
  for (;;) {
    try {
      await client.query(
        `lock table public.webhook_endpoints, public.webhook_deliveries, public.emails ${also.map((table) => `, ${table}`).join('')} in exclusive mode nowait`,
      )
      return
    } catch (error) {
      if (!(error instanceof pg.DatabaseError && error.code === lockNotAvailable)) throw error
      await client.query('rollback to unlocked')
      await sleep(10)
    }
  }
}

/** Empties a table, and does not queue for its lock: whoever comes after would wait as well. */
export async function truncate(tables: string): Promise<void> {
  for (;;) {
    try {
      return await during(async (client) => {
        await client.query("set local lock_timeout = '20ms'")
        await client.query(`truncate ${tables}`)
      })
    } catch (error) {
      if (!(error instanceof pg.DatabaseError && error.code === lockNotAvailable)) throw error
      await sleep(20)
    }
  }
}
