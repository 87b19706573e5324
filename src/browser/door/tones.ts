// How a verdict looks and sounds. Its words are in the languages.

import type { Verdicts } from './words/en.ts'

export type Tone = 'welcome' | 'caution' | 'stop'

const caution: readonly (keyof Verdicts)[] = ['already_checked_in', 'not_inside']

export const toneOf = (reason: keyof Verdicts): Tone =>
  reason === 'welcome' || reason === 'goodbye' ? 'welcome' : caution.includes(reason) ? 'caution' : 'stop'

export const signOf = (reason: keyof Verdicts): string => {
  if (reason === 'welcome') return '✓'
  if (reason === 'goodbye') return '→'
  if (reason === 'not_found') return '?'
  return toneOf(reason) === 'caution' ? '!' : '✕'
}
