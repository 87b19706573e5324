// When the database is probed, and what becomes of calls while a probe has no answer.

import { beforeEach, expect, test, vi } from 'vitest'
import { createDatabaseHealth } from '../../src/gateway/database-health.ts'
import type { ProbeResult } from '../../src/gateway/database-probe.ts'

beforeEach(() => {
  vi.useFakeTimers()
  return () => vi.useRealTimers()
})

const answered: ProbeResult = { kind: 'answered' }
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms)
const callOf = (ms: number) => () => new Promise<void>((resolve) => setTimeout(resolve, ms))

test('a probe is shared by all who ask, and kept for about a second', async () => {
  const probe = vi.fn(async () => answered)
  const health = createDatabaseHealth(probe)
  expect(await Promise.all(Array.from({ length: 100 }, () => health.isReady()))).toEqual(Array(100).fill(true))
  expect(await health.isReady()).toBe(true)
  expect(probe).toHaveBeenCalledTimes(1)
  await pass(1_100)
  await health.isReady()
  expect(probe).toHaveBeenCalledTimes(2)
})

test('none is made while no call waits or fails, and one a second while one waits', async () => {
  const probe = vi.fn(async () => answered)
  const health = createDatabaseHealth(probe)
  for (let i = 0; i < 20; i++) await Promise.all([health.during(callOf(50)), pass(50)])
  await pass(1_000)
  expect(probe).not.toHaveBeenCalled()
  await Promise.all([health.during(callOf(3_000)), pass(3_000)])
  expect(probe.mock.calls.length).toBeGreaterThanOrEqual(2)
  expect(probe.mock.calls.length).toBeLessThanOrEqual(4)
})

test('once a probe has been unanswered for five seconds calls are refused, until it is answered', async () => {
  const answer = Promise.withResolvers<ProbeResult>()
  const health = createDatabaseHealth(() => answer.promise)
  const first = health.during(callOf(20_000))
  await pass(6_000)
  const call = vi.fn(async () => {})
  await expect(health.during(call)).rejects.toMatchObject({ status: 503, code: 'temporarily_unavailable' })
  expect([await health.isReady(), call.mock.calls]).toEqual([false, []])
  answer.resolve(answered)
  await pass(0)
  await health.during(call)
  expect(call).toHaveBeenCalledTimes(1)
  await pass(20_000)
  await first
})
