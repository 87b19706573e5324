// The pages of docs/ that are served, at /docs and as resources of MCP: all but those for contributors.

import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const docsFolder = join(import.meta.dirname, '..', '..', 'docs')

export type Guide = {
  /** Its path in docs/, and in addresses: `guides/webhooks`. */
  name: string
  title: string
  description: string
  /** Markdown. */
  text: string
}

const served = [
  'quickstart.md',
  'concepts.md',
  'guides/*.md',
  'guides/*/*.md',
  'reference/*.md',
  'operate/*.md',
  'spec.md',
]

/** In the order of the menu; those that are installed. */
export const guides: readonly Guide[] = served.flatMap((pattern) =>
  globSync(pattern, { cwd: docsFolder })
    .map((file) => readGuide(file.replace(/\.md$/, '')))
    .sort((a, b) => a.title.localeCompare(b.title)),
)

/** The title is the heading, the description the paragraph below it. */
function readGuide(name: string): Guide {
  const text = readFileSync(join(docsFolder, `${name}.md`), 'utf8').replace(/^<!--.*-->\n\n/, '')
  const [heading = '', paragraph = ''] = text.split('\n\n')
  const description = paragraph.replaceAll('\n', ' ').replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
  return { name, title: heading.replace(/^# /, ''), description, text }
}
