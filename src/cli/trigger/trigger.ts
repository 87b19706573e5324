// `usher trigger`: makes what a type of notification tells of really happen, by the calls that an integrator makes. Never in a live organisation.

import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '../client.ts'
import { CommandError } from '../command-error.ts'
import { type Given, givenConnection, type Surroundings } from '../given.ts'
import { type Act, recipes, steps, type Until } from './recipes.ts'

type Key = { data: { prefix: string; organisation: { name: string } } }
type Thing = { object: string; id: string; status: string }

const pollMs = 500
const mostPolls = 60

/** @throws CommandError */
export async function trigger(type: keyof typeof recipes, given: Given, around: Surroundings): Promise<void> {
  const client = createClient(await givenConnection(given, around), around.say, new AbortController().signal)
  const { prefix, organisation } = (await client.call<Key>('GET', '/me')).data
  // As the database has it, which lets no key of a live organisation begin so.
  if (!prefix.startsWith('usher_test_')) {
    throw new CommandError(
      1,
      `${organisation.name} is a live organisation, so nothing was done. Use a test organisation.`,
    )
  }
  const act: Act = async (method, path, body = {}) => {
    const { data } = await client.call<{ data: Thing & Awaited<ReturnType<Act>> }>(method, path, body, randomUUID())
    around.print(`${method} /api/v1${path}  ${data.object} ${data.id}`)
    return data
  }
  const until: Until = async (path, status) => {
    for (let polls = 0; polls < mostPolls; polls++) {
      const { data } = await client.call<{ data: Thing | Thing[] }>('GET', path)
      if ([data].flat()[0]?.status === status) return
      await sleep(pollMs)
    }
    throw new CommandError(1, `${path} is not ${status} after ${(mostPolls * pollMs) / 1_000} s. Does a courier run?`)
  }
  await recipes[type](steps(act, until))
  around.print(`${type} is in the log of ${organisation.name}.`)
}
