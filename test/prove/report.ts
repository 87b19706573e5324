// What a proof says in the end, on the console.

import type { Problem } from './history.ts'

export const lineOf = ({ rule, about, detail }: Problem<string>): string => `${rule}: ${about}: ${detail}`

/** @returns whether nothing is wrong. */
export function conclude(problems: string[]): boolean {
  for (const problem of problems.slice(0, 50)) console.log(problem)
  console.log(problems.length === 0 ? 'Nothing is wrong.' : `${problems.length} problems.`)
  return problems.length === 0
}

/** Tries broken builds, each of which answers by what it was noticed. @returns whether each was. */
export async function doubt(broken: Record<string, () => Promise<Set<string>>>, only = ''): Promise<boolean> {
  let isEachCaught = true
  for (const [name, run] of Object.entries(broken)) {
    if (!name.includes(only)) continue
    const startedAt = performance.now()
    const by = await run()
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
    isEachCaught &&= by.size > 0
    console.log(`${by.size > 0 ? 'caught ' : 'MISSED '} ${name} (${seconds} s): ${[...by].join('; ') || 'by nothing'}`)
  }
  return isEachCaught
}
