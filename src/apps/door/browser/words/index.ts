// The language of the page: the first of the browser's that there is. One file of it is loaded; the service worker keeps them all.

import { decimalsOf } from '../minor-units.ts'
import { type Counted, en, type Words } from './en.ts'

export type { Words } from './en.ts'

const others: Record<string, () => Promise<Words>> = {
  de: async () => (await import('./de.ts')).de,
  fr: async () => (await import('./fr.ts')).fr,
  es: async () => (await import('./es.ts')).es,
  nl: async () => (await import('./nl.ts')).nl,
}

export let words: Words = en
/** For dates and numbers: of the language the variety that the browser names. */
export let locale = 'en-GB'

export async function speak(preferred: readonly string[]): Promise<void> {
  for (const tag of preferred) {
    const language = tag.split('-')[0]?.toLowerCase() ?? ''
    if (language !== 'en' && others[language] === undefined) continue
    words = (await others[language]?.()) ?? en
    locale = tag
    break
  }
  document.documentElement.lang = locale.split('-')[0] ?? 'en'
}

/** Puts values in place of {placeholders}. A value is never read for placeholders itself. */
export const fill = (text: string, values: Record<string, string | number>): string =>
  text.replace(/\{(\w+)\}/g, (placeholder, key: string) => String(values[key] ?? placeholder))

export const sayTakenBack = (name: string): string => fill(words.takenBack, { name })

export const counted = (pair: Counted, n: number): string =>
  fill(pair[new Intl.PluralRules(locale).select(n) === 'one' ? 0 : 1], { n: number(n) })

export const number = (n: number): string => n.toLocaleString(locale)

/** An amount in minor units. */
export function money(amount: number, currency: string): string {
  const decimals = decimalsOf(currency)
  const digits = { minimumFractionDigits: decimals, maximumFractionDigits: decimals }
  return new Intl.NumberFormat(locale, { style: 'currency', currency, ...digits }).format(amount / 10 ** decimals)
}

const time = (at: string, second?: '2-digit'): string =>
  new Date(at).toLocaleTimeString(locale, { hour: '2-digit', minute: '2-digit', ...(second && { second }) })

/** The time; of another day the day as well. */
export const moment = (at: string, second?: '2-digit'): string =>
  new Date(at).toDateString() === new Date().toDateString() ? time(at, second) : dayAndTime(at, second)

export const momentAndSeconds = (at: string): string => moment(at, '2-digit')

export const dayAndTime = (at: string, second?: '2-digit'): string =>
  `${new Date(at).toLocaleDateString(locale, { weekday: 'short', day: 'numeric', month: 'short' })}, ${time(at, second)}`
