// Calls the database functions of the role `courier`, through the Data API like everything else, so that the courier runs wherever
// the API does.

import type { DataApi } from './data-api.ts'
import type { Tokens } from './tokens.ts'

/**
 * @param timeoutMs of a function that has a time-out of its own.
 * @throws ApiError
 */
export type CourierRpc = (fn: string, args: Record<string, unknown>, timeoutMs?: number) => Promise<unknown>

export const createCourierRpc =
  (dataApi: DataApi, tokens: Pick<Tokens, 'forCourier'>): CourierRpc =>
  async (fn, args, timeoutMs) =>
    dataApi.rpc(fn, args, await tokens.forCourier(), { timeoutMs })
