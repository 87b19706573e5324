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

const mail = (at: number[], attempts: number) => ({ mails: [{ id: 'e', at, attempts }] })

const sound: State = {
  effects: [],
  copies: {},
  limits: [],
  money: [],
  undelivered: [],
  unsent: [],
  leaked: [],
  mails: [],
  courierCuts: [],
  trespasses: [],
  disagreements: [],
}
const rulesOf = (history: Attempt[], state: Partial<State>) =>
  checkHistory(history, { ...sound, ...state }).map(({ rule }) => rule)

test.each<[string, Attempt[], Partial<State>]>([
  ['acknowledged and there', [call('a', 'ok', { id: 'id of a' })], { effects: [effect('a')] }],
  ['refused and not there', [call('a', 'refused')], {}],
  ['unknown and there', [call('a', 'unknown')], { effects: [effect('a')] }],
  ['unknown and not there', [call('a', 'unknown')], {}],
  ['sent again and replayed', [call('a', 'unknown'), call('a', 'ok')], { effects: [effect('a')] }],
  ['refused once, then done', [call('a', 'refused'), call('a', 'ok')], { effects: [effect('a')] }],
  [
    'copied by the network, without a key',
    [call('a', 'ok', { isUnkeyed: true })],
    { effects: [effect('a', '1'), effect('a', '2')], copies: { a: 1 } },
  ],
  [
    'refused, and then sent once more by the network',
    [call('a', 'refused')],
    { effects: [effect('a')], copies: { a: 1 } },
  ],
  ['to come again, and a rule of the domain', [call('a', 'unknown', { why: '503 outcome_unknown' })], {}],
  ['refused by a rule of the domain', [call('a', 'refused', { why: '409 sold_out' })], {}],
  ['an e-mail that was sent', [], mail([5], 1)],
  ['an e-mail whose courier died', [], { ...mail([5, 9000], 2), courierCuts: [{ from: 3, until: 3 }] }],
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
  ['refused write was done', [call('a', 'refused')], { effects: [effect('a')], copies: { b: 1 } }],
  ['write of nobody', [], { effects: [effect('a')] }],
  ['answers differ', [call('a', 'ok', { id: 'other' })], { effects: [effect('a')] }],
  ['not notified', [call('a', 'ok')], { effects: [{ ...effect('a'), notifications: 0 }] }],
  ['not notified', [call('a', 'ok')], { effects: [{ ...effect('a'), notifications: 2 }] }],
  ['not in the audit trail', [call('a', 'ok')], { effects: [{ ...effect('a'), auditEntries: 0 }] }],
  [
    'double write',
    [call('a', 'ok', { isUnkeyed: true })],
    { effects: [effect('a', '1'), effect('a', '2')], copies: { b: 1 } },
  ],
  [
    'double write',
    [call('a', 'unknown', { isUnkeyed: true }), call('a', 'ok')],
    { effects: [effect('a', '1'), effect('a', '2')], copies: { a: 1 } },
  ],
  ['undocumented answer', [call('a', 'unknown', { why: '500 internal_error' })], {}],
  ['undocumented answer', [call('a', 'refused', { why: '401 invalid_token' })], {}],
  ['e-mail sent twice', [], { ...mail([5, 6], 1), courierCuts: [{ from: 5, until: 5 }] }],
  ['e-mail sent twice', [], mail([5, 9], 2)],
  ['e-mail sent twice', [], { ...mail([9000, 9009], 2), courierCuts: [{ from: 3, until: 3 }] }],
  ['trespass', [], { trespasses: [{ about: 'a revoked key', detail: '/attendees' }] }],
  ['over a limit', [], { limits: [{ name: 'type', taken: 4, limit: 3 }] }],
  ['money does not add up', [call('a', 'refused', paid(50))], { money: [{ orderId: 'order', kept: 50 }] }],
  [
    'money does not add up',
    [call('a', 'ok', paid(50))],
    { effects: [effect('a')], money: [{ orderId: 'order', kept: 49 }] },
  ],
  ['money does not add up', [call('a', 'ok', { total: 50 })], { effects: [{ ...effect('a'), total: 0 }] }],
  [
    'money does not add up',
    [call('a', 'ok', paid(50)), call('b', 'unknown', paid(-20))],
    { effects: [effect('a')], money: [{ orderId: 'order', kept: 29 }] },
  ],
  ['webhook lost', [], { undelivered: ['n'] }],
  ['e-mail lost', [], { unsent: ['e'] }],
  ['test e-mail sent', [], { leaked: ['e'] }],
  ['invariant', [], { disagreements: [{ check: 'c', id: 'i', stored: '1', expected: '2' }] }],
]

test.each(wrongs)('found: %s', (rule, history, state) => {
  expect(rulesOf(history, state)).toEqual([rule])
})

test('each rule is seen to fail', () => {
  expect([...new Set(wrongs.map(([rule]) => rule))].sort()).toEqual(rules.toSorted())
})
