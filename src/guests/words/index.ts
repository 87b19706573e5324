// The languages of e-mails and ticket pages. To add one, name it in src/operations/locales.ts and the enum public.locale, and write its
// file.

import type { Locale } from '../../operations/locales.ts'
import { de } from './de.ts'
import { en, type Words } from './en.ts'
import { es } from './es.ts'
import { fr } from './fr.ts'
import { nl } from './nl.ts'

export type { Words } from './en.ts'

export const languages: Record<string, Words> = { en, de, fr, es, nl } satisfies Record<Locale, Words>

/** @param locale of the event; of one that is not known, English. */
export const wordsOf = (locale: string | undefined): Words => languages[locale ?? 'en'] ?? en

/** Puts values in place of {placeholders}. A value is never read for placeholders itself. */
export const fill = (text: string, values: Record<string, string>): string =>
  text.replace(/\{(\w+)\}/g, (placeholder, key: string) => values[key] ?? placeholder)
