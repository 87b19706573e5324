// HTML by tagged template: html`…` escapes every value, in text and in quoted attributes, except HTML that html`…` made itself.
// There is no way to pass a string through unescaped.

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

class Html {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  toString(): string {
    return this.#text
  }
}

export type { Html }

type Value = string | Html | Value[] | false | undefined

export function html(strings: TemplateStringsArray, ...values: Value[]): Html {
  return new Html(strings.reduce((text, string, index) => text + asHtml(values[index - 1]) + string))
}

function asHtml(value: Value): string {
  if (value === undefined || value === false) return ''
  if (Array.isArray(value)) return value.map(asHtml).join('')
  if (value instanceof Html) return value.toString()
  return value.replace(/[&<>"']/g, (character) => entities[character] as string)
}
