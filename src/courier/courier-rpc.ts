// Calls the database functions of the role `courier`, through the Data API like everything else, so that the courier runs wherever
// the API does.

import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError } from '../gateway/api-error.ts'
import type { DataApi } from '../gateway/data-api.ts'
import type { Tokens } from '../gateway/tokens.ts'

/** @throws ApiError */
export type CourierRpc = (fn: string, args: Record<string, unknown>) => Promise<unknown>

export function createCourierRpc(dataApi: DataApi, tokens: Tokens): CourierRpc {
  return async (fn, args) => dataApi.rpc(fn, args, await tokens.forCourier())
}

const retryDelaysMs = [200, 1_000, 5_000]

/** Records the result of a delivery, and retries while the database is away: what is not settled is sent again. Settling twice does no
 * harm, because the first time removes the claim. */
export async function settle(rpc: CourierRpc, fn: string, args: Record<string, unknown>): Promise<unknown> {
  for (const delay of retryDelaysMs) {
    try {
      return await rpc(fn, args)
    } catch (error) {
      if (!(error instanceof ApiError && error.status >= 500)) throw error
      // A process that stops does not wait for this: the claim expires.
      await sleep(delay, undefined, { ref: false })
    }
  }
  return rpc(fn, args)
}
