// Results of deliveries are recorded in batches: what shares a call, and what becomes of a batch that is refused.

import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { ApiError } from '../../src/gateway/api-error.ts'
import { batchResults } from '../../src/gateway/courier-rpc.ts'

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
