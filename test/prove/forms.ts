// Forms of pages, pressed now and then twice at once, and again where no answer came. Whatever is done goes into the history of the crowd.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Crowd } from './clients.ts'
import type { Attempt } from './history.ts'
import type { Random } from './random.ts'
import type { Page, Press } from './send.ts'

const attemptsPerForm = 4

export type Form = {
  key: string
  operation: string
  path: string
  fields: Record<string, string>
  /** What becomes of an answer that is no refusal. */
  outcomeOf?: (page: Page) => Attempt['outcome'] | Promise<Attempt['outcome']>
  /** Of an order: what the page says that it costs. */
  total?: number
  /** Nothing of it may be done, whatever is answered. */
  isForged?: boolean
}

export type Forms = ReturnType<typeof createForms>

export function createForms(crowd: Crowd, press: Press, prefix: string, random: Random, until: () => boolean) {
  const { history, now, tally } = crowd
  let pressed = 0

  /** Presses once. */
  async function attempt(
    { key, operation, path, fields, outcomeOf, total, isForged = false }: Form,
    isUnkeyed = false,
  ): Promise<Attempt['outcome']> {
    const start = now()
    let outcome: Attempt['outcome'] = 'unknown'
    let why: string | undefined
    try {
      const page = await press(pressed, path, fields, `${prefix} 0 ${key} ${pressed++}`)
      if (page.status < 400) outcome = (await outcomeOf?.(page)) ?? 'ok'
      else if (page.status < 500 && page.status !== 408) outcome = 'refused'
      if (page.status >= 400) why = `${page.status} of a ${isForged ? 'forged form' : 'page'}`
    } catch (error) {
      why = String((error as { code?: string }).code ?? (error as Error).name)
    }
    if (isForged) outcome = 'refused'
    const tallied = `${operation} ${outcome}${why === undefined ? '' : ` ${why}`}`
    tally.set(tallied, (tally.get(tallied) ?? 0) + 1)
    history.push({
      ...{ key, operation, start, end: now(), outcome },
      ...(why && { why }),
      ...(isUnkeyed && { isUnkeyed }),
      ...(total !== undefined && { total }),
    })
    return outcome
  }

  /** Presses until there is an answer. What can be done once may be pressed twice. @returns how often it was done. */
  async function send(form: Form): Promise<number> {
    let done = 0
    for (let n = 0; n < attemptsPerForm && !until(); n++) {
      const outcomes = await Promise.all(Array.from({ length: random.between(1, 2) }, () => attempt(form)))
      done += outcomes.filter((outcome) => outcome === 'ok').length
      if (!outcomes.includes('unknown')) break
      await sleep(random.between(20, 400))
    }
    return done
  }
  /** The history has nothing of it. */
  const open = (path: string, fields?: Record<string, string>) => press(pressed, path, fields)
  return { attempt, send, open }
}
