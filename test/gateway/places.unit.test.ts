// Who is next when more calls wait than the database works on at once.

import { beforeEach, expect, test, vi } from 'vitest'
import { ApiError } from '../../src/gateway/api-error.ts'
import { createLines, type Rules, type Waiting } from '../../src/gateway/lines.ts'
import { createPlaces } from '../../src/gateway/places.ts'

beforeEach(() => {
  vi.useFakeTimers()
  return () => vi.useRealTimers()
})

/** Enters for each owner in this order; what began and was refused, and what ends the oldest that is not ended yet. */
function entering(mostBusy: number, owners: string[]) {
  const places = createPlaces(mostBusy)
  const begun: string[] = []
  const refused: unknown[] = []
  const leaves: (() => void)[] = []
  const enter = (owner: string) =>
    void places.enter(owner).then(
      (leave) => {
        leaves.push(leave)
        begun.push(owner)
      },
      (error) => refused.push(error),
    )
  owners.forEach(enter)
  return { enter, begun, refused, leaves }
}

const times = (n: number, owner: string): string[] => Array(n).fill(owner)
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms)

test('while there are places nobody waits, and owners that wait have their turns in rotation', async () => {
  const { begun, leaves } = entering(2, ['a', 'a', 'a', 'a', 'b', 'c', 'b'])
  await pass(0)
  expect(begun).toEqual(['a', 'a'])
  for (let i = 0; i < 5; i++) {
    leaves.shift()?.()
    await pass(0)
  }
  expect(begun).toEqual(['a', 'a', 'a', 'b', 'c', 'a', 'b'])
})

test('calls that take long give their places to those of others, and no owner has more than its share while another waits', async () => {
  const { begun, leaves } = entering(2, [...times(8, 'a'), ...times(8, 'b')])
  await pass(1_000)
  expect(begun.toSorted()).toEqual([...times(6, 'a'), ...times(6, 'b')])
  leaves.shift()?.()
  await pass(0)
  expect(begun.slice(12)).toEqual(['a'])
})

test('an owner alone has more than its share, leaves connections to others, and waits longer for its own calls', async () => {
  const { enter, begun, refused, leaves } = entering(4, times(16, 'a'))
  await pass(8_000)
  expect(begun).toEqual(times(14, 'a'))
  enter('b')
  await pass(0)
  expect(begun.slice(14)).toEqual(['b'])
  for (const leave of leaves.splice(0, 2)) leave()
  await pass(0)
  expect(begun.slice(15)).toEqual(['a'])
  expect(refused).toEqual([])
  await pass(2_000)
  expect(refused).toMatchObject([{ status: 503 }])
})

test('who waits as long as the Data API lets one wait for a connection is refused as there', async () => {
  const { refused } = entering(0, ['a'])
  await pass(5_000)
  expect(refused).toEqual([expect.any(ApiError)])
  expect(refused).toMatchObject([{ status: 503, code: 'temporarily_unavailable', retryable: true }])
})

test('of a line those are refused that waited as long, and the others wait on', async () => {
  const refused: string[] = []
  const rules: Rules<Waiting> = { maximumCalls: 50, send: async () => {}, sendTogether: async () => [] }
  const wait = createLines<Waiting>(createPlaces(0))
  const call = (name: string) =>
    wait('line', 'a', rules, {
      args: {},
      bytes: 2,
      since: performance.now(),
      resolve: () => {},
      reject: () => refused.push(name),
    })
  call('first')
  await pass(1_000)
  call('second')
  await pass(3_999)
  call('last')
  await pass(1)
  expect(refused).toEqual(['first'])
  await pass(1_000)
  expect(refused).toEqual(['first', 'second'])
  await pass(4_000)
  expect(refused).toEqual(['first', 'second', 'last'])
})
