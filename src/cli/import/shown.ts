// Text of a file as a terminal may have it.

const longest = 32
const mostListed = 40

/** One line without control characters, which a terminal would obey, those that turn the direction of text among them. */
export const printable = (text: string): string => text.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]+/gu, ' ')

/** No longer than a column of a table, too. */
export function shown(text: string): string {
  const line = printable(text)
  return line.length > longest ? `${line.slice(0, longest - 1).toWellFormed()}…` : line
}

/** For a sentence that says what there is. */
export function listed(names: string[]): string {
  const named = names.filter((name) => name !== '').map(shown)
  return [...named.slice(0, mostListed), ...(named.length > mostListed ? ['…'] : [])].join(', ') || 'none'
}
