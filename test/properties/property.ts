// How properties are run: a few random cases each time, as many as are wanted for a soak, and again the one that failed.
//
//   USHER_PROPERTY_RUNS=500 vitest run test/properties                     many cases, for hours if need be
//   USHER_PROPERTY_SEED=-1234 vitest run test/properties/money.test.ts     the same cases again
//   USHER_PROPERTY_SEED=-1234:7:0:1 vitest run …                           the one case at the end of that path
//
// A failure says which seed and path to give. What clients did at the same time may come out otherwise in another run: give
// the seed with a high number of runs then.

import fc from 'fast-check'

/** One case may take this long, and as long again is spent on making a case that failed smaller. */
const secondsPerRun = 30
const secondsForShrinking = 30

const [seed, ...path] = (process.env.USHER_PROPERTY_SEED ?? '').split(':')

/** How many cases: what a test takes as its usual number, unless a soak says otherwise. */
const runs = (usual: number) => Number(process.env.USHER_PROPERTY_RUNS ?? usual)

const limit = (usual: number) => (runs(usual) * secondsPerRun + secondsForShrinking) * 1000

/** Options of a test that has this usual number of cases. */
export const withTime = (usual: number) => ({ timeout: limit(usual) + 30_000 })

/**
 * @param endOnFailure the first case that fails is the one to tell of: a smaller one is looked for only where the same case
 * always has the same end.
 * @throws with the smallest case found, what went wrong in it, and how to run it again.
 */
export async function expectProperty<Case>(
  usual: number,
  property: fc.IAsyncProperty<Case>,
  { endOnFailure = false } = {},
): Promise<void> {
  const details = await fc.check(property, {
    numRuns: runs(usual),
    endOnFailure,
    plugins: [fc.interruptAfterTimeLimit(limit(usual), { failOnInterrupt: true })],
    ...(seed && { seed: Number(seed) }),
    ...(path.length > 0 && { path: path.join(':') }),
  })
  if (!details.failed) return
  const again = [details.seed, details.counterexamplePath].filter((part) => part !== null).join(':')
  throw new Error(`${await fc.asyncDefaultReportMessage(details)}\n\nAgain: USHER_PROPERTY_SEED=${again}`, {
    cause: details.errorInstance,
  })
}
