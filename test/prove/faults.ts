// Faults, one after the other, while clients are at work.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Cut } from './proxy.ts'
import type { Random } from './random.ts'
import type { ProveStack } from './stack.ts'

/** What was done, and when, in milliseconds of the history. */
export type Fault = { what: string; from: number; until: number; touchesCourier: boolean }

/** One fault in place of all that connections have. */
export type Aim = { target: string; how: Cut }

const hour = 3_600_000
const clockSteps = [hour, -hour, 24 * hour, -24 * hour]
const mebibyte = 2 ** 20
// The first leaves the write-ahead log room, whose files have 16 MiB, and so refuses single statements; the second stops Postgres as a whole.
const fileLimits = [16 * mebibyte, mebibyte]

const courierStandsAside = ['API 1', 'API 2', 'Redis', 'client–API 1', 'client–API 2', 'API–Redis']

const weights = { connection: 10, backend: 2, stop: 4, kill: 4, clock: 2, disk: 1 }
/** What it touches, what to say, and what ends later. */
type Begun = { target: string; what: string; lasts?: Promise<void> | undefined }

/** @returns what was done, when all of it is over. */
export async function wreak(
  stack: ProveStack,
  random: Random,
  options: {
    pause: number
    aim?: Aim | undefined
    /** Parts that are killed for certain, before chance decides. */
    kill?: string[] | undefined
    isOver(): boolean
    now(): number
    say(line: string): void
  },
): Promise<Fault[]> {
  const { pause, aim, kill = [], isOver, now, say } = options
  const certain = [...kill]
  const done: Fault[] = []
  const lasting: Promise<void>[] = []
  const names = Object.keys(stack.proxies)

  const kinds: Record<keyof typeof weights, () => Begun> = {
    connection() {
      const target = aim?.target ?? random.one(names)
      const proxy = stack.proxies[target]
      const how = aim?.how ?? random.pick(proxy?.cuts ?? []) ?? 'drop'
      const milliseconds = duration()
      return { target, what: `${how} ${target} ${milliseconds} ms`, lasts: proxy?.cut(how, milliseconds) }
    },
    backend() {
      const isThere = stack.killBackend(random.below(100))
      return { target: 'Postgres', what: `SIGKILL a backend${isThere ? '' : ', of which there was none'}` }
    },
    stop() {
      const target = random.one(stack.parts)
      const milliseconds = duration()
      const isThere = stack.signal(target, 'SIGSTOP')
      const lasts = sleep(milliseconds).then(() => void stack.signal(target, 'SIGCONT'))
      return { target, what: `SIGSTOP ${target} ${milliseconds} ms${isThere ? '' : ', which did not run'}`, lasts }
    },
    kill() {
      const target = certain.shift() ?? random.one(stack.parts)
      const isThere = stack.signal(target, 'SIGKILL')
      return { target, what: `SIGKILL ${target}${isThere ? '' : ', which did not run'}` }
    },
    clock() {
      const target = random.one(stack.clocks)
      const step = random.one(clockSteps)
      const milliseconds = duration()
      stack.setClock(target, step)
      const lasts = sleep(milliseconds).then(() => stack.setClock(target, 0))
      return { target, what: `the clock of ${target} is ${step / hour} h off ${milliseconds} ms`, lasts }
    },
    disk() {
      const bytes = random.one(fileLimits)
      const milliseconds = duration()
      const isThere = stack.limitFiles(bytes)
      const lasts = sleep(milliseconds).then(() => void stack.limitFiles(undefined))
      const what = `no file beyond ${bytes / mebibyte} MiB ${milliseconds} ms${isThere ? '' : ', which cannot be had'}`
      return { target: 'Postgres', what, lasts }
    },
  }
  const duration = () => random.between(100, 1500)

  while (!isOver()) {
    await sleep(random.between(pause * 500, pause * 1500))
    if (isOver()) break
    const from = now()
    const { target, what, lasts } = kinds[certain.length > 0 ? 'kill' : random.weighted(weights)]()
    const fault = { what, from, until: from, touchesCourier: !courierStandsAside.includes(target) }
    done.push(fault)
    say(what)
    const end = lasts?.then(() => {
      fault.until = now()
    })
    if (end) lasting.push(end)
  }
  await Promise.all(lasting)
  // What was stopped, then killed and started again in between, was not woken; nor does it need to be.
  for (const part of stack.parts) stack.signal(part, 'SIGCONT')
  return done
}
