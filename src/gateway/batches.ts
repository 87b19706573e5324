// Calls of one operation by one key that arrive while two of them are in flight wait, and share the next RPC
// (supabase/schemas/00-ground/batches.sql); any other call is sent at once and by itself. Must know nothing of what the operations do.

import type { Operation } from '../operations/operation.ts'
import { ApiError, unavailable } from './api-error.ts'
import type { DataApi } from './data-api.ts'
import { apiErrorOfDatabase, fieldsOf } from './database-error.ts'

// Two, so that Postgres works on one while the other is answered.
const maximumInFlight = 2
// Few enough that a batch holds its locks for some 40 ms.
const maximumCalls = 50
// Of JSON, well below what PostgREST and a proxy in front of it take.
const maximumBytes = 256 * 1024

/** What SQL answers for a call of a batch. Neither: it is to be sent on its own. */
type BatchAnswer = {
  outcome?: unknown
  error?: { code: string; message: string; details?: unknown; hint?: unknown }
}

type Waiting = {
  args: Record<string, unknown>
  bytes: number
  resolve(result: unknown): void
  reject(error: unknown): void
}

type Line = { inFlight: number; waiting: Waiting[] }

export type SendCall = (
  operation: Operation,
  args: Record<string, unknown>,
  token: string,
  repeatable: boolean,
) => Promise<unknown>

export function createBatches(dataApi: DataApi): SendCall {
  // One token is one key, role and interface. Repeatable calls stay among themselves: a lost answer has another error for them.
  const lines = new Map<string, Line>()

  return (operation, args, token, repeatable) => {
    const { name, batch } = operation
    const alone = () => dataApi.rpc(name, args, token, repeatable)
    if (batch === undefined) return alone()

    const id = `${name} ${repeatable} ${token}`
    const line = lines.get(id) ?? { inFlight: 0, waiting: [] }
    lines.set(id, line)
    if (line.inFlight < maximumInFlight) return run(alone)
    return new Promise((resolve, reject) => {
      line.waiting.push({ args, bytes: JSON.stringify(args).length, resolve, reject })
    })

    async function run<T>(work: () => Promise<T>): Promise<T> {
      line.inFlight += 1
      try {
        return await work()
      } finally {
        line.inFlight -= 1
        const next = takeBatch(line)
        if (next.length > 0) void run(() => send(next))
        else if (line.inFlight === 0) lines.delete(id)
      }
    }

    /** Never rejects: each call has an outcome or an error of its own. */
    async function send(calls: Waiting[]): Promise<void> {
      const settle = ({ args, resolve, reject }: Waiting) =>
        dataApi.rpc(name, args, token, repeatable).then(resolve, reject)
      const [first] = calls
      if (calls.length === 1 && first !== undefined) return settle(first)
      try {
        const answers = (await dataApi.rpc(
          batch as string,
          { calls: calls.map(({ args }) => args) },
          token,
          repeatable,
        )) as BatchAnswer[]
        const unanswered = calls.filter((call, i) => {
          const { outcome, error } = answers[i] ?? {}
          if (outcome !== undefined) call.resolve(outcome)
          else if (error !== undefined) call.reject(apiErrorOfDatabase(error, 400, fieldsOf(call.args), repeatable))
          else return true
          return false
        })
        await Promise.all(unanswered.map(settle))
      } catch (error) {
        // What ran out of its time is the statement of all of them: each alone may well be in time.
        const isShared = error instanceof ApiError && error.code === 'out_of_time'
        for (const { reject } of calls) reject(isShared ? unavailable(error) : error)
      }
    }
  }
}

function takeBatch({ waiting }: Line): Waiting[] {
  let [count, bytes] = [0, 0]
  for (const call of waiting) {
    bytes += call.bytes
    if (count === maximumCalls || (count > 0 && bytes > maximumBytes)) break
    count += 1
  }
  return waiting.splice(0, count)
}
