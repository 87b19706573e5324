// Writes of one operation by one key that arrive while two of them are in flight share the next RPC
// (supabase/schemas/00-ground/batches.sql); a write without a batch is sent by itself. Must know nothing of what the operations do.

import type { Operation } from '../operations/operation.ts'
import { ApiError, unavailable } from './api-error.ts'
import type { DataApi } from './data-api.ts'
import { createLines, type Rules, type SharedAnswer, settleEach, type Waiting } from './lines.ts'
import type { Places } from './places.ts'

// Few enough that a batch holds its locks for some 40 ms.
const maximumCalls = 50

export type SendCall = (
  operation: Operation,
  args: Record<string, unknown>,
  token: string,
  organisation: string,
  repeatable: boolean,
) => Promise<unknown>

export function createBatches(dataApi: DataApi, places: Places): SendCall {
  const wait = createLines<Waiting>(places)

  return async ({ name, batch }, args, token, organisation, repeatable) => {
    if (batch === undefined) {
      const leave = await places.enter(organisation)
      return dataApi.rpc(name, args, token, repeatable).finally(leave)
    }

    const rules: Rules<Waiting> = {
      maximumCalls,

      send: ({ args, resolve, reject }) => dataApi.rpc(name, args, token, repeatable).then(resolve, reject),

      async sendTogether(calls) {
        try {
          const batched = { calls: calls.map(({ args }) => args) }
          const answers = (await dataApi.rpc(batch, batched, token, repeatable)) as SharedAnswer[]
          return settleEach(calls, answers, repeatable)
        } catch (error) {
          // What ran out of its time is the statement of all of them: each alone may well be in time.
          const isShared = error instanceof ApiError && error.code === 'out_of_time'
          for (const { reject } of calls) reject(isShared ? unavailable(error) : error)
          return []
        }
      },
    }
    // One token is one key, role and interface. Repeatable calls stay among themselves: a lost answer has another error for them.
    return new Promise((resolve, reject) => {
      const bytes = JSON.stringify(args).length
      wait(`${name} ${repeatable} ${token}`, organisation, rules, {
        args,
        bytes,
        since: performance.now(),
        resolve,
        reject,
      })
    })
  }
}
