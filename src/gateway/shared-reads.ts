// Reads of the same thing by the same key that arrive while two of them are in flight share the next RPC. Nobody is answered from before
// their request arrived, so a write that was acknowledged is always seen. Must know nothing of what the operations do.

import type { Operation } from '../operations/operation.ts'
import type { DataApi } from './data-api.ts'

// Two, so that Postgres works on one while the other is answered.
const maximumInFlight = 2

type Line = { inFlight: number; next: { answer: Promise<unknown>; begin: () => void } | undefined }

export type SendRead = (operation: Operation, args: Record<string, unknown>, token: string) => Promise<unknown>

/** The answer is shared: it must not be changed. */
export function createSharedReads(dataApi: DataApi): SendRead {
  // One token is one key, role and interface.
  const lines = new Map<string, Line>()

  return ({ name }, args, token) => {
    const id = `${name} ${token} ${JSON.stringify(args)}`
    const line = lines.get(id) ?? { inFlight: 0, next: undefined }
    lines.set(id, line)
    if (line.inFlight < maximumInFlight) return send()
    line.next ??= later(send)
    return line.next.answer

    async function send(): Promise<unknown> {
      line.inFlight += 1
      try {
        return await dataApi.rpc(name, args, token, true)
      } finally {
        line.inFlight -= 1
        const { next } = line
        line.next = undefined
        if (next !== undefined) next.begin()
        else if (line.inFlight === 0) lines.delete(id)
      }
    }
  }
}

function later<T>(work: () => Promise<T>): { answer: Promise<T>; begin: () => void } {
  const { promise, resolve } = Promise.withResolvers<T>()
  return { answer: promise, begin: () => resolve(work()) }
}
