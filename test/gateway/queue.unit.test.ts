// Who is next when more calls wait than the database works on at once.

import { beforeEach, expect, test, vi } from 'vitest'
import { ApiError } from '../../src/gateway/api-error.ts'
import { Queue } from '../../src/gateway/queue.ts'

beforeEach(() => {
  vi.useFakeTimers()
  return () => vi.useRealTimers()
})

/** Calls for each owner in this order; what was sent and refused, and what answers the oldest that is not answered yet. */
function calling(mostBusy: number, owners: string[]) {
  const sent: string[] = []
  const refused: unknown[] = []
  const answers: (() => void)[] = []
  const rpc = (owner: string) => {
    sent.push(owner)
    return new Promise<void>((resolve) => answers.push(resolve))
  }
  const queue = new Queue({ rpc }, mostBusy)
  const call = (owner: string) =>
    void queue.alone({ fn: owner, args: {}, token: '', repeatable: true }, owner).catch((error) => refused.push(error))
  owners.forEach(call)
  return { call, sent, refused, answers }
}

const times = (n: number, owner: string): string[] => Array(n).fill(owner)
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms)

test('while there are places nobody waits, and owners that wait have their turns in rotation', async () => {
  const { sent, answers } = calling(2, ['a', 'a', 'a', 'a', 'b', 'c', 'b'])
  await pass(0)
  expect(sent).toEqual(['a', 'a'])
  for (let i = 0; i < 5; i++) {
    answers.shift()?.()
    await pass(0)
  }
  expect(sent).toEqual(['a', 'a', 'a', 'b', 'c', 'a', 'b'])
})

test('calls that take long give their places to those of others, and no owner has more than its share while another waits', async () => {
  const { sent, answers } = calling(2, [...times(8, 'a'), ...times(8, 'b')])
  await pass(1_000)
  expect(sent.toSorted()).toEqual([...times(6, 'a'), ...times(6, 'b')])
  answers.shift()?.()
  await pass(0)
  expect(sent.slice(12)).toEqual(['a'])
})

test('an owner alone has more than its share, and leaves connections to others', async () => {
  const { call, sent, refused, answers } = calling(4, times(16, 'a'))
  await pass(8_000)
  expect(sent).toEqual(times(14, 'a'))
  call('b')
  await pass(0)
  expect(sent.slice(14)).toEqual(['b'])
  for (const answer of answers.splice(0, 2)) answer()
  await pass(0)
  expect(sent.slice(15)).toEqual(['a'])
  expect(refused).toEqual([])
  await pass(2_000)
  expect(refused).toMatchObject([{ status: 503 }])
})

test('who waits longer than a statement may take is refused, and the others wait on', async () => {
  const { call, refused } = calling(0, ['a'])
  await pass(6_000)
  call('a')
  await pass(4_000)
  expect(refused).toEqual([expect.any(ApiError)])
  expect(refused).toMatchObject([{ status: 503, code: 'temporarily_unavailable', retryable: true }])
  await pass(6_000)
  expect(refused).toHaveLength(2)
})
