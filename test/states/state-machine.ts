// Makes a test of each state and each transition: acts on an object by SQL in the role that Studio uses, takes that back, acts on the same
// object over REST with an API key; and compares both with one table and with each other.

import { beforeAll, describe, expect, test } from 'vitest'
import { during, refusalOf, row } from '../support/database.ts'
import { createOrganisation, type TestEvent, type TestOrganisation } from '../support/organisation.ts'
import { type RestAnswer, rest } from '../support/rest.ts'
import type { Hand } from '../support/studio.ts'
import {
  type Changes,
  changesBetween,
  expectExactCounts,
  expectToShow,
  named,
  type Snapshot,
  takeSnapshot,
  withoutVersions,
} from './snapshot.ts'

export type Send = ReturnType<typeof rest>

/** What a machine is about. Its changes are those of everything that belongs to its event, and to another one if need be. */
export type Subject = { event: TestEvent; elsewhere?: TestEvent }

type ApiError = { status?: number; code?: string; param?: string; details?: unknown }
type Verdict = { refusal: ApiError | null; changes: Changes }

/** What the table says of one state and one transition. */
export type Cell = { rest: Verdict; sql: Verdict; title: string; differs?: true }

/** Done, with all that it changes. */
export const done = (changes: Changes = {}): Cell => same('is done', { refusal: null, changes })

/** Allowed, and all is as it was. */
export const unchanged: Cell = same('changes nothing', { refusal: null, changes: {} })

/** Refused, and nothing is changed. */
export const refused = (code: string, refusal: Omit<ApiError, 'code'> = {}): Cell =>
  same(`is refused with ${code}`, { refusal: { status: 409, code, ...refusal }, changes: {} })

export const invalid = (from: string, to: string): Cell =>
  refused('invalid_transition', { param: 'status', details: { from, to } })

/**
 * The one difference there is by design, from a status to itself: an organiser who saves a row in Studio as it is has asked
 * for nothing, so nothing is refused and nothing done; a caller who cancels what is cancelled should know.
 */
export const savedAsItIs = (status: string): Cell => ({
  rest: invalid(status, status).rest,
  sql: unchanged.sql,
  title: 'is refused with invalid_transition over REST, and in Studio a row saved as it is',
  differs: true,
})

export function same(title: string, verdict: Verdict): Cell {
  return { rest: verdict, sql: verdict, title }
}

/** One transition, through both interfaces. */
export type Interfaces<S> = {
  rest: (send: Send, it: S) => Promise<RestAnswer>
  sql: (it: S, hand: Hand) => Promise<unknown>
  /** False: no operation does this. What comes nearest is asked for nevertheless, and no route or no field takes it. The
   * table then says what SQL does. */
  offered?: false
  /** Where a refusal is no error of the transaction: reads it off the answer, and off what SQL gave back. */
  refusal?: { rest: (answer: RestAnswer) => ApiError | null; sql: (result: unknown) => ApiError | null }
}

/** One word of a state's name, up to the comma: what reads it, and all the values there are. */
export type Dimension<S> = {
  /** The name of an enum, or a list. */
  values: string | readonly string[]
  /** What there is besides. */
  besides?: readonly string[]
  read: (it: S, before: Snapshot, send: Send) => unknown
  /** Whether each value is a transition, too: `to draft`, `to published`, … */
  settable?: true
}

/** `columnOf((it: Sale) => it.id, 'status')` */
export const columnOf =
  <S>(id: (it: S) => string, column: string) =>
  (it: S, before: Snapshot) =>
    before.get(id(it))?.row[column]

export type Machine<S extends Subject, State extends string, Transition extends string> = {
  /** `an event` */
  name: string
  dimensions: Dimension<S>[]
  /** Combinations of the dimensions that cannot be, and why. All others have to be among the states. */
  unreachable?: Record<string, string>
  /** `pending partially_paid, for the half`: a word for each dimension, then what else there is to know. */
  states: Record<State, (organisation: TestOrganisation) => Promise<S>>
  transitions: Record<Transition, Interfaces<S>>
  table: Record<NoInfer<State>, Record<NoInfer<Transition>, Cell>>
}

