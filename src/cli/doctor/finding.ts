// What a check of `usher doctor` found. A message states a fact, a fix is the command or setting that mends it: no secret in either.

export type Finding = { check: string; status: 'ok' | 'warning' | 'failed'; message: string; fix: string | null }

/** A check gives up on what does not answer after this long. */
export const timeLimit = (): AbortSignal => AbortSignal.timeout(10_000)

const found =
  (status: Finding['status']) =>
  (check: string, message: string, fix: string): Finding => ({ check, status, message, fix })

export const ok = (check: string, message: string): Finding => ({ check, status: 'ok', message, fix: null })
export const warning = found('warning')
export const failed = found('failed')
