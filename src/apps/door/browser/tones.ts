// An answer, and how it looks and sounds. Its words are in the languages.

import type { Answers, Ticket } from './offline-rules.ts'
import type { Verdicts } from './words/en.ts'

export type Shown = {
  ticket: Ticket | undefined
  reason: keyof Verdicts
  name: string | null
  company: string | null
  type: string | null
  answers: Answers
  since: string | null
  /** The device at which the ticket was used. */
  where: string | null
  /** When the person went out, who is not inside, or may not come in again. */
  leftAt: string | null
  /** Decided by the list, not by the server. */
  offline: boolean
}

/** Answers to the questions of the event, a line each. */
export const answersOf = ({ answers = {} }: { answers?: Answers }): string[] =>
  Object.values(answers).map(({ label, answer }) => `${label}${/[?:]$/.test(label) ? '' : ':'} ${answer}`)

export type Tone = 'welcome' | 'caution' | 'stop'

type Sound = { hertz: readonly number[]; wave: 'sine' | 'square'; gain: number }
/** Welcome and refusal differ in melody, not only in pitch. The speaker of a telephone plays little below 500 Hz; what is missed
 * must not be the refusal. */
export const sounds: Record<Tone, Sound> = {
  welcome: { hertz: [660, 990], wave: 'sine', gain: 0.25 },
  caution: { hertz: [740, 740], wave: 'square', gain: 0.35 },
  stop: { hertz: [1100, 830, 620], wave: 'square', gain: 0.5 },
}

const caution: readonly (keyof Verdicts)[] = ['already_checked_in', 'not_inside']

export const toneOf = (reason: keyof Verdicts): Tone =>
  reason === 'welcome' || reason === 'goodbye' ? 'welcome' : caution.includes(reason) ? 'caution' : 'stop'

export const signOf = (reason: keyof Verdicts): string => {
  if (reason === 'welcome') return '✓'
  if (reason === 'goodbye') return '→'
  if (reason === 'not_found' || reason === 'test_ticket' || reason === 'live_ticket') return '?'
  return toneOf(reason) === 'caution' ? '!' : '✕'
}
