// Results of deliveries are recorded in batches: what shares a call, and what becomes of a batch that is refused.

import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { batchResults, settle } from '../../src/courier/settle.ts'
import { ApiError, outOfTime } from '../../src/gateway/api-error.ts'

test('results that come while a call is under way go with the next, in their order', async () => {
  const calls: number[][] = []
  const record = batchResults(async (results: number[]) => {
    calls.push(results)
    await sleep(10)
    return calls.length
  })
  const first = record(1)
  await expect.poll(() => calls).toEqual([[1]])
  const others = [record(2), record(3), record(4)]
  expect(await first).toBe(1)
  expect(await Promise.all(others)).toEqual([2, 2, 2])
  expect(calls).toEqual([[1], [2, 3, 4]])
})

test('a result that is refused does not stop the others', async () => {
  const record = batchResults(async (results: string[]) => {
    if (results.includes('bad')) throw new ApiError(400, 'invalid_input', 'It is refused.')
    return results
  })
  const outcomes = await Promise.allSettled(['a', 'bad', 'b'].map(record))
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})

test('a result that waits for a lock stops neither the others nor later ones', async () => {
  const released = Promise.withResolvers<void>()
  const calls: string[][] = []
  const record = batchResults(async (results: string[]) => {
    calls.push(results)
    if (results.length > 1 && results.includes('locked')) throw outOfTime(undefined, 'Wait.')
    if (results.includes('locked')) await released.promise
    return results
  })
  const locked = record('locked')
  expect(await Promise.all([record('a'), record('b')])).toEqual([['a'], ['b']])
  expect(await record('c')).toEqual(['c'])
  released.resolve()
  expect(await locked).toEqual(['locked'])
  expect(calls).toEqual([['locked', 'a', 'b'], ['locked'], ['a'], ['b'], ['c']])
})

test.each([outOfTime(undefined, 'Wait.'), new ApiError(500, 'internal_error', 'It broke.')])(
  'after $code a batch is not sent again, but a single result is',
  async (error) => {
    const calls: number[] = []
    const rpc = async (_fn: string, { results }: Record<string, unknown>) => {
      calls.push((results as number[]).length)
      if (calls.length < 3) throw error
    }
    await expect(settle(rpc, 'settle_emails', { results: [1, 2] })).rejects.toBe(error)
    await settle(rpc, 'settle_emails', { results: [1] })
    expect(calls).toEqual([2, 1, 1])
  },
)

test('a batch whose call fails is repeated by nobody here, and the next is recorded', async () => {
  let isAway = true
  let calls = 0
  const record = batchResults(async (results: string[]) => {
    calls++
    if (isAway) throw new ApiError(503, 'unavailable', 'It is away.')
    return results
  })
  const outcomes = await Promise.allSettled(['a', 'b'].map(record))
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(calls).toBe(1)
  isAway = false
  expect(await record('c')).toEqual(['c'])
})
