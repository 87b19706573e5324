// Calls that may share an RPC wait in a line while two of it are in flight, or for a place of their owner, and the next RPC takes as many
// as it may. Must know nothing of what the operations do.

import { apiErrorOfDatabase, fieldsOf } from './database-error.ts'
import type { Places } from './places.ts'

// Two, so that Postgres works on one while the other is answered.
const maximumInFlight = 2
// Of JSON, well below what PostgREST and a proxy in front of it take.
const maximumBytes = 256 * 1024

export type Waiting = {
  args: Record<string, unknown>
  bytes: number
  /** Of the process's clock, in milliseconds. */
  since: number
  resolve(result: unknown): void
  reject(error: unknown): void
}

export type Rules<Call> = {
  maximumCalls: number
  /** An RPC that takes longer no longer counts as one in flight. Left out: it does until it is answered. */
  heldMs?: number
  /** False: it waits until another one of the line is answered. */
  isFree?(call: Call): boolean
  /** Answers or refuses the call. Never rejects. */
  send(call: Call): Promise<void>
  /** The same for several as one RPC; what is left over is sent by itself. Never rejects. */
  sendTogether(calls: Call[]): Promise<Call[]>
}

type Line<Call> = { inFlight: number; unanswered: number; waiting: Call[] }

/** @returns adds a call to the line of an id. A line has one owner and the same rules for all of its calls. */
export function createLines<Call extends Waiting>(places: Places) {
  const lines = new Map<string, Line<Call>>()

  return (id: string, owner: string, rules: Rules<Call>, call: Call): void => {
    const line = lines.get(id) ?? { inFlight: 0, unanswered: 0, waiting: [] }
    lines.set(id, line)
    line.waiting.push(call)
    advance()

    function advance(): void {
      if (line.waiting.length > 0 && line.inFlight < maximumInFlight) void sendNext()
      else if (line.unanswered === 0 && line.waiting.length === 0) lines.delete(id)
    }

    async function sendNext(): Promise<void> {
      line.inFlight += 1
      line.unanswered += 1
      let isInFlight = true
      let isRefused = false
      const land = () => {
        if (isInFlight) line.inFlight -= 1
        isInFlight = false
      }
      const since = performance.now()
      let calls: Call[] = []
      let timer: NodeJS.Timeout | undefined
      try {
        const leave = await places.enter(owner)
        calls = takeFrom(line, rules)
        if (rules.heldMs !== undefined && calls.length > 0) {
          timer = setTimeout(() => {
            land()
            advance()
          }, rules.heldMs)
        }
        const left = await sendAll(calls).finally(leave)
        if (left.length > 0) await Promise.all(left.map(sendLeft))
      } catch (error) {
        // Those that came later have not waited as long.
        for (const call of line.waiting) if (call.since <= since) call.reject(error)
        line.waiting = line.waiting.filter((call) => call.since > since)
        isRefused = true
      }
      clearTimeout(timer)
      land()
      line.unanswered -= 1
      // None was free: the answer to another one goes on.
      if (isRefused || calls.length > 0 || line.waiting.length === 0) advance()
    }

    async function sendAll(calls: Call[]): Promise<Call[]> {
      const [first, second] = calls
      if (second !== undefined) return rules.sendTogether(calls)
      if (first !== undefined) await rules.send(first)
      return []
    }

    async function sendLeft(call: Call): Promise<void> {
      try {
        const leave = await places.enter(owner)
        await rules.send(call).finally(leave)
      } catch (error) {
        call.reject(error)
      }
    }
  }
}

function takeFrom<Call extends Waiting>(line: Line<Call>, { maximumCalls, isFree = () => true }: Rules<Call>): Call[] {
  const taken: Call[] = []
  const rest: Call[] = []
  let bytes = 0
  for (const call of line.waiting) {
    const fits = taken.length === 0 || (taken.length < maximumCalls && bytes + call.bytes <= maximumBytes)
    if (fits && isFree(call)) {
      taken.push(call)
      bytes += call.bytes
    } else rest.push(call)
  }
  line.waiting = rest
  return taken
}

/** What SQL answers for a call of several: the outcome of a write, or the answer to a read. Neither: it is to be sent on its own. */
export type SharedAnswer = {
  outcome?: unknown
  answer?: unknown
  error?: { code: string; message: string; details?: unknown; hint?: unknown }
}

/** @returns those that are left over. */
export function settleEach<Call extends Waiting>(calls: Call[], answers: SharedAnswer[], repeatable: boolean): Call[] {
  return calls.filter((call, i) => {
    const { outcome, answer = outcome, error } = answers[i] ?? {}
    if (answer !== undefined) call.resolve(answer)
    else if (error !== undefined) call.reject(apiErrorOfDatabase(error, 400, fieldsOf(call.args), repeatable))
    else return true
    return false
  })
}
