// The loop itself, with lanes that carry nothing: what is claimed when, and how it ends.

import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
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

/** A poll that finds something due in the first lane so many times. */
function polls(times = 1) {
  let polled = 0
  return { polled: () => polled, poll: async () => (polled++ < times ? ['things'] : []) }
}

test('only the lanes that the poll names are claimed', async () => {
  const claimed: string[] = []
  const lanes = ['things', 'others'].map((name) =>
    lane({ name, claim: async () => [void claimed.push(name)].slice(1) as never }),
  )
  const { poll, polled } = polls()
  const courier = startCourier(lanes, poll, log)
  await expect.poll(polled).toBe(2)
  await courier.stop(1_000, nothing)
  expect(claimed).toEqual(['things'])
})

test.each(['claim', 'poll'])(
  'a %s that fails is tried again later, and a stop does not wait for that',
  async (part) => {
    let tried = 0
    const fail = () => Promise.reject(new Error(`away ${++tried}`))
    const courier =
      part === 'claim'
        ? startCourier([lane({ claim: fail })], async () => ['things'], log)
        : startCourier([lane({})], fail, log)
    await expect.poll(() => tried).toBe(2)
    // The next would come in two seconds.
    await courier.stop(60_000, nothing)
    expect(tried).toBe(2)
  },
)

test('a backlog is claimed without waiting for a poll', async () => {
  const things = pile(199)
  const { deliver, delivered } = slowly(0)
  const { poll, polled } = polls()
  const courier = startCourier([lane({ ...things, deliver })], poll, log)
  // A hundred claims for these in pairs, and the poll is one in a second.
  await expect.poll(delivered).toBe(199)
  expect(polled()).toBeLessThan(50)
  await courier.stop(1_000, nothing)
})

test('what others leave of the places is claimed for, while they take long', async () => {
  const things = pile(20)
  const long = Promise.withResolvers<void>()
  let delivered = 0
  const deliver = async () => {
    if (++delivered <= 7) await long.promise
  }
  const courier = startCourier([lane({ ...things, concurrency: 8, deliver })], polls().poll, log)
  await expect.poll(() => delivered).toBe(20)
  long.resolve()
  await courier.stop(1_000, nothing)
})

test('while more is in flight than may be by now, nothing is claimed', async () => {
  const things = pile(20)
  let concurrency = 8
  const deliver = async () => {
    concurrency = 2
    await sleep(1)
  }
  const changing = lane({ ...things, deliver })
  Object.defineProperty(changing, 'concurrency', { get: () => concurrency })
  const courier = startCourier([changing], polls().poll, log)
  await expect.poll(() => things.claimed.reduce((sum, n) => sum + n, 0)).toBe(20)
  await courier.stop(1_000, nothing)
  expect(Math.min(...things.claimed)).toBeGreaterThanOrEqual(0)
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
  const courier = startCourier([lane({ claim, deliver })], polls().poll, log)
  await expect.poll(() => delivered).toBe(found)
  await sleep(100)
  await courier.stop(1_000, nothing)
  expect(claims).toBe(expected)
})

test('one run ends when nothing is due any more, with what was under way; or with its share; or with its time', async () => {
  const { deliver, delivered } = slowly(20)
  expect(await runCourierOnce([lane({ ...pile(4), deliver })], log, 10_000)).toEqual({ things: 4 })
  expect(delivered()).toBe(4)

  const things = pile(9)
  expect(await runCourierOnce([lane(things)], log, 10_000)).toEqual({ things: 5 })
  expect(things.claimed.reduce((sum, n) => sum + n)).toBe(5)

  const slow = lane({ ...pile(9), deliver: () => sleep(1_000) })
  expect(await runCourierOnce([slow], log, 500)).toEqual({ things: 2 })
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
  const courier = startCourier([lane({ ...pile(2), deliver })], polls().poll, log)
  await expect.poll(() => events.splice(0)).toHaveLength(2)
  const stopping = courier.stop(1_000, async () => {
    events.push('broken off')
    brokenOff.resolve()
  })
  answered.resolve()
  await stopping
  expect(events).toEqual(['0', 'broken off', '1'])
})
