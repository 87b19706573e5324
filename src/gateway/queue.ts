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

type Waiting = { rpc: Rpc; answer: PromiseWithResolvers<unknown>; timer?: NodeJS.Timeout }

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
  private readonly dataApi: Pick<DataApi, 'rpc'>
  private readonly mostBusy: number
  /** In the order of their turns. */
  private readonly owners = new Map<string, Owner>()
  private busy = 0

  /** @param mostBusy RPCs at once: more would only wait for one another in Postgres. */
  constructor(dataApi: Pick<DataApi, 'rpc'>, mostBusy: number) {
    this.dataApi = dataApi
    this.mostBusy = mostBusy
  }

  /** @throws ApiError, also 503 when its turn did not come in time. */
  write({ batch }: Operation, rpc: Rpc, organisation: string): Promise<unknown> {
    if (batch === undefined) return this.alone(rpc, organisation)
    // Repeatable calls stay among themselves: a lost answer has another error for them.
    const id = `${rpc.fn} ${rpc.repeatable} ${rpc.token}`
    return this.wait(rpc, Symbol(), this.lineOf(organisation, id, mostCalls, batch))
  }

  /** The answer may be shared with others who read the same: it must not be changed. @throws ApiError */
  read(operation: Operation, rpc: Rpc, organisation: string): Promise<unknown> {
    // Lists have lines and turns of their own, so that a heavy one never holds an object. Objects have those of writes.
    const line =
      isList(operation) || operation.heavy
        ? this.lineOf(`lists ${organisation}`, `lists ${rpc.token}`, mostLists, 'read_calls')
        : this.lineOf(organisation, `objects ${rpc.token}`, mostCalls, 'read_calls')
    return this.wait(rpc, `${rpc.fn} ${JSON.stringify(rpc.args)}`, line)
  }

  /** Shares no RPC. @throws ApiError */
  alone(rpc: Rpc, owner: string): Promise<unknown> {
    return this.wait(rpc, Symbol(), this.lineOf(owner, Symbol(), 1))
  }

  private lineOf(ownerName: string, id: unknown, most: number, together?: string): Line {
    const owner = this.owners.get(ownerName) ?? { name: ownerName, lines: new Map(), unanswered: 0 }
    this.owners.set(ownerName, owner)
    const line = owner.lines.get(id) ?? { id, owner, most, together, waiting: new Map(), inFlight: 0 }
    owner.lines.set(id, line)
    return line
  }

  private wait(rpc: Rpc, id: unknown, line: Line): Promise<unknown> {
    const same = line.waiting.get(id)
    if (same !== undefined) return same.answer.promise
    const answer = Promise.withResolvers<unknown>()
    const call: Waiting = { rpc, answer }
    if (line.waiting.size === 0 && this.mayBegin(line)) void this.send(line, [call])
    else {
      line.waiting.set(id, call)
      call.timer = setTimeout(() => {
        line.waiting.delete(id)
        answer.reject(unavailable(new Error('The database was busy with other calls.')))
        this.forgetIfIdle(line)
      }, patienceMs)
    }
    return answer.promise
  }

  private sendNext(): void {
    // An owner and a line that had their turn come after the others, in this loop as well.
    for (const owner of this.owners.values()) {
      const line = nextLineOf(owner)
      if (line === undefined || !this.mayBegin(line)) continue
      this.owners.delete(owner.name)
      this.owners.set(owner.name, owner)
      owner.lines.delete(line.id)
      owner.lines.set(line.id, line)
      void this.send(line, takeFrom(line))
    }
  }

  private mayBegin({ owner, inFlight }: Line): boolean {
    if (this.busy >= this.mostBusy || inFlight >= mostInFlight) return false
    if (owner.unanswered < shareOfOwner) return true
    const isAlone = !this.owners.values().some((other) => other !== owner && nextLineOf(other) !== undefined)
    return isAlone && this.owners.values().reduce((sum, { unanswered }) => sum + unanswered, 0) < mostUnanswered
  }

  private async send(line: Line, calls: Waiting[]): Promise<void> {
    const isOfReads = line.together === 'read_calls'
    let isBusy = true
    const noLongerBusy = () => {
      if (isBusy) this.busy -= 1
      // Reads do not wait for a slow one; writes wait for what holds its locks.
      if (isBusy && isOfReads) line.inFlight -= 1
      isBusy = false
    }
    const timer = setTimeout(() => {
      noLongerBusy()
      this.sendNext()
    }, busyMs)
    this.busy += 1
    line.owner.unanswered += 1
    line.inFlight += 1
    await this.answer(calls, line)
    clearTimeout(timer)
    noLongerBusy()
    line.owner.unanswered -= 1
    if (!isOfReads) line.inFlight -= 1
    this.forgetIfIdle(line)
    this.sendNext()
  }

  private async answer(calls: Waiting[], { together, owner }: Line): Promise<void> {
    const [first, second] = calls as [Waiting, Waiting?]
    const { fn, args, token, repeatable, about } = first.rpc
    if (together === undefined || second === undefined) {
      return this.dataApi.rpc(fn, args, token, { repeatable, about }).then(first.answer.resolve, first.answer.reject)
    }
    const isOfReads = together === 'read_calls'
    const sent = calls.map(({ rpc: { fn, args } }) => (isOfReads ? { operation: fn, args } : args))
    const sendAlone = ({ rpc, answer }: Waiting) => answer.resolve(this.alone(rpc, owner.name))
    try {
      const answers = (await this.dataApi.rpc(together, { calls: sent }, token, { repeatable })) as SharedAnswer[]
      for (const [i, call] of calls.entries()) {
        const { outcome, answer = outcome, error } = answers[i] ?? {}
        if (answer !== undefined) call.answer.resolve(answer)
        else if (error === undefined) sendAlone(call)
        else call.answer.reject(apiErrorOfDatabase(error, 400, fieldsOf(call.rpc.args), repeatable))
      }
    } catch (error) {
      // What ran out of its time is the statement of all of them: each alone may well be in time.
      const isOutOfTime = error instanceof ApiError && error.code === 'out_of_time'
      // A key that is refused, or a database that is away, is so for each.
      const isOfEach = error instanceof ApiError && [401, 403, 503].includes(error.status) && !isOutOfTime
      if (isOfReads && !isOfEach) calls.forEach(sendAlone)
      else for (const { answer } of calls) answer.reject(isOutOfTime ? unavailable(error) : error)
    }
  }

  private forgetIfIdle(line: Line): void {
    const { owner, id } = line
    // Another line may have its id: reads that are slow are not in flight.
    if (line.waiting.size === 0 && line.inFlight === 0 && owner.lines.get(id) === line) owner.lines.delete(id)
    if (owner.lines.size === 0 && owner.unanswered === 0) this.owners.delete(owner.name)
  }
}

const nextLineOf = ({ lines }: Owner): Line | undefined =>
  lines.values().find(({ waiting, inFlight }) => waiting.size > 0 && inFlight < mostInFlight)

function takeFrom({ waiting, most }: Line): Waiting[] {
  const taken: Waiting[] = []
  let bytes = 0
  for (const [id, call] of waiting) {
    bytes += JSON.stringify(call.rpc.args).length
    if (taken.length > 0 && (taken.length >= most || bytes > maximumBytes)) break
    taken.push(call)
    waiting.delete(id)
    clearTimeout(call.timer)
  }
  return taken
}
