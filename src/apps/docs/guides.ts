// The pages of docs/ as HTML, their menu and the index of the search. They are our own, so what stands in them is trusted.

import { posix } from 'node:path'
import { Marked, type Token, type Tokens } from 'marked'
import { html } from '../../guests/html.ts'
import { type Guide, guides } from '../../http/guides.ts'

/** A page: its parts from h1 to h3, as the search finds them. */
export type Section = { page: string; title: string; id: string; text: string }

/** @param folder of the pages, from the page that holds the menu. */
export function menu(folder: string, current?: string): string {
  const link = ({ name, title }: Guide) =>
    `<li><a href="${folder}${name}"${name === current ? ' aria-current="page"' : ''}>${html`${title}`}</a></li>`
  const chapters = Map.groupBy(guides, ({ name }) => posix.dirname(name))
  return [...chapters]
    .map(([chapter, ofChapter]) => `${chapterHeading(chapter)}<ul>${ofChapter.map(link).join('')}</ul>`)
    .join('')
}

const chapterHeading = (chapter: string): string => {
  const name = posix.basename(chapter)
  return chapter === '.' ? '' : `<p>${name.charAt(0).toUpperCase()}${name.slice(1)}</p>`
}

/** @param frame with comments where the title, the menu, the content and its list of contents belong. */
export function renderGuide({ name, title, text }: Guide, frame: string): string {
  const folder = '../'.repeat(name.split('/').length - 1)
  const nameOfId = createIds()
  const contents: string[] = []
  const marked = new Marked({
    renderer: {
      heading({ depth, text, tokens }: Tokens.Heading) {
        const id = nameOfId(text)
        const inline = this.parser.parseInline(tokens)
        if (depth === 2) contents.push(`<li><a href="#${id}">${inline}</a></li>`)
        return `<h${depth} id="${id}">${inline}</h${depth}>\n`
      },
      link({ href, tokens }: Tokens.Link) {
        const inline = this.parser.parseInline(tokens)
        const address = addressOf(href, name)
        return address === undefined ? inline : `<a href="${address}">${inline}</a>`
      },
    },
  })
  const content = marked.parse(text, { async: false }).replaceAll('<pre>', '<pre tabindex="0">')
  const parts: Record<string, string> = { title: `${html`${title}`}`, menu: menu(folder, name), content, folder }
  return frame.replace(/<!-- (\w+) -->/g, (_, part: string) => parts[part] ?? contents.join(''))
}

/** Pages have the addresses of their files, without the ending. Undefined: it is not served, and the text of the link remains. */
function addressOf(href: string, from: string): string | undefined {
  if (/^(https?:|#)/.test(href)) return href
  const [path = '', anchor] = href.split('#')
  const target = posix.join(posix.dirname(from), path).replace(/\.md$/, '')
  if (!guides.some(({ name }) => name === target)) return undefined
  return `${path.replace(/\.md$/, '')}${anchor === undefined ? '' : `#${anchor}`}`
}

/** Identifiers of headings, as GitHub makes them. */
export function createIds(): (heading: string) => string {
  const seen = new Map<string, number>()
  return (heading) => {
    const id = heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-')
    const before = seen.get(id) ?? 0
    seen.set(id, before + 1)
    return before === 0 ? id : `${id}-${before}`
  }
}

/** Every page and its headings, with their words but not their code. */
export function searchIndex(): Section[] {
  return guides.flatMap(({ name, title, text }) => {
    const nameOfId = createIds()
    const sections: Section[] = []
    for (const token of new Marked().lexer(text)) {
      if (token.type === 'heading') {
        const id = nameOfId(token.text)
        if (token.depth <= 3)
          sections.push({ page: name, title: token.depth === 1 ? title : `${token.text} · ${title}`, id, text: '' })
      } else sections.at(-1)!.text += wordsOf(token)
    }
    return sections
  })
}

const wordsOf = ({ type, raw }: Token): string =>
  type === 'code' ? '' : raw.replaceAll(/<[^>]*>|\]\([^)]*\)|[|`*[\]]|-{3,}/g, ' ').replaceAll(/\s+/g, ' ')

/** https://llmstxt.org: a list of the pages in Markdown, for assistants. */
export const llmsText = (description: string): string =>
  [
    `# Usher\n\n> ${description}\n\n## Pages\n`,
    ...guides.map(({ name, title, description }) => `- [${title}](docs/${name}.md): ${description}`),
    '',
  ].join('\n')
