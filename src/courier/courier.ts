// The loop of the courier: claims what is due, hands it to be delivered, and claims again. In come queues, one for each kind of
// thing that is owed; out goes something that can be woken and stopped, or one run that ends by itself. It knows neither what
// it carries nor where to.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'

/** One kind of thing that is owed, such as webhooks. */
export type Queue<Owed extends { id: string }> = {
  name: string
  /** How many are under way at once. */
  concurrency: number
  /** How many one bounded run may claim. */
  maxPerRun: number
  /** At most so many that are due, claimed for us: another courier has others. */
  claim(limit: number): Promise<Owed[]>
  /** A batch of the work behind which there is something to claim; true when there is more of it to do at once. Called at each
   * poll, and not when woken: claiming does a little of it by itself. */
  prepare?(): Promise<boolean>
  /** Sends one and says how that went. What it throws is logged; the claim then runs out, and somebody tries again. */
  deliver(owed: Owed): Promise<void>
}

/** Told of each attempt that was settled, by the name of its queue. */
export type Observe = (queue: string, outcome: string, seconds: number) => void

// biome-ignore lint/suspicious/noExplicitAny: queues carry different things, each its own.
export type AnyQueue = Queue<any>

export type Courier = {
  /** Something may be due: look now, and not at the next poll. */
  wake(): void
  /** Claims nothing more, and resolves when what is under way is settled. When the patience is over it is broken off, and has a
   * moment to say so. `breakOff` is called in any case, and lets go of connections. */
  stop(timeoutMs: number, breakOff: () => Promise<void>): Promise<void>
}

// Quiet when there is nothing: one look a second, which is how late a retry or another process's write may be noticed.
const pollMilliseconds = 1_000
// Where the database cannot be reached, it is not asked more often than this in the end.
const longestPauseMilliseconds = 30_000
// For what was broken off to be given back.
const abortGraceMs = 1_000

export function startCourier(queues: readonly AnyQueue[], log: Logger): Courier {
  const running = queues.map((queue) => runLane(queue, log))
  return {
    wake() {
      for (const queue of running) queue.wake()
    },
    async stop(timeoutMs, breakOff) {
      const done = Promise.all(running.map((queue) => queue.finish()))
      await within(timeoutMs, done)
      await breakOff()
      await within(abortGraceMs, done)
      for (const queue of running) queue.abandon()
    },
  }
}

/**
 * One run that ends by itself: when nothing is due any more, or when it has claimed its share or used up its time, and then what
 * is under way is finished.
 * @returns how many were claimed, by queue.
 * @throws what claiming threw.
 */
export async function runCourierOnce(
  queues: readonly AnyQueue[],
  log: Logger,
  milliseconds: number,
): Promise<Record<string, number>> {
  const until = performance.now() + milliseconds
  const counts = queues.map(async (queue) => [queue.name, await runLaneOnce(queue, log, until)] as const)
  // What one queue cannot claim ends no other: whoever waits for this may let go of its connections afterwards.
  await Promise.allSettled(counts)
  return Object.fromEntries(await Promise.all(counts))
}

async function runLaneOnce(queue: AnyQueue, log: Logger, until: number): Promise<number> {
  const inFlight = new Set<Promise<void>>()
  let left = queue.maxPerRun
  let more = true
  try {
    while (left > 0 && performance.now() < until) {
      if (more) more = (await queue.prepare?.()) ?? false
      const free = queue.concurrency - inFlight.size
      const claimed = free > 0 ? await queue.claim(Math.min(left, free)) : []
      left -= claimed.length
      for (const owed of claimed) {
        const carried = queue.deliver(owed).catch((error) => logUnsettled(log, queue, owed, error))
        inFlight.add(carried)
        void carried.then(() => inFlight.delete(carried))
      }
      if (more) continue
      if (inFlight.size === 0) break
      // A place is free then, and its endpoint may be owed more.
      await Promise.race(inFlight)
    }
  } finally {
    await Promise.all(inFlight)
  }
  return queue.maxPerRun - left
}

function runLane<Owed extends { id: string }>(queue: Queue<Owed>, log: Logger) {
  const inFlight = new Set<Promise<void>>()
  const bell = createBell()
  const stopping = new AbortController()
  // What is still under way then is sent again by whoever finds its claim run out.
  let abandoned = false

  async function look(): Promise<void> {
    const free = queue.concurrency - inFlight.size
    if (free === 0) return
    for (const owed of await queue.claim(free)) {
      const carried = queue
        .deliver(owed)
        .catch((error) => {
          if (!abandoned) logUnsettled(log, queue, owed, error)
        })
        .finally(() => {
          inFlight.delete(carried)
          // Its place is free, and its endpoint may be owed more.
          bell.ring()
        })
      inFlight.add(carried)
    }
  }

  const rest = (milliseconds: number) => sleep(milliseconds, undefined, { signal: stopping.signal }).catch(() => {})

  async function untilStopped(work: () => Promise<void>, complaint: string): Promise<void> {
    let failures = 0
    while (!stopping.signal.aborted) {
      try {
        await work()
        failures = 0
      } catch (error) {
        log.error({ err: error, queue: queue.name }, complaint)
        // Whoever rings meanwhile: each of them would only find the same.
        await rest(Math.min(pollMilliseconds * 2 ** failures++, longestPauseMilliseconds))
      }
    }
  }

  const claiming = untilStopped(async () => {
    await look()
    await bell.wait(pollMilliseconds)
  }, 'nothing can be claimed')
  const { prepare } = queue
  const preparing =
    prepare &&
    untilStopped(async () => {
      if (await prepare()) bell.ring()
      else await rest(pollMilliseconds)
    }, 'nothing can be prepared')

  return {
    wake: bell.ring,
    async finish(): Promise<void> {
      stopping.abort()
      bell.ring()
      await Promise.all([claiming, preparing])
      await Promise.all(inFlight)
    },
    abandon() {
      abandoned = true
    },
  }
}

function logUnsettled(log: Logger, queue: AnyQueue, owed: { id: string }, error: unknown): void {
  log.error({ err: error, queue: queue.name, delivery_id: owed.id }, 'delivery could not be settled')
}

/** Rung while nobody waits, it is heard by whoever waits next. */
function createBell() {
  let rung = false
  let answer = () => {}
  return {
    ring() {
      rung = true
      answer()
    },
    async wait(milliseconds: number): Promise<void> {
      if (!rung) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, milliseconds)
          answer = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
      rung = false
    },
  }
}

async function within(milliseconds: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const patience = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds)
  })
  await Promise.race([work, patience])
  clearTimeout(timer)
}
