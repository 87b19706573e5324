// The delivery loop: polls each queue, claims what is due, delivers it, and claims again when more may be due. It knows neither
// what a queue carries nor where that goes.

import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'

/** One kind of pending work, such as webhooks. */
export type Queue<Item extends { id: string }> = {
  name: string
  /** Most deliveries in flight at once. */
  concurrency: number
  /** Most items that one bounded run claims. */
  maxPerRun: number
  /** Not claimed on `wake`, but at each poll: what the API writes makes nothing due. */
  onlyPolled?: true
  /** Claims at most `limit` items that are due. Another courier gets others. */
  claim(limit: number): Promise<Item[]>
  /** Does one batch of the work that makes items claimable. True: there is more, call again at once. Called at each poll, not on
   * `wake`: claiming does a little of this work itself. */
  prepare?(): Promise<boolean>
  /** Delivers one item and settles it. True: more may be due in its place, although the last claim came back with less than it
   * asked for. An error is logged; the claim then expires, and the item is delivered again. */
  deliver(item: Item): Promise<unknown>
}

/** Called after each settled attempt, with the name of its queue. */
export type Observe = (queue: string, outcome: string, seconds: number) => void

// biome-ignore lint/suspicious/noExplicitAny: each queue carries a type of its own.
export type AnyQueue = Queue<any>

export type Courier = {
  /** Claims soon instead of at the next poll, because something may be due: at once when idle, while wakes keep coming after a rest. */
  wake(): void
  /** Claims nothing more, and resolves when all deliveries in flight are settled. Those that take longer than `timeoutMs` are aborted and
   * have a moment to settle. `abort` is called in any case: it also closes connections. */
  stop(timeoutMs: number, abort: () => Promise<void>): Promise<void>
}

// Cheap while idle: one query a second, which bounds how late a retry or another process's write is noticed.
const pollIntervalMs = 1_000
// Upper bound of the backoff while the database cannot be reached.
const maxBackoffMs = 30_000
// How long wakes rest after a claim, so that a burst of writes does not become a burst of claims: after one that found something for
// ten times as long as it took, after one that found nothing for twice as long as the time before. At most a quarter of a second,
// and not at all after a poll that found nothing.
const restPerClaim = 10
const minRestMs = 25
const maxRestMs = 250
// Share of the concurrency that is claimed at once while there is a backlog, unless wakes have rested.
const placesPerClaim = 1 / 4
// For aborted deliveries to release their claims.
const abortGraceMs = 1_000

export function startCourier(queues: readonly AnyQueue[], log: Logger): Courier {
  const loops = queues.map((queue) => pollQueue(queue, log))
  return {
    wake() {
      for (const loop of loops) loop.wake()
    },
    async stop(timeoutMs, abort) {
      const done = Promise.all(loops.map((loop) => loop.finish()))
      await within(timeoutMs, done)
      await abort()
      await within(abortGraceMs, done)
      for (const loop of loops) loop.abandon()
    },
  }
}

/**
 * One bounded run: it ends when nothing is due any more, when a queue has claimed `maxPerRun`, or when the time is used up; deliveries
 * in flight are then finished.
 * @returns how many items were claimed, by queue.
 * @throws what claiming threw.
 */
export async function runCourierOnce(
  queues: readonly AnyQueue[],
  log: Logger,
  durationMs: number,
): Promise<Record<string, number>> {
  const until = performance.now() + durationMs
  const counts = queues.map(async (queue) => [queue.name, await runQueueOnce(queue, log, until)] as const)
  // A queue that fails to claim does not end the others: the caller may close their connections once this settles.
  await Promise.allSettled(counts)
  return Object.fromEntries(await Promise.all(counts))
}

async function runQueueOnce(queue: AnyQueue, log: Logger, until: number): Promise<number> {
  const deliveries = trackDeliveries(queue, log)
  let left = queue.maxPerRun
  let hasMoreToPrepare = true
  try {
    while (left > 0 && performance.now() < until) {
      if (hasMoreToPrepare) hasMoreToPrepare = (await queue.prepare?.()) ?? false
      left -= await deliveries.claim(left)
      if (hasMoreToPrepare) continue
      if (deliveries.inFlight() === 0) break
      await deliveries.next()
    }
  } finally {
    await deliveries.all()
  }
  return queue.maxPerRun - left
}

