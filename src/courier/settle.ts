// Records the results of deliveries, several in one call, and again while the database is away.

import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import { ApiError } from '../gateway/api-error.ts'
import type { CourierRpc } from '../gateway/courier-rpc.ts'

const retryDelaysMs = [200, 1_000, 5_000]

/** Whether it may be the fault of one of several results: it is refused, or waits for a lock. */
const mayBeOfOne = (error: ApiError): boolean => error.status <= 500 || error.code === 'out_of_time'

/** Records the result of a delivery, or of several, and retries while the database is away: what is not settled is sent again. Settling
 * twice does no harm, because the first time removes the claim. */
export async function settle(rpc: CourierRpc, fn: string, args: Record<string, unknown>): Promise<unknown> {
  const isOfSeveral = Array.isArray(args.results) && args.results.length > 1
  for (const delay of retryDelaysMs) {
    try {
      return await rpc(fn, args)
    } catch (error) {
      if (!(error instanceof ApiError && error.status >= 500) || (isOfSeveral && mayBeOfOne(error))) throw error
      // A process that stops does not wait for this: the claim expires.
      await sleep(delay, undefined, { ref: false })
    }
  }
  return rpc(fn, args)
}

type Waiting<Result, Answer> = { result: Result; resolve(answer: Answer): void; reject(error: unknown): void }

// More than a courier has in flight.
const maxBatch = 100
// Each may hold one of the Data API's twenty connections.
const mostApart = 8

/**
 * Records results in batches without delaying any: those that come while a call is in flight go with the next.
 * @param record one call for a batch.
 * @param gatherMs waits this long for others, where nobody waits for the record.
 * @returns records one result, and resolves with the answer for its batch.
 */
export function batchResults<Result, Answer>(
  record: (results: Result[]) => Promise<Answer>,
  gatherMs = 0,
): (result: Result) => Promise<Answer> {
  const apart = pLimit(mostApart)
  let waiting: Waiting<Result, Answer>[] = []
  let isRecording = false

  async function recordBatch(batch: Waiting<Result, Answer>[]): Promise<void> {
    try {
      const answer = await record(batch.map(({ result }) => result))
      for (const { resolve } of batch) resolve(answer)
    } catch (error) {
      if (batch.length === 1 || !(error instanceof ApiError && mayBeOfOne(error))) {
        for (const { reject } of batch) reject(error)
        return
      }
      // One result does not stop the others, nor later batches.
      for (const one of batch) void apart(() => recordBatch([one]))
    }
  }

  async function recordAll(): Promise<void> {
    isRecording = true
    while (waiting.length > 0) {
      // Results of this turn of the event loop go together.
      await (gatherMs > 0 ? sleep(gatherMs) : nextTurn())
      const batch = waiting.slice(0, maxBatch)
      waiting = waiting.slice(maxBatch)
      await recordBatch(batch)
    }
    isRecording = false
  }

  return (result) =>
    new Promise((resolve, reject) => {
      waiting.push({ result, resolve, reject })
      if (!isRecording) void recordAll()
    })
}
