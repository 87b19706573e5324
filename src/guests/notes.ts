// Text that an organiser writes to guests, in the simplest Markdown: paragraphs, line breaks, **bold**, *italic*, lists and links. Whatever
// else is typed, HTML too, is shown as it was typed. No picture is loaded.

import { Lexer, type Token, Tokenizer, type Tokens } from 'marked'
import type { Locale } from '../operations/locales.ts'
import { type Html, html } from './html.ts'
import { manyLines } from './plain-text.ts'

/** A text and the language that it is in. */
export type Note = { text: string; locale: string }

type Noted = { locale: Locale; guest_notes: { [locale in Locale]?: string | undefined } }

/** The note of an event in a language, else in that of the event. */
export function noteOf({ guest_notes, locale: own }: Noted, locale: string): Note | undefined {
  const found = [locale as Locale, own].find((each) => guest_notes[each] !== undefined)
  return found && { text: guest_notes[found] as string, locale: found }
}

const deepest = 5
let depth = 0

// Whatever else marked would take stays text, and lists inside so many others, which could exceed the stack.
const none = () => undefined
const tokenizer = Object.assign(new Tokenizer(), {
  ...{ blockquote: none, code: none, codespan: none, def: none, del: none, fences: none, hr: none, html: none },
  ...{ lheading: none, reflink: none, table: none, tag: none },
  list(this: Tokenizer, text: string) {
    if (depth === deepest) return undefined
    depth++
    try {
      return Tokenizer.prototype.list.call(this, text)
    } finally {
      depth--
    }
  },
})

// Some texts take most of a second, and one is in thousands of e-mails.
const mostKept = 100
const kept = new Map<string, Token[]>()

function tokensOf(text: string): Token[] {
  const tokens = kept.get(text) ?? Lexer.lex(manyLines(text), { breaks: true, gfm: true, tokenizer })
  if (kept.size >= mostKept && !kept.has(text)) kept.clear()
  kept.set(text, tokens)
  return tokens
}

/** Attributes of paragraphs and items, of lists, and of links: the styles of an e-mail. */
export type NoteAttributes = { text?: Html; list?: Html; link?: Html }

export const notesHtml = (text: string, attributes: NoteAttributes = {}): Html =>
  html`${tokensOf(text).map((token) => tokenHtml(token, attributes))}`

function tokenHtml(token: Token, attributes: NoteAttributes): Html {
  const inside = html`${childrenOf(token)?.map((child) => tokenHtml(child, attributes)) ?? textOf(token)}`
  switch (token.type) {
    case 'space':
      return html``
    case 'paragraph':
      return html`<p dir="auto"${attributes.text}>${inside}</p>`
    case 'heading':
      return html`<p dir="auto"${attributes.text}><strong>${inside}</strong></p>`
    case 'list': {
      const { ordered, start } = token as Tokens.List
      return ordered
        ? html`<ol start="${`${start}`}"${attributes.list}>${inside}</ol>`
        : html`<ul${attributes.list}>${inside}</ul>`
    }
    case 'list_item':
      return html`<li dir="auto"${attributes.text}>${inside}</li>`
    case 'strong':
      return html`<strong>${inside}</strong>`
    case 'em':
      return html`<em>${inside}</em>`
    case 'br':
      return html`<br>`
    case 'link':
    case 'image': {
      const url = addressOf(token)
      return url === undefined
        ? html`${token.raw}`
        : html`<a href="${url}" rel="noreferrer"${attributes.link}>${`${inside}` === '' ? url : inside}</a>`
    }
    default:
      return inside
  }
}

/** For the text part of an e-mail. The address of a link stands behind its words. */
export const notesText = (text: string): string =>
  tokensOf(text)
    .map(tokenText)
    .join('')
    .replace(/\n{3,}/g, '\n\n')
    .trim()

function tokenText(token: Token): string {
  const inside = childrenOf(token)?.map(tokenText).join('') ?? textOf(token)
  switch (token.type) {
    case 'heading':
      return `${inside}\n\n`
    case 'list': {
      const { ordered, start, items } = token as Tokens.List
      const lines = items.map((item, i) => {
        const said = tokenText(item).trim().replaceAll('\n', '\n  ')
        return `\n${ordered ? `${Number(start) + i}.` : '-'} ${said}`
      })
      return lines.join('')
    }
    case 'br':
      return '\n'
    case 'link':
    case 'image': {
      const url = addressOf(token)
      if (url === undefined) return token.raw
      return (token as Tokens.Link).autolink ? inside : `${inside} ${url}`.trim()
    }
    default:
      return inside
  }
}

const childrenOf = (token: Token): Token[] | undefined =>
  token.type === 'list' ? (token as Tokens.List).items : 'tokens' in token ? token.tokens : undefined

// As it was typed, but for the backslash of an escape: marked decodes numeric character references.
const textOf = (token: Token): string => (token.type === 'escape' ? (token as Tokens.Escape).text : token.raw)

// Another scheme, such as javascript:, could start a program.
function addressOf(token: Token): string | undefined {
  const url = URL.parse((token as Tokens.Link).href)
  return url !== null && ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : undefined
}
