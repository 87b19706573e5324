// The courier's way to the database: in come the names and arguments of the functions that role may call, out goes what they
// return. Through the Data API like everything else, so that it runs wherever the API does.

import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError } from '../gateway/api-error.ts'
import type { DataApi } from '../gateway/data-api.ts'
import type { Tokens } from '../gateway/tokens.ts'

/** @throws ApiError, when the database cannot be reached. */
export type CourierRpc = (fn: string, args: Record<string, unknown>) => Promise<unknown>

export function createCourierRpc(dataApi: DataApi, tokens: Tokens): CourierRpc {
  return async (fn, args) => dataApi.rpc(fn, args, await tokens.forCourier())
}

const pauses = [200, 1_000, 5_000]

/** What was sent must be said, or it is sent again. Saying it twice does no harm: the claim is gone with the first time. */
export async function settle(rpc: CourierRpc, fn: string, args: Record<string, unknown>): Promise<unknown> {
  for (const pause of pauses) {
    try {
      return await rpc(fn, args)
    } catch (error) {
      if (!(error instanceof ApiError && error.status >= 500)) throw error
      // Nobody who stops waits for it: the claim runs out.
      await sleep(pause, undefined, { ref: false })
    }
  }
  return rpc(fn, args)
}
