// Runs the same calls against several subjects, interleaved: in each round every subject has its turn at every number of connections, so
// that other load on the machine meets all of them. Each subject has organisations of its own in the same database.

import { addFaults, countFaults, type Faults, noFaults, type Written } from './counts.ts'
import { type HttpRequest, type Load, load } from './load.ts'
import { cpuMs, cpuWithChildrenMs } from './processes.ts'
import { addOrganiser, type Organiser, type Stack, settle } from './stack.ts'
import { type Call, isOfBase, type Subject, type SubjectName, subjects } from './subjects.ts'

/** CPU time per answer in milliseconds; `load` is that of the load generator. */
export type Round = Load & { cpu: { node: number; postgrest: number; postgres: number; load: number } }
export type Row = { subject: SubjectName; connections: number; rounds: Round[] }
export type Comparison = { rows: Row[]; faults?: Faults }

export type Effort = {
  rounds: number
  seconds: number
  connections?: number[]
  /** A stack of another checkout, to compare with. */
  base?: Stack
  /** Of the larger log of `log-growth`. */
  rows?: number
}

export type Plan = {
  subjects: SubjectName[]
  connections: number[]
  organiser?: Parameters<typeof addOrganiser>[1]
  /** Calls go to as many in turn; one, if left out. */
  organisers?: number
  /** Runs before each run, for each organiser, with the number of calls to expect; not measured. */
  prepare?(stack: Stack, organiser: Organiser, calls: number): Promise<void>
  /** The call with this number: each number is used once for an organiser. Without `written` or `varied` all calls are the first one. */
  call(organiser: Organiser, nth: number): Call
  varied?: true
  written?: Written
  /** A run ends after half of the expected calls, not after some seconds, and no place may be free then. */
  sellsOut?: true
  /** Runs after each run, when the database is idle; not measured. */
  afterwards?(stack: Stack): Promise<void>
}

const warmUpSeconds = 1

type Participant = Row & {
  stack: Stack
  server: Subject
  organisers: Organiser[]
  calls: number
  acknowledged: string[]
}

export async function compare(own: Stack, plan: Plan, effort: Effort): Promise<Comparison> {
  const stackOf = (name: SubjectName) => (isOfBase(name) ? effort.base : own)
  const opened = new Map<SubjectName, Subject>()
  for (const name of plan.subjects) {
    const stack = stackOf(name)
    if (stack !== undefined) opened.set(name, await subjects[name](stack))
  }
  try {
    const participants: Participant[] = []
    for (const connections of effort.connections ?? plan.connections) {
      for (const [subject, server] of opened) {
        const stack = stackOf(subject) as Stack
        const organisers: Organiser[] = []
        while (organisers.length < (plan.organisers ?? 1)) organisers.push(await addOrganiser(stack, plan.organiser))
        participants.push({ subject, connections, rounds: [], stack, server, organisers, calls: 0, acknowledged: [] })
      }
    }
    const expected = new Map<Participant, number>()
    for (const participant of participants) {
      const { rate } = await run(plan, participant, warmUpSeconds, 1_000 * warmUpSeconds)
      expected.set(participant, Math.ceil(rate * effort.seconds * 2))
    }
    for (let round = 0; round < effort.rounds; round++) {
      for (const participant of round % 2 ? participants.toReversed() : participants) {
        const calls = expected.get(participant) ?? 0
        participant.rounds.push(await run(plan, participant, effort.seconds, calls))
      }
    }
    const rows = participants.map(({ subject, connections, rounds }) => ({ subject, connections, rounds }))
    if (plan.written === undefined) return { rows }
    let faults = noFaults
    for (const { stack, organisers, acknowledged } of participants) {
      const found = await countFaults(stack, plan.written, organisers, acknowledged)
      faults = addFaults(faults, plan.sellsOut ? found : { ...found, unsold: 0 })
    }
    return { rows, faults }
  } finally {
    for (const subject of opened.values()) await subject.close?.()
  }
}

async function run(plan: Plan, to: Participant, seconds: number, calls: number): Promise<Round> {
  const { stack, server: subject, organisers, connections, acknowledged } = to
  const requests: (() => HttpRequest)[] = []
  for (const organiser of organisers) {
    await plan.prepare?.(stack, organiser, Math.ceil(calls / organisers.length))
    const request = await subject.open(organiser)
    requests.push(() => request(plan.call(organiser, Math.floor(to.calls++ / organisers.length))))
  }
  const clocks = () => [
    cpuMs(subject.node ?? Number.NaN),
    cpuMs(stack.pids.postgrest),
    cpuWithChildrenMs(stack.pids.postgres),
    cpuMs(process.pid),
  ]
  const before = clocks()
  const next = () => (requests[to.calls % requests.length] as () => HttpRequest)()
  const measured = await (subject.drive ?? load)({
    url: subject.url,
    connections,
    seconds,
    ...(plan.sellsOut && { amount: Math.ceil(calls / 2) }),
    request: plan.written === undefined && !plan.varied ? next() : next,
    ...(plan.written && {
      onAnswer: (status, body) => {
        const id = status < 300 && !body.includes('"error":{') ? /"id" ?: ?"([^"]+)"/.exec(body)?.[1] : undefined
        if (id !== undefined) acknowledged.push(id)
      },
    }),
  })
  const after = clocks()
  const [node, postgrest, postgres, own] = after.map((ms, i) => (ms - (before[i] ?? 0)) / measured.answers)
  await settle(stack)
  await plan.afterwards?.(stack)
  const cpu = { node, postgrest, postgres, load: own } as Round['cpu']
  return { ...measured, cpu }
}
