// What calls cost a model.

import { countTokens } from '../support/tokens.ts'
import type { Turn } from './session.ts'

export type Cost = { calls: number; bytes: number; tokens: number }

/** Of arguments and answers. */
export function costOf(turns: readonly Turn[]): Cost {
  const texts = turns.map(({ args, text }) => JSON.stringify(args) + text)
  return {
    calls: turns.length,
    bytes: texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0),
    tokens: texts.reduce((sum, text) => sum + countTokens(text), 0),
  }
}

export function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  return ((sorted[Math.ceil(middle) - 1] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2
}
