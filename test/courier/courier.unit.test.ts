// The loop itself, with lanes that carry nothing: what is claimed when, and how it ends.

import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { type AnyQueue, runCourierOnce, startCourier } from '../../src/courier/courier.ts'
import { createLog } from '../../src/process/log.ts'

const log = createLog('silent')
const nothing = async () => {}

const lane = (parts: Partial<AnyQueue>): AnyQueue => ({
  name: 'things',
  concurrency: 2,
  maxPerRun: 5,
  claim: async () => [],
  deliver: async () => {},
  ...parts,
})

/** Claims what is left of so many things. */
function pile(size: number) {
  let left = size
  const claimed: number[] = []
  return {
    claimed,
    claim: async (limit: number) => {
      const n = Math.min(limit, left)
      left -= n
      claimed.push(n)
      return Array.from({ length: n }, (_, i) => ({ id: `${left + i}` }))
    },
  }
}

function slowly(milliseconds: number) {
  let delivered = 0
  return {
    delivered: () => delivered,
    async deliver() {
      await sleep(milliseconds)
      delivered++
    },
  }
}

test('a claim that fails is not repeated by every wake', async () => {
  let claims = 0
  const courier = startCourier([lane({ claim: () => Promise.reject(new Error(`away ${++claims}`)) })], log)
  for (let i = 0; i < 30; i++) {
    courier.wake()
    await sleep(10)
  }
  expect(claims).toBe(1)
  await expect.poll(() => claims).toBe(2)
  // The next would come in two seconds: the stop does not wait for it.
  await courier.stop(60_000, nothing)
  expect(claims).toBe(2)
})

test('a wake is heeded at once, and so is a place that is free', async () => {
  let due = 0
  let looks = 0
  const claim = async (limit: number) => {
    looks++
    const n = Math.min(limit, due)
    due -= n
    return Array.from({ length: n }, (_, i) => ({ id: `${i}` }))
  }
  const { deliver, delivered } = slowly(0)
  const courier = startCourier([lane({ claim, deliver })], log)
  await expect.poll(() => looks).toBe(1)
  const seconds = [0]
  const timer = setInterval(() => seconds.push(looks), 1_000)
  onTestFinished(() => clearInterval(timer))
  due = 199
  courier.wake()
  // A hundred looks for these in pairs, and the poll is one in a second.
  await expect.poll(delivered).toBe(199)
  expect(seconds.length).toBeLessThan(50)
  await courier.stop(1_000, nothing)
})

test('wakes that keep coming are few claims, and the last of them is heeded', async () => {
  let due = 0
  let claims = 0
  const claim = async () => {
    claims++
    const found = due
    due = 0
    return Array.from({ length: found }, (_, i) => ({ id: `${i}` }))
  }
  const { deliver, delivered } = slowly(0)
  const courier = startCourier([lane({ claim, deliver })], log)
  await expect.poll(() => claims).toBe(1)
  let wakes = 0
  for (; wakes < 200; wakes++) {
    courier.wake()
    await nextTurn()
  }
  expect(claims).toBeLessThan(wakes / 10)
  due = 1
  courier.wake()
  await expect.poll(delivered).toBe(1)
  await courier.stop(1_000, nothing)
})

test.each([
  ['what is due came whole, and nothing more is known of, asks for no claim', 1, false, 1],
  ['more is due in its place, asks for the next claim', 1, true, 2],
  ['the claim was given all that it asked for, asks for the next claim', 2, false, 2],
])('a delivery that ends while %s', async (_when, found, more, expected) => {
  let claims = 0
  const claim = async () => (claims++ === 0 ? Array.from({ length: found }, (_, i) => ({ id: `${i}` })) : [])
  let delivered = 0
  const deliver = async () => {
    delivered++
    return more
  }
  const courier = startCourier([lane({ claim, deliver })], log)
  await expect.poll(() => delivered).toBe(found)
  await sleep(100)
  await courier.stop(1_000, nothing)
  expect(claims).toBe(expected)
})

test('one run ends when nothing is due any more, with what was under way', async () => {
  const things = pile(4)
  const { deliver, delivered } = slowly(20)
  expect(await runCourierOnce([lane({ ...things, deliver })], log, 10_000)).toEqual({ things: 4 })
  expect(delivered()).toBe(4)
})

test('one run ends with its share', async () => {
  const things = pile(9)
  expect(await runCourierOnce([lane(things)], log, 10_000)).toEqual({ things: 5 })
  expect(things.claimed.reduce((sum, n) => sum + n)).toBe(5)
})

test('one run ends with its time', async () => {
  const things = pile(9)
  const run = runCourierOnce([lane({ ...things, deliver: () => sleep(1_000) })], log, 500)
  expect(await run).toEqual({ things: 2 })
})

test('one run that cannot claim says so, when what was under way is finished; what cannot be settled does not end it', async () => {
  const things = pile(3)
  let delivered = 0
  const failing = lane({
    claim: (limit) => (things.claimed.length === 1 ? Promise.reject(new Error('away')) : things.claim(limit)),
    deliver: async () => {
      await sleep(delivered++ * 20)
      throw new Error('not settled')
    },
  })
  await expect(runCourierOnce([failing], log, 10_000)).rejects.toThrow('away')
  expect(delivered).toBe(2)
  expect(
    await runCourierOnce([lane({ ...pile(3), deliver: () => Promise.reject(new Error('no')) })], log, 1_000),
  ).toEqual({ things: 3 })
})

test('one run in which one lane cannot claim ends when the others have', async () => {
  const { deliver, delivered } = slowly(20)
  const failing = lane({ name: 'others', claim: () => Promise.reject(new Error('away')) })
  await expect(runCourierOnce([failing, lane({ ...pile(4), deliver })], log, 10_000)).rejects.toThrow('away')
  expect(delivered()).toBe(4)
})

test('whoever is told to stop waits for what is under way, and breaks it off when its time is over', async () => {
  const events: string[] = []
  const [answered, brokenOff] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const deliver = async ({ id }: { id: string }) => {
    events.push(`${id} begun`)
    await (id === '1' ? brokenOff : answered).promise
    events.push(id)
  }
  const courier = startCourier([lane({ ...pile(2), deliver })], log)
  await expect.poll(() => events.splice(0)).toHaveLength(2)
  const stopping = courier.stop(1_000, async () => {
    events.push('broken off')
    brokenOff.resolve()
  })
  answered.resolve()
  await stopping
  expect(events).toEqual(['0', 'broken off', '1'])
})
