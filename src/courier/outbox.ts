// The courier's way to the database: in come the names and arguments of the functions that role may call, out goes what they
// return. Through the Data API like everything else, so that it runs wherever the API does.

import type { DataApi } from '../gateway/data-api.ts'
import type { Tokens } from '../gateway/tokens.ts'

/** @throws Refusal, when the database cannot be reached. */
export type Outbox = (fn: string, args: Record<string, unknown>) => Promise<unknown>

export function createOutbox(dataApi: DataApi, tokens: Tokens): Outbox {
  return async (fn, args) => dataApi.rpc(fn, args, await tokens.forCourier())
}
