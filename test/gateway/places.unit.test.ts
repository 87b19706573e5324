// Who is next when more calls wait than the database works on at once.

import { expect, test } from 'vitest'
import { ApiError } from '../../src/gateway/api-error.ts'
import { createPlaces } from '../../src/gateway/places.ts'

/** Enters for each owner in this order; what began, and what ends the oldest that is not ended yet. */
function entering(mostBusy: number, owners: string[]) {
  const places = createPlaces(mostBusy)
  const begun: string[] = []
  const leaves: (() => void)[] = []
  const all = owners.map(async (owner) => {
    leaves.push(await places.enter(owner))
    begun.push(owner)
  })
  return { places, begun, leaves, all }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('while there are places nobody waits, and owners that wait have their turns in rotation', async () => {
  const { begun, leaves } = entering(2, ['a', 'a', 'a', 'a', 'b', 'c', 'b'])
  await turn()
  expect(begun).toEqual(['a', 'a'])
  for (let i = 0; i < 5; i++) {
    leaves.shift()?.()
    await turn()
  }
  expect(begun).toEqual(['a', 'a', 'a', 'b', 'c', 'a', 'b'])
})

test('calls that take long give their places to those of others, and their owner has no more of them than its share', async () => {
  const { begun, leaves, all } = entering(2, [...Array(8).fill('a'), 'b'])
  await all[8]
  await expect.poll(() => begun.filter((owner) => owner === 'a').length).toBe(6)
  expect(begun).toContain('b')
  for (const leave of leaves.splice(0, 2)) leave()
  await Promise.all(all)
})

test('who waits as long as the Data API lets one wait for a connection is refused as there', async () => {
  const { all, leaves, begun } = entering(1, Array(7).fill('a'))
  const refused = await all[6]?.catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(ApiError)
  expect(refused).toMatchObject({ status: 503, code: 'temporarily_unavailable', retryable: true })
  for (const leave of leaves) leave()
  expect(begun).toHaveLength(6)
})
