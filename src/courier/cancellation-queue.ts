// The queue of large events that are to be cancelled. SQL cancels each in one transaction, which takes as long as it takes, and lets an event
// be claimed again after a pause while it is not (supabase/schemas/20-events/cancellations.sql): there is nothing to settle.

import type { Logger } from 'pino'
import type { CourierRpc } from '../gateway/courier-rpc.ts'
import type { Queue } from './courier.ts'

// A little longer than api.carry_out_cancellation has.
const timeoutMs = 630_000

export function cancellationQueue(rpc: CourierRpc, log: Logger): Queue<{ id: string }> {
  return {
    name: 'cancellations',
    concurrency: 2,
    maxPerRun: 2,
    claim: async (limit) => (await rpc('claim_cancellations', { limit })) as { id: string }[],
    async deliver({ id }) {
      const startedAt = performance.now()
      const isDone = await rpc('carry_out_cancellation', { event_id: id }, timeoutMs)
      if (isDone) log.info({ event_id: id, duration_ms: Math.round(performance.now() - startedAt) }, 'event cancelled')
    },
  }
}
