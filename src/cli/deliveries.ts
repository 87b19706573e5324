// What delivers, wherever it runs: the queues with the loop that serves them, and housekeeping.

import type { Logger } from 'pino'
import { type Observe, startCourier } from '../courier/courier.ts'
import { startHousekeeping } from '../courier/housekeeping.ts'
import { openQueues, type QueueOptions } from '../courier/queues.ts'
import type { CourierRpc } from '../gateway/courier-rpc.ts'
import type { Config } from './config.ts'

// Deliveries in progress get this long to finish, like requests; a longer one is released for another courier.
const settleMs = 3_000

export type DeliveryOptions = QueueOptions & Pick<Config, 'retentionDays' | 'auditRetentionDays'>

export function startDeliveries(
  options: DeliveryOptions,
  rpc: CourierRpc,
  log: Logger,
  observe?: Observe,
): { stop(): Promise<void> } {
  const { queues, close } = openQueues(options, rpc, log, observe)
  const poll = async () => (await rpc('poll_queues', {})) as string[]
  const courier = startCourier(queues, poll, log)
  const housekeeping = startHousekeeping(rpc, options, log)
  return {
    async stop() {
      housekeeping.stop()
      await courier.stop(settleMs, close)
    },
  }
}
