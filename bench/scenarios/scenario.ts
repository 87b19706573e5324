// A scenario answers one question of a user.

import { compare, type Effort, type Plan } from '../compare.ts'
import { noFaults, type Outcome } from '../report.ts'
import { type SubjectName, startSubjects } from '../subjects.ts'

export type Scenario = { name: string; question: string; run(effort: Effort): Promise<Outcome> }

/** Runs plans one after the other on the same subjects. The first subject is the one that is judged. */
export const comparing = (subjects: SubjectName[], plans: Plan[]) => async (effort: Effort) => {
  const started = await startSubjects(subjects, effort.base)
  const outcome: Outcome = { targets: [], faults: { ...noFaults } }
  for (const plan of plans) add(outcome, await compare(started, plan, effort))
  return outcome
}

export function add(sum: Outcome, { targets, faults }: Outcome): void {
  sum.targets.push(...targets)
  for (const fault of ['lost', 'duplicated', 'oversold', 'unsold'] as const) sum.faults[fault] += faults[fault]
}
