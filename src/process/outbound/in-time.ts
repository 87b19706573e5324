// Gives up on work once its deadline has passed.

/** Needed because undici applies the signal only once it is connected. @throws the reason of the deadline */
export function inTime<T>(deadline: AbortSignal, work: Promise<T>): Promise<T> {
  const over = new Promise<never>((_, reject) => {
    deadline.addEventListener('abort', () => reject(deadline.reason), { once: true })
  })
  return Promise.race([work, over])
}
