// Links of the documentation lead somewhere: in the repository, and as pages at /docs.

import { existsSync, globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { Marked } from 'marked'
import { describe, expect, test } from 'vitest'
import { createIds, renderGuide } from '../../src/apps/docs/guides.ts'
import { docsFolder, guides } from '../../src/http/guides.ts'

const files = ['README.md', 'test/README.md', ...globSync('docs/**/*.md').sort()]

const pages = new Map<string, ReturnType<typeof read>>()
/** The links and anchors of a file. */
function pageOf(file: string) {
  const page = pages.get(file) ?? read(file)
  pages.set(file, page)
  return page
}

function read(file: string) {
  const marked = new Marked()
  const [links, ids]: [string[], string[]] = [[], []]
  const nameOfId = createIds()
  const tokens = marked.lexer(readFileSync(file, 'utf8'))
  void marked.walkTokens(tokens, (token) => {
    if (token.type === 'link' || token.type === 'image') links.push(token.href)
    if (token.type === 'heading') ids.push(nameOfId(token.text))
    if (token.type === 'html') ids.push(...[...token.raw.matchAll(/<a id="(\w+)">/g)].map(([, id = '']) => id))
  })
  return { links, ids }
}

test.each(files)('%s', (file) => {
  const broken = pageOf(file).links.filter((link) => {
    if (/^(https?|mailto):/.test(link)) return false
    const [path = '', anchor] = link.split('#')
    const target = path === '' ? file : posix.join(posix.dirname(file), path)
    return !existsSync(target) || (anchor !== undefined && !pageOf(target).ids.includes(anchor))
  })
  expect(broken).toEqual([])
})

describe('as pages', () => {
  const rendered = new Map(guides.map((guide) => [guide.name, renderGuide(guide, '<!-- content -->')]))

  test.each([...rendered])('%s', (name, html) => {
    const broken = [...html.matchAll(/(?:href|src)="([^"]+)"/g)]
      .map(([, link = '']) => link)
      .filter((link) => {
        if (/^https?:/.test(link)) return false
        const [path = '', anchor] = link.split('#')
        const target = path === '' ? name : posix.join(posix.dirname(name), path)
        const page = rendered.get(target)
        if (page === undefined) return !existsSync(posix.join(docsFolder, target))
        return anchor !== undefined && !page.includes(` id="${anchor}"`)
      })
    expect(broken).toEqual([])
  })
})
