// Makes text that people typed fit for one line of a header, a calendar or a page. The result never contains a control character,
// half a character, or a character that changes the writing direction of the text around it.

// Embeddings, overrides and isolates reach beyond the text they are in. Marks (LRM, RLM) do not, and stay.
const directionControls = /[\u202a-\u202e\u2066-\u2069]/g
const breaks = /[\p{Cc}\p{Zl}\p{Zp}\s]+/gu

export const oneLine = (text: string): string =>
  text.toWellFormed().replace(directionControls, '').replace(breaks, ' ').trim()

/** A text of several lines, each as `oneLine` but for the blanks at its beginning. */
export const manyLines = (text: string): string =>
  text
    .split(/\r\n|[\n\v\f\r\u0085\p{Zl}\p{Zp}]/u)
    .map((line) => `${/^ */.exec(line)}${oneLine(line)}`)
    .join('\n')

/** The non-empty lines of a text. */
export const linesOf = (text: string): string[] =>
  text
    .split(/[\r\n\p{Zl}\p{Zp}]+/u)
    .map(oneLine)
    .filter(Boolean)

/** Splits a line at its IBANs, which are every second part, with or without their spaces. */
export const ibansIn = (line: string): string[] => line.split(iban)

const iban = /\b([A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?\d[A-Z0-9]{0,2})?)(?![A-Z0-9])/

/** At most `max` UTF-16 units, cut between grapheme clusters, so that no emoji is cut in half. */
export function clip(text: string, max: number): string {
  if (text.length <= max) return text
  let clipped = ''
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (clipped.length + segment.length >= max) break
    clipped += segment
  }
  return `${clipped}…`
}
