// Chance that can be had again: numbers from a seed.

export type Random = ReturnType<typeof createRandom>

export function createRandom(seed: number) {
  let state = seed >>> 0
  /** mulberry32: from 0 to below 1. */
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  /** A whole number from 0 to below n. */
  const below = (n: number) => Math.floor(next() * n)
  return {
    next,
    below,
    between: (least: number, most: number) => least + below(most - least + 1),
    pick: <T>(from: readonly T[]): T | undefined => from[below(from.length)],
    /** One of a list that is not empty. */
    one: <T>(from: readonly T[]): T => from[below(from.length)] as T,
    /** A name, each as often as it weighs. */
    weighted<Name extends string>(weights: Record<Name, number>): Name {
      const all = Object.entries(weights) as [Name, number][]
      let at = below(all.reduce((sum, [, weight]) => sum + weight, 0))
      for (const [name, weight] of all) {
        if (at < weight) return name
        at -= weight
      }
      throw new Error('nothing weighs anything')
    },
  }
}
