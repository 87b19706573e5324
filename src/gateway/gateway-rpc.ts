// Calls the database functions of the role `gateway`, which are Usher's own: sign-in and confirmations.

import type { DataApi } from './data-api.ts'
import type { Tokens } from './tokens.ts'

export type GatewayRpc = (fn: string, args: Record<string, unknown>) => Promise<unknown>

export const gatewayRpc =
  (dataApi: DataApi, tokens: Tokens): GatewayRpc =>
  async (fn, args) =>
    dataApi.rpc(fn, args, await tokens.forGateway())
