// Reads by one key in one role, of whatever operations, that arrive while two of them are in flight share the next RPC
// (supabase/schemas/00-ground/read-calls.sql), and those of the same thing are one call of it. Nobody is answered from before their
// request arrived, so a write that was acknowledged is always seen. Must know nothing of what the operations do.

import { isList, type Operation } from '../operations/operation.ts'
import { ApiError } from './api-error.ts'
import type { DataApi } from './data-api.ts'
import { createLines, type Rules, type SharedAnswer, settleEach, type Waiting } from './lines.ts'
import type { Places } from './places.ts'

// Objects are read by key. A list may take long, and its page have a mebibyte.
const maximumObjects = 50
const maximumLists = 8
// No read waits longer for others that are in flight.
const heldMs = 50
// Of the same thing: a list that takes long is not asked for anew every 50 ms.
const maximumAlike = 2

type Read = Waiting & { id: string; name: string; answer: Promise<unknown>; isSent: boolean }

export type SendRead = (
  operation: Operation,
  args: Record<string, unknown>,
  token: string,
  organisation: string,
) => Promise<unknown>

/** The answer is shared: it must not be changed. */
export function createSharedReads(dataApi: DataApi, places: Places): SendRead {
  const wait = createLines<Read>(places)
  /** Those that are not sent yet. One token is one key, role and interface. */
  const waiting = new Map<string, Read>()
  const unanswered = new Map<string, number>()

  return (operation, args, token, organisation) => {
    const { name } = operation
    const json = JSON.stringify(args)
    const id = `${name} ${token} ${json}`
    const same = waiting.get(id)
    if (same !== undefined) return same.answer

    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const bytes = json.length
    const since = performance.now()
    const read: Read = { id, name, args, bytes, since, answer: promise, isSent: false, resolve, reject }
    waiting.set(id, read)
    const forgetIt = () => forget(read)
    promise.then(forgetIt, forgetIt)
    // Lists have a line and turns of their own, so that a heavy one never holds an object. Objects have those of writes.
    const kind = isList(operation) || operation.heavy ? 'lists' : 'objects'
    const owner = kind === 'lists' ? `lists ${organisation}` : organisation
    wait(`${kind} ${token}`, owner, rulesOf(kind, token), read)
    return promise
  }

  function begin(read: Read): void {
    if (read.isSent) return
    read.isSent = true
    waiting.delete(read.id)
    unanswered.set(read.id, (unanswered.get(read.id) ?? 0) + 1)
  }

  function forget({ id, isSent }: Read): void {
    const left = (unanswered.get(id) ?? 0) - 1
    if (!isSent) waiting.delete(id)
    else if (left > 0) unanswered.set(id, left)
    else unanswered.delete(id)
  }

  function rulesOf(kind: 'lists' | 'objects', token: string): Rules<Read> {
    return {
      maximumCalls: kind === 'lists' ? maximumLists : maximumObjects,
      heldMs,
      isFree: ({ id }) => (unanswered.get(id) ?? 0) < maximumAlike,

      send(read) {
        begin(read)
        return dataApi.rpc(read.name, read.args, token, true).then(read.resolve, read.reject)
      },

      async sendTogether(reads) {
        reads.forEach(begin)
        try {
          const calls = reads.map(({ name, args }) => ({ operation: name, args }))
          const answers = (await dataApi.rpc('read_calls', { calls }, token, true)) as SharedAnswer[]
          return settleEach(reads, answers, true)
        } catch (error) {
          // A key that is refused, or a database that is away, is so for each; the time of the statement was that of all of them.
          const isOfEach =
            error instanceof ApiError && [401, 403, 503].includes(error.status) && error.code !== 'out_of_time'
          if (!isOfEach) return reads
          for (const { reject } of reads) reject(error)
          return []
        }
      },
    }
  }
}