function pollQueue(queue: AnyQueue, log: Logger) {
  const wakeUp = createWakeUp()
  const burst = createBurst(wakeUp.notify)
  const deliveries = trackDeliveries(queue, log, claimMore)
  const stopping = new AbortController()
  const pause = (ms: number) => sleep(ms, undefined, { signal: stopping.signal }).catch(() => {})

  /** With a backlog a claim waits for some places, since one of many costs little more than one of a few. */
  function claimMore(): void {
    if (deliveries.inFlight() <= queue.concurrency * (1 - placesPerClaim)) wakeUp.notify()
    else burst.wake()
  }

  async function untilStopped(work: () => Promise<void>, failure: string): Promise<void> {
    let failures = 0
    while (!stopping.signal.aborted) {
      try {
        await work()
        failures = 0
      } catch (error) {
        log.error({ err: error, queue: queue.name }, failure)
        // A wake-up does not shorten this: the next attempt would most likely fail as well.
        await pause(Math.min(pollIntervalMs * 2 ** failures++, maxBackoffMs))
      }
    }
  }

  const claiming = untilStopped(async () => {
    await burst.during(() => deliveries.claim())
    await wakeUp.wait(pollIntervalMs)
    // All deliveries that end in this turn are counted first.
    await nextTurn()
  }, 'claim failed')
  const { prepare } = queue
  const preparing =
    prepare &&
    untilStopped(async () => {
      const startedAt = performance.now()
      const hasMore = await prepare()
      if (hasMore) claimMore()
      // A backlog takes half of one connection's time, so that it delays no other query for long.
      await pause(hasMore ? performance.now() - startedAt : pollIntervalMs)
    }, 'prepare failed')

  return {
    wake: queue.onlyPolled ? () => {} : burst.wake,
    async finish(): Promise<void> {
      stopping.abort()
      burst.end()
      wakeUp.notify()
      await Promise.all([claiming, preparing])
      await deliveries.all()
    },
    abandon: deliveries.abandon,
  }
}

/** Turns wakes into few claims. @param notify starts the next claim. */
function createBurst(notify: () => void) {
  let isWoken = false
  let isClaiming = false
  let restMs = 0
  let restUntil = 0
  let timer: NodeJS.Timeout | undefined

  function arm(): void {
    if (isClaiming || timer !== undefined) return
    const left = restUntil - performance.now()
    if (left > 0) timer = setTimeout(notify, left)
    else notify()
  }

  return {
    wake(): void {
      if (isWoken) return
      isWoken = true
      arm()
    },
    /** @param claim resolves with how many it claimed. */
    async during(claim: () => Promise<number>): Promise<void> {
      const wasWoken = isWoken
      clearTimeout(timer)
      timer = undefined
      isWoken = false
      isClaiming = true
      const startedAt = performance.now()
      let claimed = 0
      try {
        claimed = await claim()
      } finally {
        const now = performance.now()
        const longer = claimed > 0 ? restPerClaim * (now - startedAt) : wasWoken ? 2 * restMs : 0
        restMs = claimed > 0 || wasWoken ? Math.min(Math.max(longer, minRestMs), maxRestMs) : 0
        restUntil = now + restMs
        isClaiming = false
        if (isWoken) arm()
      }
    },
    end: () => clearTimeout(timer),
  }
}

/**
 * The deliveries of one queue that are in flight, never more than its concurrency.
 * @param onMore called when one ends and more may be due in its place.
 */
function trackDeliveries(queue: AnyQueue, log: Logger, onMore = () => {}) {
  const inFlight = new Set<Promise<void>>()
  let isAbandoned = false
  // Whether the last claim was given all that it asked for, or had no place to ask for.
  let hasMore = false

  function start(item: { id: string }): void {
    let isMore = false
    const delivery = queue
      .deliver(item)
      .then((more) => {
        isMore = more === true
      })
      .catch((error) => {
        if (isAbandoned) return
        log.error({ err: error, queue: queue.name, delivery_id: item.id }, 'delivery could not be settled')
      })
      .finally(() => {
        inFlight.delete(delivery)
        if (isMore || hasMore) onMore()
      })
    inFlight.add(delivery)
  }

  return {
    /** Claims as many as there are free slots, at most `limit`, and starts to deliver them. @returns how many. */
    async claim(limit = queue.concurrency): Promise<number> {
      const free = Math.min(limit, queue.concurrency - inFlight.size)
      hasMore = free === 0
      if (hasMore) return 0
      const items = await queue.claim(free)
      hasMore = items.length === free
      for (const item of items) start(item)
      return items.length
    },
    inFlight: () => inFlight.size,
    /** Resolves when the next one ends. */
    next: () => Promise.race(inFlight),
    all: () => Promise.all(inFlight),
    /** Those still in flight are no longer reported: their claims expire, and another courier delivers them again. */
    abandon() {
      isAbandoned = true
    },
  }
}

/** Ends a wait early. A notification while nobody waits ends the next wait. */
function createWakeUp() {
  let isNotified = false
  let endWait = () => {}
  return {
    notify() {
      isNotified = true
      endWait()
    },
    async wait(ms: number): Promise<void> {
      if (!isNotified) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms)
          endWait = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
      isNotified = false
    },
  }
}

async function within(timeoutMs: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, timeoutMs)
  })
  await Promise.race([work, timeout])
  clearTimeout(timer)
}
