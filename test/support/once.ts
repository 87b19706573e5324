// One arrangement for several tests, which leave it as they found it: mostly requests that are refused.

/** What `arrange` answers, arranged for whichever test asks first. Keep it in the test file, not in a helper. */
export function once<T>(arrange: () => Promise<T>): () => Promise<T> {
  let arranged: Promise<T> | undefined
  return () => {
    arranged ??= arrange()
    return arranged
  }
}
