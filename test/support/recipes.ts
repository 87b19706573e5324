// The code blocks of docs/mcp.md, as they stand.

import { readFileSync } from 'node:fs'

const guide = readFileSync(new URL('../../docs/mcp.md', import.meta.url), 'utf8')

export function recipes(language: string): string[] {
  return [...guide.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'gm'))].map(([, block = '']) => block)
}
