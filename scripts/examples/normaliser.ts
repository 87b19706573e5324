// Makes recorded answers repeatable: replaces identifiers, codes and times of the server by those of the story, and back when
// they are sent again. What it puts in must be as valid as what it replaces.

import { createHash } from 'node:crypto'

export type Normaliser = {
  /** Every answer until the next call is given at this time. */
  setNow(time: string): void
  /** Times of the story, as they stand to the clock now. */
  shift(): number
  /** From now on this text of the server's is known as that. */
  know(real: string, told: string): void
  /** An answer as the story tells it. `seed` names the answer, so that its identifiers are its own. */
  tell<T>(answer: T, seed: string): T
  /** Input of the story as the server needs it. */
  reveal<T>(input: T): T
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/
// Fields drawn at random, and which part of them is.
const drawn: Record<string, RegExp> = {
  ticket_code: /.+/,
  code_hash: /.+/,
  salt: /.+/,
  reference: /.+/,
  next_cursor: /.+/,
  plan_id: /.+/,
  prefix: /(?<=^usher_live_).+/,
  secret: /(?<=^whsec_)[^=]+/,
}
const exportUrl = /[/]exports[/][0-9a-f]{32}$/
const crockford = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

export function createNormaliser(): Normaliser {
  const told = new Map<string, string>()
  const real = new Map<string, string>()
  /** By the instant, for the server writes a time in its own way. */
  const times = new Map<number, string>()
  let now = 0
  let shift = 0

  function know(ofServer: string, ofStory: string): string {
    told.set(ofServer, ofStory)
    real.set(ofStory, ofServer)
    return ofStory
  }

  function tellText(text: string, field: string, seed: string): string {
    const known = told.get(text)
    if (known !== undefined) return known
    if (uuid.test(text)) return know(text, uuidOf(seed, now))
    // What the server did itself it did now; times have no way back, for they are never sent as identifiers are.
    if (time.test(text)) return times.get(Date.parse(text)) ?? remember(text)
    if (field === 'ticket_url')
      return know(text, `https://usher.example.com/t/${digest(seed).toString('hex').slice(0, 32)}`)
    if (field === 'url' && exportUrl.test(text))
      return know(text, `https://usher.example.com/exports/${digest(seed).toString('hex').slice(0, 32)}`)
    const part = drawn[field]
    return part === undefined
      ? text
      : know(
          text,
          text.replace(part, (chance) => lettersOf(seed, chance.length)),
        )
  }

  function remember(text: string): string {
    const ofStory = new Date(now).toISOString()
    told.set(text, ofStory)
    return ofStory
  }

  function revealText(text: string): string {
    if (!time.test(text)) return real.get(text) ?? text
    const instant = Date.parse(text) + shift
    times.set(instant, new Date(text).toISOString())
    return new Date(instant).toISOString()
  }

  return {
    setNow(text) {
      now = Date.parse(text)
      shift = Math.round((Date.now() - now) / 1000) * 1000
    },
    shift: () => shift,
    know: (ofServer, ofStory) => void know(ofServer, ofStory),
    tell: (answer, seed) =>
      mapTexts(answer, (text, path) => tellText(text, path.at(-1) ?? '', [seed, ...path].join('.'))),
    reveal: (input) => mapTexts(input, revealText),
  }
}

function mapTexts<T>(value: T, change: (text: string, path: string[]) => string, path: string[] = []): T {
  if (typeof value === 'string') return change(value, path) as T
  if (Array.isArray(value)) return value.map((item, i) => mapTexts(item, change, [...path, String(i)])) as T
  // A duration is another one each time.
  if (typeof value !== 'object' || value === null) return (path.at(-1) === 'duration_ms' ? 12 : value) as T
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, mapTexts(item, change, [...path, key])]),
  ) as T
}

const digest = (seed: string) => createHash('sha256').update(seed).digest()

/** Version 7: its first part is the time. */
function uuidOf(seed: string, milliseconds: number): string {
  const [hex, moment] = [digest(seed).toString('hex'), milliseconds.toString(16).padStart(12, '0')]
  return `${moment.slice(0, 8)}-${moment.slice(8)}-7${hex.slice(0, 3)}-8${hex.slice(3, 6)}-${hex.slice(6, 18)}`
}

function lettersOf(seed: string, length: number): string {
  return Array.from({ length }, (_, i) => crockford[(digest(seed)[i] ?? 0) % 32]).join('')
}
