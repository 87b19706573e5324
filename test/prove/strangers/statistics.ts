// Whether two samples of times differ, after dudect: Welch's t on what is left when the slower half is cut off, whose noise is not of the
// thing that is measured.

export type Comparison = {
  /** Above `threshold` in absolute value: they differ. */
  t: number
  /** Of the means, in the unit of the samples. */
  difference: number
  /** The smallest difference that would have been found in 95 of 100 runs. */
  found: number
}

/** dudect's: by chance it is exceeded once in 150,000 comparisons. */
export const threshold = 4.5
/** Of the standard normal distribution, for 95 %. */
const power = 1.645

export function compareTimes(a: number[], b: number[], kept = 0.5): Comparison {
  const limit =
    [...a, ...b].toSorted((x, y) => x - y)[Math.floor((a.length + b.length) * kept)] ?? Number.POSITIVE_INFINITY
  const [one, other] = [a, b].map((times) => momentsOf(times.filter((time) => time < limit))) as [Moments, Moments]
  const error = Math.sqrt(one.variance / one.count + other.variance / other.count)
  const difference = one.mean - other.mean
  return { t: difference / error, difference, found: (threshold + power) * error }
}

type Moments = { count: number; mean: number; variance: number }

function momentsOf(times: number[]): Moments {
  const mean = times.reduce((sum, time) => sum + time, 0) / times.length
  const variance = times.reduce((sum, time) => sum + (time - mean) ** 2, 0) / (times.length - 1)
  return { count: times.length, mean, variance }
}
