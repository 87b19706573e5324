// One errand in an organisation of its own: arranged, run by somebody, and judged.

import type { Confirmations } from '../../src/local/admin.ts'
import { Person } from '../support/person.ts'
import type { Errand, Facts } from './errand.ts'
import { createOrganisation, type Database } from './organisation.ts'
import { openSession, type Session, type Turn } from './session.ts'
import { differences, type State, stateOf } from './state.ts'

export type Round = {
  errand: Errand
  organisationId: string
  key: string
  /** The person at their browser, who confirms what the assistant asks them to. */
  person: Person
  facts: Facts
  before: State
}

/** @param confirmations whether the key of the assistant asks for them. */
export async function arrange(
  errand: Errand,
  database: Database,
  apiUrl: string,
  confirmations: Confirmations = 'asked',
): Promise<Round> {
  const organisation = await createOrganisation(database, apiUrl)
  const facts = await errand.arrange(organisation)
  await organisation.allSent()
  return {
    errand,
    organisationId: organisation.id,
    key: await organisation.key('Assistant', undefined, confirmations),
    person: new Person(apiUrl, await organisation.personKey()),
    facts,
    before: await stateOf(database, organisation.id),
  }
}

/**
 * Presses the button where a call waits for a confirmation, and the errand is to change something. That is no call.
 *
 * @returns whether it did.
 */
export async function confirmFor({ errand, person }: Pick<Round, 'errand' | 'person'>, turn: Turn): Promise<boolean> {
  const url = turn.isError ? linkIn(turn.text) : undefined
  if (url === undefined || errand.becomes === undefined) return false
  const { status, text } = await person.confirm(url)
  if (status !== 200) throw new Error(`${url} cannot be confirmed: ${text}`)
  return true
}

const linkIn = (text: string): string | undefined => /"code":"confirmation_required".*"url":"([^"]+)"/.exec(text)?.[1]

/** What is wrong, a sentence each; nothing: right. `answer` is what the person was told. */
export async function judge(database: Database, round: Round, answer: string): Promise<string[]> {
  const { errand, facts, organisationId, before } = round
  const expected = structuredClone(before)
  errand.becomes?.(expected, facts)
  const wrong = differences(expected, await stateOf(database, organisationId))
  const said = errand.answer?.(facts).filter((pattern) => !pattern.test(answer)) ?? []
  const unwanted = errand.never?.(facts).filter((pattern) => pattern.test(answer)) ?? []
  return [
    ...wrong,
    ...said.map((pattern) => `the answer does not say ${pattern}`),
    ...unwanted.map((pattern) => `the answer says ${pattern}`),
  ]
}

/**
 * Runs the shortest path, and judges it. All that was read is said: that it is more than was asked for, no path can help.
 *
 * @throws if a call is refused.
 */
export async function walk(
  database: Database,
  round: Round,
  apiUrl: string,
): Promise<{ turns: Turn[]; wrong: string[] }> {
  const session = await openSession(apiUrl, round.key)
  try {
    const turns = await stepsOf(round, (tool, args) => session.call(tool, args))
    const { never: _, ...errand } = round.errand
    return { turns, wrong: await judge(database, { ...round, errand }, turns.map(({ text }) => text).join('\n')) }
  } finally {
    await session.close()
  }
}

async function stepsOf(round: Round, call: Session['call']): Promise<Turn[]> {
  const { errand, facts } = round
  const turns: Turn[] = []
  let answer: unknown
  for (const step of errand.shortest(facts)) {
    const [tool, args] = typeof step === 'function' ? step(answer) : step
    let turn = await call(tool, args)
    if (await confirmFor(round, turn)) turn = await call(tool, args)
    if (turn.isError) throw new Error(`${tool} ${JSON.stringify(args)}: ${turn.text}`)
    turns.push(turn)
    answer = JSON.parse(turn.text)
  }
  return turns
}
