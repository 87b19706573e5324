// What an errand is: words of an organiser, the scene that they are said in, the shortest way to do it, and what is then true.

import type { Organisation } from './organisation.ts'
import type { State } from './state.ts'

/** Names and ids of what was arranged; `{name}` in the words is replaced. */
export type Facts = Record<string, string>

// biome-ignore lint/suspicious/noExplicitAny: a step takes what it needs from answers whose shapes other tests hold.
export type Answer = any
export type Call = readonly [tool: string, args: Record<string, unknown>]
/** A call, or what makes it from the answer to the step before. */
export type Step = Call | ((answer: Answer) => Call)

export type Errand = {
  name: string
  /** Terse, chatty, indirect. */
  says: readonly [string, string, string]
  arrange(organisation: Organisation): Promise<Facts>
  shortest(facts: Facts): Step[]
  /** Does what must have become of the state to a copy of what it was. Left out: nothing changes. */
  becomes?(state: State, facts: Facts): void
  /** What the person must be told. */
  answer?(facts: Facts): RegExp[]
  /** What the person must not be told. */
  never?(facts: Facts): RegExp[]
}

/** The wordings, with what was arranged in them. */
export const saidOf = (errand: Errand, facts: Facts): string[] =>
  errand.says.map((words) => words.replaceAll(/\{(\w+)\}/g, (_, name: string) => facts[name] ?? `{${name}}`))
