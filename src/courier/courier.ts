// The loop of the courier: claims what is due, hands it to be delivered, and claims again. In come lanes, one for each kind of
// thing that is owed; out goes something that can be nudged and stopped. It knows neither what it carries nor where to.

import type { Logger } from 'pino'

/** One kind of thing that is owed, such as webhooks. */
export type Lane<Owed extends { id: string }> = {
  name: string
  /** How many are under way at once. */
  atOnce: number
  /** At most so many that are due, claimed for us: another courier has others. */
  claim(limit: number): Promise<Owed[]>
  /** Sends one and says how that went. What it throws is logged; the claim then runs out, and somebody tries again. */
  deliver(owed: Owed): Promise<void>
}

export type Courier = {
  /** Something may be due: look now, and not at the next poll. */
  nudge(): void
  /** Claims nothing more, and resolves when what is under way is settled or the patience is over. */
  stop(patienceMilliseconds: number): Promise<void>
}

// Quiet when there is nothing: one look a second, which is how late a retry or another process's write may be noticed.
const pollMilliseconds = 1_000
// Where the database cannot be reached, it is not asked more often than this in the end.
const longestPauseMilliseconds = 30_000

// biome-ignore lint/suspicious/noExplicitAny: lanes carry different things, each its own.
export function startCourier(lanes: readonly Lane<any>[], log: Logger): Courier {
  const running = lanes.map((lane) => runLane(lane, log))
  return {
    nudge() {
      for (const lane of running) lane.wake()
    },
    async stop(patienceMilliseconds) {
      await Promise.all(running.map((lane) => lane.stop(patienceMilliseconds)))
    },
  }
}

function runLane<Owed extends { id: string }>(lane: Lane<Owed>, log: Logger) {
  const underWay = new Set<Promise<void>>()
  const bell = createBell()
  let stopping = false
  // What is still under way then is sent again by whoever finds its claim run out.
  let abandoned = false
  let failures = 0

  async function carry(owed: Owed): Promise<void> {
    try {
      await lane.deliver(owed)
    } catch (error) {
      if (!abandoned) log.error({ err: error, lane: lane.name, delivery_id: owed.id }, 'delivery could not be settled')
    }
  }

  /** @returns how long to wait for the next look, unless the bell rings before. */
  async function look(): Promise<number> {
    const free = lane.atOnce - underWay.size
    if (free === 0) return pollMilliseconds
    try {
      const claimed = await lane.claim(free)
      failures = 0
      for (const owed of claimed) {
        const carried = carry(owed).finally(() => {
          underWay.delete(carried)
          // Its place is free, and its endpoint may be owed more.
          bell.ring()
        })
        underWay.add(carried)
      }
      return pollMilliseconds
    } catch (error) {
      failures += 1
      log.error({ err: error, lane: lane.name }, 'nothing can be claimed')
      return Math.min(pollMilliseconds * 2 ** failures, longestPauseMilliseconds)
    }
  }

  const loop = (async () => {
    while (!stopping) await bell.wait(await look())
  })()

  return {
    wake: bell.ring,
    async stop(patienceMilliseconds: number) {
      stopping = true
      bell.ring()
      await within(
        patienceMilliseconds,
        loop.then(() => Promise.all(underWay)),
      )
      abandoned = true
    },
  }
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
