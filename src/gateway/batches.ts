// Writes of one operation by one key that arrive while two of them are in flight share the next RPC
// (supabase/schemas/00-ground/batches.sql); a write without a batch is sent by itself. Must know nothing of what the operations do.

import type { Operation } from '../operations/operation.ts'
import { ApiError, unavailable } from './api-error.ts'
import type { DataApi } from './data-api.ts'
import { apiErrorOfDatabase, fieldsOf } from './database-error.ts'
import { createLines, type Rules, type Waiting } from './lines.ts'
import type { Places } from './places.ts'

// Few enough that a batch holds its locks for some 40 ms.
const maximumCalls = 50

/** What SQL answers for a call of a batch. Neither: it is to be sent on its own. */
type BatchAnswer = {
  outcome?: unknown
  error?: { code: string; message: string; details?: unknown; hint?: unknown }
}

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
          const answers = (await dataApi.rpc(batch, batched, token, repeatable)) as BatchAnswer[]
          return calls.filter((call, i) => {
            const { outcome, error } = answers[i] ?? {}
            if (outcome !== undefined) call.resolve(outcome)
            else if (error !== undefined) call.reject(apiErrorOfDatabase(error, 400, fieldsOf(call.args), repeatable))
            else return true
            return false
          })
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
