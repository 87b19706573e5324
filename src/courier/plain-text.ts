// Text that people typed, made fit for one line of a header, a calendar or a page. In comes anything, out goes one line: never
// a control character, never half a character, and nothing that turns the writing direction of what stands around it.

// Embeddings, overrides and isolates reach beyond the name they stand in. Marks (LRM, RLM) do not, and stay.
const steering = /[\u202a-\u202e\u2066-\u2069]/g
const breaks = /[\p{Cc}\p{Zl}\p{Zp}\s]+/gu

export const oneLine = (text: string): string => text.toWellFormed().replace(steering, '').replace(breaks, ' ').trim()

/** The lines of a text of several, without empty ones. */
export const linesOf = (text: string): string[] =>
  text
    .split(/[\r\n\p{Zl}\p{Zp}]+/u)
    .map(oneLine)
    .filter(Boolean)

/** At most `max` UTF-16 units, cut between characters as people see them, so that no emoji is left in half. */
export function clip(text: string, max: number): string {
  if (text.length <= max) return text
  let clipped = ''
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (clipped.length + segment.length >= max) break
    clipped += segment
  }
  return `${clipped}…`
}
