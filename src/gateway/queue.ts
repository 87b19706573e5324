// Where calls wait while the database is busy. Those of one token (one key, role and interface) that wait go together as one RPC, each
// answered as if alone: a batch of writes (supabase/schemas/00-ground/batches.sql), or reads of one snapshot (read-calls.sql) that is
// taken after all of them arrived. Owners have their turns in rotation. Must know nothing of what the operations do.

import { isList, type Operation } from '../operations/operation.ts'
import { ApiError, unavailable } from './api-error.ts'
import type { Args, DataApi } from './data-api.ts'
import { apiErrorOfDatabase, type DatabaseError, fieldsOf } from './database-error.ts'

// An RPC that takes longer waits rather than works, as for a lock: its place goes to another one.
const busyMs = 100
// Unanswered RPCs, busy or not, of one owner while another one waits; and of all while one has more. The Data API has twenty connections.
const shareOfOwner = 6
const mostUnanswered = 14
// Of calls that may share an RPC. Two, so that Postgres works on one while the other is answered.
const mostInFlight = 2
// Longer than a statement may take, so that whatever held a call up has ended.
const patienceMs = 10_000

// Few enough that a batch of writes holds its locks for some 40 ms. A list may take long, and its page have a mebibyte.
const mostCalls = 50
const mostLists = 8
// Of JSON, well below what PostgREST and a proxy in front of it take.
const maximumBytes = 256 * 1024

/** The function of an operation, or one that calls it (see `RpcOptions`). */
export type Rpc = { fn: string; args: Args; token: string; repeatable: boolean; about?: { name: string; args: Args } }

type Waiting = PromiseWithResolvers<unknown> & { rpc: Rpc; bytes: number; timer: NodeJS.Timeout }

/** Calls that may share an RPC: so many of them at most, as calls of the function `together`. */
type Line = {
  id: unknown
  owner: Owner
  most: number
  together: string | undefined
  waiting: Map<unknown, Waiting>
  inFlight: number
}

type Owner = { name: string; lines: Map<unknown, Line>; unanswered: number }

/** What SQL answers for a call of several: the outcome of a write, or the answer to a read. Neither: it is to be sent on its own. */
type SharedAnswer = { outcome?: unknown; answer?: unknown; error?: DatabaseError }

export class Queue {
  readonly #dataApi: Pick<DataApi, 'rpc'>
  readonly #mostBusy: number
  /** In the order of their turns. */
  readonly #owners = new Map<string, Owner>()
  #busy = 0

  /** @param mostBusy RPCs at once: more would only wait for one another in Postgres. */
  constructor(dataApi: Pick<DataApi, 'rpc'>, mostBusy: number) {
    this.#dataApi = dataApi
    this.#mostBusy = mostBusy
  }

  /** @throws ApiError, also 503 when its turn did not come in time. */
  write({ batch }: Operation, rpc: Rpc, organisation: string): Promise<unknown> {
    if (batch === undefined) return this.alone(rpc, organisation)
    // Repeatable calls stay among themselves: a lost answer has another error for them.
    const id = `${rpc.fn} ${rpc.repeatable} ${rpc.token}`
    return this.#wait(rpc, Symbol(), this.#lineOf(organisation, id, mostCalls, batch))
  }

  /** The answer may be shared with others who read the same: it must not be changed. @throws ApiError */
  read(operation: Operation, rpc: Rpc, organisation: string): Promise<unknown> {
    // Lists have lines and turns of their own, so that a heavy one never holds an object. Objects have those of writes.
    const line =
      isList(operation) || operation.heavy
        ? this.#lineOf(`lists ${organisation}`, `lists ${rpc.token}`, mostLists, 'read_calls')
        : this.#lineOf(organisation, `objects ${rpc.token}`, mostCalls, 'read_calls')
    return this.#wait(rpc, `${rpc.fn} ${JSON.stringify(rpc.args)}`, line)
  }

  /** Shares no RPC. @throws ApiError */
  alone(rpc: Rpc, owner: string): Promise<unknown> {
    return this.#wait(rpc, Symbol(), this.#lineOf(owner, Symbol(), 1))
  }

