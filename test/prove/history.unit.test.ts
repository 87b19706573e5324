// The checker itself: histories that are right, and each way of being wrong.

import { expect, test } from 'vitest'
import { type Attempt, checkHistory, rules, type State } from './history.ts'

const call = (key: string, outcome: Attempt['outcome'], more: Partial<Attempt> = {}): Attempt => ({
  key,
  operation: 'register',
  start: 0,
  end: 1,
  outcome,
  ...more,
})
const effect = (key: string, id = `id of ${key}`) => ({ key, id, notifications: 1, auditEntries: 1 })
const paid = (amount: number) => ({ money: { orderId: 'order', amount } })

const sound: State = { effects: [], limits: [], money: [], undelivered: [], unsent: [], disagreements: [] }
const rulesOf = (history: Attempt[], state: Partial<State>) =>
  checkHistory(history, { ...sound, ...state }).map(({ rule }) => rule)

test.each<[string, Attempt[], Partial<State>]>([
  ['acknowledged and there', [call('a', 'ok', { id: 'id of a' })], { effects: [effect('a')] }],
  ['refused and not there', [call('a', 'refused')], {}],
  ['unknown and there', [call('a', 'unknown')], { effects: [effect('a')] }],
  ['unknown and not there', [call('a', 'unknown')], {}],
  ['sent again and replayed', [call('a', 'unknown'), call('a', 'ok')], { effects: [effect('a')] }],
  ['refused once, then done', [call('a', 'refused'), call('a', 'ok')], { effects: [effect('a')] }],
  ['the last place taken', [], { limits: [{ name: 'type', taken: 3, limit: 3 }] }],
  [
    'paid, and a refund of which nobody knows',
    [call('a', 'ok', paid(50)), call('b', 'unknown', paid(-20)), call('c', 'refused', paid(70))],
    { effects: [effect('a')], money: [{ orderId: 'order', kept: 30 }] },
  ],
])('nothing is wrong: %s', (_, history, state) => {
  expect(rulesOf(history, state)).toEqual([])
})

const wrongs: [(typeof rules)[number], Attempt[], Partial<State>][] = [
  ['lost write', [call('a', 'ok')], {}],
  ['lost write', [call('a', 'ok'), call('a', 'unknown')], {}],
  ['double write', [call('a', 'ok')], { effects: [effect('a', '1'), effect('a', '2')] }],
  ['double write', [call('a', 'unknown')], { effects: [effect('a', '1'), effect('a', '2')] }],
  ['refused write was done', [call('a', 'refused')], { effects: [effect('a')] }],
  ['write of nobody', [], { effects: [effect('a')] }],
  ['answers differ', [call('a', 'ok', { id: 'other' })], { effects: [effect('a')] }],
  ['not notified', [call('a', 'ok')], { effects: [{ ...effect('a'), notifications: 0 }] }],
  ['not notified', [call('a', 'ok')], { effects: [{ ...effect('a'), notifications: 2 }] }],
  ['not in the audit trail', [call('a', 'ok')], { effects: [{ ...effect('a'), auditEntries: 0 }] }],
  ['over a limit', [], { limits: [{ name: 'type', taken: 4, limit: 3 }] }],
  ['money does not add up', [call('a', 'refused', paid(50))], { money: [{ orderId: 'order', kept: 50 }] }],
  [
    'money does not add up',
    [call('a', 'ok', paid(50))],
    { effects: [effect('a')], money: [{ orderId: 'order', kept: 49 }] },
  ],
  [
    'money does not add up',
    [call('a', 'ok', paid(50)), call('b', 'unknown', paid(-20))],
    { effects: [effect('a')], money: [{ orderId: 'order', kept: 29 }] },
  ],
  ['webhook lost', [], { undelivered: ['n'] }],
  ['e-mail lost', [], { unsent: ['e'] }],
  ['invariant', [], { disagreements: [{ check: 'c', id: 'i', stored: '1', expected: '2' }] }],
]

test.each(wrongs)('found: %s', (rule, history, state) => {
  expect(rulesOf(history, state)).toEqual([rule])
})

test('each rule is seen to fail', () => {
  expect([...new Set(wrongs.map(([rule]) => rule))].sort()).toEqual(rules.toSorted())
})
