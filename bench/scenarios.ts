// What is measured. A scenario declares its calls, against whom, and its targets; compare.ts runs it.

import { type Comparison, compare, type Effort, type Plan } from './compare.ts'
import type { Faults } from './counts.ts'
import { printComparison, ratio, type Target, times } from './report.ts'
import type { Organiser, Stack } from './stack.ts'
import type { Call, SubjectName } from './subjects.ts'

export type Outcome = { targets: Target[]; faults?: Faults; rows?: Comparison['rows'] }
export type Scenario = { name: string; about: string; run(stack: Stack, effort: Effort): Promise<Outcome> }

type Limit = {
  figure: 'rate' | 'p50' | 'p99'
  at: number
  against: SubjectName
  /** Connections of the other side, if not the same. */
  againstAt?: number
  atLeast?: number
  atMost?: number
}

const names = { rate: 'throughput', p50: 'p50', p99: 'p99' }

function judge(comparison: Comparison, subject: SubjectName, limits: Limit[]): Target[] {
  return limits.flatMap(({ figure, at, against, againstAt = at, atLeast, atMost }) => {
    const found = ratio(comparison, figure, { subject, connections: at }, { subject: against, connections: againstAt })
    if (found === undefined) return []
    const bound = atLeast === undefined ? `≤ ${atMost}×` : `≥ ${atLeast}×`
    const other = against === subject ? `that at ${againstAt}` : against
    return {
      target: `${names[figure]} at ${at} connections ${bound} ${other}`,
      figure: times(found),
      met:
        found.median >= (atLeast ?? Number.NEGATIVE_INFINITY) && found.median <= (atMost ?? Number.POSITIVE_INFINITY),
    }
  })
}

/** A scenario that compares; the first subject is the one whose ratios are judged. */
const comparing = (name: string, about: string, plan: Plan, limits: Limit[]): Scenario => ({
  name,
  about,
  async run(stack, effort) {
    const comparison = await compare(stack, plan, effort)
    printComparison(comparison)
    return { ...comparison, targets: judge(comparison, plan.subjects[0] as SubjectName, limits) }
  },
})

/** Without ticket e-mail, so that the courier does not work on one subject's e-mails in the turn of the next. */
const registration = ({ eventId, ticketTypeIds }: Organiser, nth: number, more: Call['args'] = {}): Call => ({
  operation: 'register_attendee',
  args: {
    event_id: eventId,
    ticket_type_id: ticketTypeIds[nth % ticketTypeIds.length],
    name: `Guest ${nth}`,
    email: `guest-${nth}@example.com`,
    send_email: false,
    ...more,
  },
})

const all: SubjectName[] = ['usher', 'postgrest', 'fastify']

export const scenarios: Scenario[] = [
  comparing(
    'on-sale',
    'everyone registers for one ticket type',
    { subjects: all, connections: [1, 16, 64, 256], call: registration, written: 'registrations' },
    [
      { figure: 'rate', at: 64, against: 'postgrest', atLeast: 5 },
      { figure: 'p99', at: 64, against: 'postgrest', atMost: 0.25 },
      { figure: 'rate', at: 256, against: 'usher', againstAt: 64, atLeast: 0.9 },
      { figure: 'p50', at: 1, against: 'postgrest', atMost: 1.4 },
      { figure: 'rate', at: 64, against: 'fastify', atLeast: 2 },
    ],
  ),
]