  #lineOf(ownerName: string, id: unknown, most: number, together?: string): Line {
    const owner = this.#owners.get(ownerName) ?? { name: ownerName, lines: new Map(), unanswered: 0 }
    this.#owners.set(ownerName, owner)
    const line = owner.lines.get(id) ?? { id, owner, most, together, waiting: new Map(), inFlight: 0 }
    owner.lines.set(id, line)
    return line
  }

  #wait(rpc: Rpc, id: unknown, line: Line): Promise<unknown> {
    const same = line.waiting.get(id)
    if (same !== undefined) return same.promise

    const timer = setTimeout(() => {
      line.waiting.delete(id)
      call.reject(unavailable(new Error('The database was busy with other calls.')))
      this.#forgetIfIdle(line)
    }, patienceMs)
    const call = { ...Promise.withResolvers<unknown>(), rpc, bytes: JSON.stringify(rpc.args).length, timer }
    line.waiting.set(id, call)
    this.#sendNext()
    return call.promise
  }

  #sendNext(): void {
    // An owner and a line that had their turn come after the others, in this loop as well.
    for (const owner of this.#owners.values()) {
      if (this.#busy >= this.#mostBusy) return
      const line = nextLineOf(owner)
      if (line === undefined || !this.#mayHaveMore(owner)) continue
      this.#owners.delete(owner.name)
      this.#owners.set(owner.name, owner)
      owner.lines.delete(line.id)
      owner.lines.set(line.id, line)
      void this.#send(line)
    }
  }

  #mayHaveMore(owner: Owner): boolean {
    if (owner.unanswered < shareOfOwner) return true
    const isAlone = !this.#owners.values().some((other) => other !== owner && nextLineOf(other) !== undefined)
    return isAlone && this.#owners.values().reduce((sum, { unanswered }) => sum + unanswered, 0) < mostUnanswered
  }

  async #send(line: Line): Promise<void> {
    const { owner } = line
    const isOfReads = line.together === 'read_calls'
    let isBusy = true
    const noLongerBusy = () => {
      if (isBusy) this.#busy -= 1
      // Reads do not wait for a slow one; writes wait for what holds its locks.
      if (isBusy && isOfReads) line.inFlight -= 1
      isBusy = false
    }
    const timer = setTimeout(() => {
      noLongerBusy()
      this.#sendNext()
    }, busyMs)
    this.#busy += 1
    owner.unanswered += 1
    line.inFlight += 1
    await this.#answer(takeFrom(line), line)
    clearTimeout(timer)
    noLongerBusy()
    owner.unanswered -= 1
    if (!isOfReads) line.inFlight -= 1
    this.#forgetIfIdle(line)
    this.#sendNext()
  }

  async #answer(calls: Waiting[], { together, owner }: Line): Promise<void> {
    const [first, second] = calls as [Waiting, Waiting?]
    const { fn, args, token, repeatable, about } = first.rpc
    if (together === undefined || second === undefined) {
      return this.#dataApi.rpc(fn, args, token, { repeatable, about }).then(first.resolve, first.reject)
    }
    const isOfReads = together === 'read_calls'
    const sent = calls.map(({ rpc: { fn, args } }) => (isOfReads ? { operation: fn, args } : args))
    const sendAlone = ({ rpc, resolve, reject }: Waiting) => void this.alone(rpc, owner.name).then(resolve, reject)
    try {
      const answers = (await this.#dataApi.rpc(together, { calls: sent }, token, { repeatable })) as SharedAnswer[]
      for (const [i, call] of calls.entries()) {
        const { outcome, answer = outcome, error } = answers[i] ?? {}
        if (answer !== undefined) call.resolve(answer)
        else if (error === undefined) sendAlone(call)
        else call.reject(apiErrorOfDatabase(error, 400, fieldsOf(call.rpc.args), repeatable))
      }
    } catch (error) {
      // What ran out of its time is the statement of all of them: each alone may well be in time.
      const isOutOfTime = error instanceof ApiError && error.code === 'out_of_time'
      // A key that is refused, or a database that is away, is so for each.
      const isOfEach = error instanceof ApiError && [401, 403, 503].includes(error.status) && !isOutOfTime
      if (isOfReads && !isOfEach) calls.forEach(sendAlone)
      else for (const { reject } of calls) reject(isOutOfTime ? unavailable(error) : error)
    }
  }

  #forgetIfIdle(line: Line): void {
    const { owner, waiting, inFlight, id } = line
    // Another line may have its id: reads that are slow are not in flight.
    if (waiting.size === 0 && inFlight === 0 && owner.lines.get(id) === line) owner.lines.delete(id)
    if (owner.lines.size === 0 && owner.unanswered === 0) this.#owners.delete(owner.name)
  }
}

const nextLineOf = ({ lines }: Owner): Line | undefined =>
  lines.values().find(({ waiting, inFlight }) => waiting.size > 0 && inFlight < mostInFlight)

function takeFrom({ waiting, most }: Line): Waiting[] {
  const taken: Waiting[] = []
  let bytes = 0
  for (const [id, call] of waiting) {
    bytes += call.bytes
    if (taken.length > 0 && (taken.length >= most || bytes > maximumBytes)) break
    taken.push(call)
    waiting.delete(id)
    clearTimeout(call.timer)
  }
  return taken
}
