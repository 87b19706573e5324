// Runs the same calls against several subjects in turns: in each round every subject has its turn at every number of connections, so that
// other load on the machine meets all of them.

import { countFaults, type Faults, idsIn, type Written } from './counts.ts'
import { type HttpRequest, type Load, load } from './load.ts'
import { type Limit, noFaults, type Outcome, printComparison, targetsOf } from './report.ts'
import { addOrganiser, cpuMs, cpuWithChildrenMs, type Organiser, type Stack, settle } from './stack.ts'
import type { Call, Subject } from './subjects.ts'

/** CPU time for each answer, in milliseconds; `load` is that of the load generator. */
export type Round = Load & { node: number; postgrest: number; postgres: number; load: number }
export type Row = { subject: string; connections: number; rounds: Round[] }

export type Effort = { rounds: number; seconds: number; rows: number; base: string | undefined }

type Calls = Call | ((nth: number) => Call)

export type Plan = {
  title: string
  connections: number[]
  /** Calls go to each in turn. Default 1. */
  organisers?: number
  /** Of a ticket, in cents. */
  price?: number
  /** Makes what this number of calls need, before each run. Returns the call to repeat, or the call with each number. */
  prepare(stack: Stack, organiser: Organiser, calls: number): Calls | Promise<Calls>
  written?: Written
  /** A run ends after half of the expected calls, not after some seconds, and no place may be free then. */
  sellsOut?: true
  limits: Limit[]
}

type Participant = Row & { server: Subject; organisers: Organiser[]; expected: number; nth: number; ids: string[] }

const warmUpSeconds = 1

/** Prints the table of a plan, and judges its first subject. */
export async function compare(subjects: Subject[], plan: Plan, { rounds, seconds }: Effort): Promise<Outcome> {
  const participants: Participant[] = []
  for (const connections of plan.connections) {
    for (const server of subjects) {
      const organisers: Organiser[] = []
      while (organisers.length < (plan.organisers ?? 1)) organisers.push(await addOrganiser(server.stack, plan.price))
      const empty = { rounds: [], expected: 1_000 * warmUpSeconds, nth: 0, ids: [] }
      participants.push({ ...empty, subject: server.name, connections, server, organisers })
    }
  }
  for (const participant of participants) {
    const { rate } = await run(plan, participant, warmUpSeconds)
    participant.expected = Math.max(participant.expected, Math.ceil(rate * seconds * 2))
  }
  for (let round = 0; round < rounds; round++) {
    for (const participant of round % 2 ? participants.toReversed() : participants) {
      participant.rounds.push(await run(plan, participant, seconds))
    }
  }
  const faults: Faults = { ...noFaults }
  for (const { server, organisers, ids } of plan.written ? participants : []) {
    const found = await countFaults(server.stack, plan.written as Written, organisers, ids)
    for (const fault of ['lost', 'duplicated', 'oversold'] as const) faults[fault] += found[fault]
    if (plan.sellsOut) faults.unsold += found.unsold
  }
  printComparison(plan.title, participants)
  return { targets: targetsOf(plan.title, participants, plan.limits), faults }
}

async function run(plan: Plan, to: Participant, seconds: number): Promise<Round> {
  const { server, organisers, connections, expected, ids } = to
  const { stack } = server
  const requests: ((nth: number) => HttpRequest)[] = []
  let isRepeated = false
  for (const organiser of organisers) {
    const calls = await plan.prepare(stack, organiser, Math.ceil(expected / organisers.length))
    const request = await server.open(organiser)
    requests.push((nth) => request(typeof calls === 'function' ? calls(nth) : calls))
    isRepeated = typeof calls !== 'function'
  }
  const next = () => {
    const nth = to.nth++
    return (requests[nth % requests.length] as (nth: number) => HttpRequest)(Math.floor(nth / requests.length))
  }
  const clocks = () => ({
    node: cpuMs(server.node ?? Number.NaN),
    postgrest: cpuMs(stack.pids.postgrest),
    postgres: cpuWithChildrenMs(stack.pids.postgres),
    load: cpuMs(process.pid),
  })
  const before = clocks()
  const measured = await load({
    url: server.url,
    connections,
    seconds,
    amount: plan.sellsOut && Math.ceil(expected / 2),
    request: isRepeated ? next() : next,
    onSuccess: plan.written && ((body) => void ids.push(...idsIn(body))),
  })
  const after = clocks()
  const answers = Object.values(measured.statuses).reduce((a, b) => a + b, 0)
  const each = (part: keyof typeof after) => (after[part] - before[part]) / answers
  await settle(stack)
  return {
    ...measured,
    node: each('node'),
    postgrest: each('postgrest'),
    postgres: each('postgres'),
    load: each('load'),
  }
}
