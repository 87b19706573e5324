// Guides as pages, in HTML. They are our own, so what stands in them is trusted.

import { Marked, type Tokens } from 'marked'
import { type Guide, guides, readGuide } from '../../http/guides.ts'

export const pages: readonly [name: string, guide: Guide][] = guides.filter(([, { link }]) => link !== null)

/** Links of a page, relative to it. @param folder of the guides. */
export const guideLinks = (folder: string, current?: string): string =>
  pages
    .map(
      ([name, { link }]) => `<a href="${folder}${name}"${name === current ? ' aria-current="page"' : ''}>${link}</a>`,
    )
    .join(' ')

/** @param page with comments where the title, the links and the content belong. */
export function renderGuide(name: string, guide: Guide, page: string): string {
  const marked = new Marked({ renderer: { heading, link } })
  let tables = 0
  const content = marked
    .parse(readGuide(guide), { async: false })
    // On a phone they are scrolled, also by keyboard.
    .replaceAll('<pre>', '<pre tabindex="0">')
    .replaceAll('<table>', () => `<div class="wide" role="region" aria-label="Table ${++tables}" tabindex="0"><table>`)
    .replaceAll('</table>', '</table></div>')
  const parts: Record<string, string> = { title: guide.link ?? guide.title, guides: guideLinks('', name), content }
  return page.replace(/<!-- (title|guides|content) -->/g, (_, part: string) => parts[part] ?? '')
}

type Renderer = { parser: { parseInline: (tokens: Tokens.Generic[]) => string } }

/** With an id, as GitHub makes it. */
function heading(this: Renderer, { depth, text, tokens }: Tokens.Heading): string {
  const id = text
    .toLowerCase()
    .replace(/[^\p{L}\p{N} -]/gu, '')
    .replaceAll(' ', '-')
  return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>\n`
}

/** Files of docs/ that are guides are linked as such; of the others, which are not served, the text remains. */
function link(this: Renderer, { href, tokens }: Tokens.Link): string {
  const text = this.parser.parseInline(tokens)
  if (/^(https?:|#)/.test(href)) return `<a href="${href}">${text}</a>`
  const [, name = '', anchor = ''] = /^([\w-]+)\.md(#[\w-]+)?$/.exec(href) ?? []
  return pages.some(([page]) => page === name) ? `<a href="${name}${anchor}">${text}</a>` : text
}
