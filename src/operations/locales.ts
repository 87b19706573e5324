// The languages in which guests are written to. A new one is a label here and of the enum public.locale, which a test compares,
// and a file of texts.

export const locales = ['en', 'de', 'fr', 'es', 'nl'] as const

export type Locale = (typeof locales)[number]
