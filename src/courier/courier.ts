// The delivery loop: one poll says which queues have something due; each of these claims it, delivers it, and claims again when more
// may be due. It knows neither what a queue carries nor where that goes.

import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'

/** One kind of pending work, such as webhooks. */
export type Queue<Item extends { id: string }> = {
  name: string
  /** Most deliveries in flight at once; it may change. */
  concurrency: number
  /** Most items that one bounded run claims. */
  maxPerRun: number
  /** Claims at most `limit` items that are due. Another courier gets others. */
  claim(limit: number): Promise<Item[]>
  /** As how many of `maxPerRun` an item counts: one unless it says so. */
  sizeOf?(item: Item): number
  /** Delivers one item and settles it. True: more may be due in its place, although the last claim came back with less than it
   * asked for. An error is logged; the claim then expires, and the item is delivered again. */
  deliver(item: Item): Promise<unknown>
}

/** Called after each settled attempt, with the name of its queue. */
export type Observe = (queue: string, outcome: string, seconds: number) => void

// biome-ignore lint/suspicious/noExplicitAny: each queue carries a type of its own.
export type AnyQueue = Queue<any>

/** @returns the names of the queues that have something due. */
export type Poll = () => Promise<string[]>

export type Courier = {
  /** Claims nothing more, and resolves when all deliveries in flight are settled. Those that take longer than `timeoutMs` are aborted and
   * have a moment to settle. `abort` is called in any case: it also closes connections. */
  stop(timeoutMs: number, abort: () => Promise<void>): Promise<void>
}

// Cheap while idle: one query a second for all queues, which bounds how late a write or a retry is noticed.
const pollIntervalMs = 1_000
// Upper bound of the backoff while the database cannot be reached.
const maxBackoffMs = 30_000
// Share of the concurrency that is claimed at once while there is a backlog; fewer after this rest.
const placesPerClaim = 1 / 4
const restMs = 100
// For aborted deliveries to release their claims.
const abortGraceMs = 1_000

export function startCourier(queues: readonly AnyQueue[], poll: Poll, log: Logger): Courier {
  const stopping = new AbortController()
  const loops = queues.map((queue) => serveQueue(queue, stopping.signal, log))
  const polling = untilStopped(stopping.signal, log, 'poll failed', async () => {
    const due = await poll()
    for (const loop of loops) if (due.includes(loop.name)) loop.wake()
    await pause(pollIntervalMs, stopping.signal)
  })
  return {
    async stop(timeoutMs, abort) {
      stopping.abort()
      const done = Promise.all([polling, ...loops.map((loop) => loop.finish())])
      await Promise.race([done, sleep(timeoutMs)])
      await abort()
      await Promise.race([done, sleep(abortGraceMs)])
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
  try {
    while (left > 0 && performance.now() < until) {
      left -= await deliveries.claim(left)
      if (deliveries.inFlight() === 0) break
      await deliveries.next()
    }
  } finally {
    await deliveries.all()
  }
  return queue.maxPerRun - left
}

function serveQueue(queue: AnyQueue, stopping: AbortSignal, log: Logger) {
  const toClaim = createWakeUp()
  const deliveries = trackDeliveries(queue, log, claimMore)
  const queueLog = log.child({ queue: queue.name })
  let rest: NodeJS.Timeout | undefined

  /** With a backlog a claim waits for some places, since one of many costs little more than one of a few. */
  function claimMore(): void {
    if (deliveries.inFlight() <= queue.concurrency * (1 - placesPerClaim)) toClaim.notify()
    else rest ??= setTimeout(toClaim.notify, restMs)
  }

  const claiming = untilStopped(stopping, queueLog, 'claim failed', async () => {
    await toClaim.wait()
    if (stopping.aborted) return
    // All deliveries that end in this turn are counted first.
    await nextTurn()
    clearTimeout(rest)
    rest = undefined
    await deliveries.claim()
  })
  return {
    name: queue.name,
    wake: toClaim.notify,
    async finish(): Promise<void> {
      toClaim.notify()
      await claiming
      clearTimeout(rest)
      await deliveries.all()
    },
  }
}

/** Repeats `work`, after a failure with a growing pause: the next attempt would most likely fail as well. */
async function untilStopped(stopping: AbortSignal, log: Logger, failure: string, work: () => Promise<void>) {
  let failures = 0
  while (!stopping.aborted) {
    try {
      await work()
      failures = 0
    } catch (error) {
      log.error({ err: error }, failure)
      await pause(Math.min(pollIntervalMs * 2 ** failures++, maxBackoffMs), stopping)
    }
  }
}

const pause = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal }).catch(() => {})

/**
 * The deliveries of one queue that are in flight, never more than its concurrency.
 * @param onMore called when one ends and more may be due in its place.
 */
function trackDeliveries(queue: AnyQueue, log: Logger, onMore = () => {}) {
  const inFlight = new Set<Promise<void>>()
  // Whether the last claim was given all that it asked for, or had no place to ask for.
  let hasMore = false

  function start(item: { id: string }): void {
    const delivery = queue
      .deliver(item)
      .catch((error) => {
        log.error({ err: error, queue: queue.name, delivery_id: item.id }, 'delivery could not be settled')
      })
      .then((more) => {
        inFlight.delete(delivery)
        if (more === true || hasMore) onMore()
      })
    inFlight.add(delivery)
  }

  return {
    /** Claims as many as there are free slots, at most `limit`, and starts to deliver them. @returns how many of `maxPerRun` they count as. */
    async claim(limit = queue.concurrency): Promise<number> {
      const free = Math.min(limit, queue.concurrency - inFlight.size)
      // Less than none when fewer are delivered at once than before.
      hasMore = free <= 0
      if (hasMore) return 0
      const items = await queue.claim(free)
      hasMore = items.length === free
      for (const item of items) start(item)
      return items.reduce((sum, item) => sum + (queue.sizeOf?.(item) ?? 1), 0)
    },
    inFlight: () => inFlight.size,
    /** Resolves when the next one ends. */
    next: () => Promise.race(inFlight),
    all: () => Promise.all(inFlight),
  }
}

/** A notification while nobody waits ends the next wait. */
function createWakeUp() {
  let next = Promise.withResolvers<void>()
  return {
    notify: () => next.resolve(),
    async wait(): Promise<void> {
      await next.promise
      next = Promise.withResolvers()
    },
  }
}