export function testStateMachine<S extends Subject, State extends string, Transition extends string>(
  machine: Machine<S, State, Transition>,
): void {
  const states = Object.keys(machine.states) as State[]
  const transitions = Object.keys(machine.transitions) as Transition[]

  describe(machine.name, () => {
    let organisation: TestOrganisation
    let send: Send
    beforeAll(async () => {
      organisation = await createOrganisation()
      send = rest(await organisation.key())
    })

    test('has a row for every state there can be, and a column for every status', async () => {
      const values = await Promise.all(machine.dimensions.map(valuesOf))
      const reachable = combinations(values).filter((state) => !(state in (machine.unreachable ?? {})))
      expect(new Set(states.map((state) => wordsOf(state).join(' ')))).toEqual(new Set(reachable))
      const statuses = values.filter((_, i) => machine.dimensions[i]?.settable).flat()
      expect(transitions).toEqual(expect.arrayContaining(statuses.map((status) => `to ${status}`)))
      expect(Object.keys(machine.table)).toEqual(states)
      for (const state of states) {
        expect(Object.keys(machine.table[state]).toSorted(), state).toEqual(transitions.toSorted())
      }
    })

    describe.each(states)('that is %s:', (state) => {
      const arrange = async (): Promise<Arranged<S>> => {
        const it = await machine.states[state](organisation)
        const before = await snapshotOf(it)
        for (const [i, { read }] of machine.dimensions.entries()) {
          expect(await read(it, before, send), 'the state that was arranged').toBe(wordsOf(state)[i])
        }
        return { it, before }
      }
      /** What no cell has changed yet. */
      let untouched: Arranged<S> | undefined

      test.each(
        transitions.map((transition) => ({
          transition,
          cell: machine.table[state][transition],
          interfaces: machine.transitions[transition],
        })),
      )('$transition $cell.title', async ({ cell, interfaces }) => {
        const { it, before } = untouched ?? (await arrange())
        // Whatever fails from here on, the next cell has an object of its own.
        untouched = undefined
        const inStudio = await throughSql(interfaces, { it, before })
        const { after, ...overRest } = await throughRest(interfaces, { it, before }, send)
        if (Object.keys(overRest.changes).length === 0) untouched = { it, before: after }
        expectVerdict(inStudio, cell.sql, 'by SQL')
        if (interfaces.offered === false) {
          expect([404, 405, 422], 'no operation takes it').toContain(overRest.refusal?.status)
          expect(overRest.changes).toEqual({})
          return
        }
        expectVerdict(overRest, cell.rest, 'over REST')
        if (!cell.differs) expect(overRest).toEqual(inStudio)
      })
    })
  })
}

const wordsOf = (state: string) => (state.split(',', 1)[0] as string).split(' ')

async function valuesOf<S>({ values, besides = [] }: Dimension<S>): Promise<readonly string[]> {
  if (typeof values !== 'string') return [...values, ...besides]
  const sql = `select enum_range(null::public.${values})::text[] as labels`
  return [...(await row<{ labels: string[] }>(sql)).labels, ...besides]
}

const combinations = (values: (readonly string[])[]) =>
  values.reduce<string[]>(
    (heads, words) => heads.flatMap((head) => words.map((word) => `${head} ${word}`.trim())),
    [''],
  )

function expectVerdict({ refusal, changes }: Verdict, expected: Verdict, via: string): void {
  // What is refused counts no version either.
  const told = refusal ? changes : withoutVersions(changes)
  expect({ refusal, changes: told }, via).toEqual(expected)
}

type Arranged<S> = { it: S; before: Snapshot }

async function throughRest<S extends Subject>(
  interfaces: Interfaces<S>,
  { it, before }: Arranged<S>,
  send: Send,
): Promise<Verdict & { after: Snapshot }> {
  const answer = await interfaces.rest(send, it)
  const after = await snapshotOf(it)
  const { status, body } = answer
  if (status < 300 && body.data.deleted) expect(after.has(body.data.id)).toBe(false)
  else if (status < 300) expectToShow(body.data, after)
  if (interfaces.refusal) return { ...verdict(interfaces.refusal.rest(answer), before, after), after }
  const { code, param, details } = body.error ?? {}
  return { ...verdict(status < 300 ? null : { status, code, param, details }, before, after), after }
}

/** In a transaction that is rolled back, once its deferred triggers have had their say. */
async function throughSql<S extends Subject>(interfaces: Interfaces<S>, { it, before }: Arranged<S>): Promise<Verdict> {
  return during(async (client) => {
    let refusal: ApiError | null = null
    await client.query('savepoint before')
    try {
      const result = await interfaces.sql(it, client)
      await client.query('set constraints all immediate')
      if (interfaces.refusal) refusal = interfaces.refusal.sql(result)
    } catch (error) {
      const { sqlstate, ...said } = await refusalOf(Promise.reject(error))
      // Anything but a rule that says no is a broken test.
      if (!sqlstate.startsWith('PT')) throw error
      refusal = { status: Number(sqlstate.slice(2)), ...said }
      await client.query('rollback to before')
    }
    return verdict(refusal, before, await snapshotOf(it, client))
  })
}

async function snapshotOf({ event, elsewhere }: Subject, hand?: Hand): Promise<Snapshot> {
  const snapshot = await takeSnapshot([event.id, ...(elsewhere ? [elsewhere.id] : [])], hand)
  expectExactCounts(snapshot)
  return snapshot
}

const verdict = (refusal: ApiError | null, before: Snapshot, after: Snapshot): Verdict => ({
  refusal: refusal && { ...refusal, details: named(refusal.details, after) },
  changes: changesBetween(before, after),
})
