// Guides: files of docs/ that are served, as pages at /docs/guides and as resources of MCP.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dirname, '..', '..', 'docs')

export type Guide = {
  title: string
  description: string
  file: string
  /** The text of its link on the pages. Null: it is part of another guide, which is a page. */
  link: string | null
  /** The heading of the part that it is. Without one it is the whole file. */
  section?: string
}

/** By name, in the order of the header of the pages. */
const known: Record<string, Guide> = {
  integrators: {
    title: 'REST and MCP',
    description: 'Operations, objects, pages, idempotency, registrations, check-ins, webhooks and limits.',
    file: 'integrators.md',
    link: 'Guide',
  },
  webhooks: {
    title: 'Webhooks',
    description: 'Types, payloads, signatures, retries, and how to catch up.',
    file: 'integrators.md',
    link: null,
    section: 'Webhooks and notifications',
  },
  errors: {
    title: 'Errors',
    description: 'Every error code, with what to do.',
    file: 'errors.md',
    link: 'Errors',
  },
  mcp: {
    title: 'MCP clients',
    description: 'How to connect each client, and with which scopes.',
    file: 'mcp.md',
    link: 'MCP',
  },
}

/** Those whose file is installed. */
export const guides: readonly [name: string, guide: Guide][] = Object.entries(known).filter(([, { file }]) =>
  existsSync(join(folder, file)),
)

/** @returns Markdown. */
export function readGuide({ file, section }: Guide): string {
  const whole = readFileSync(join(folder, file), 'utf8')
  if (section === undefined) return whole
  return whole.split(/^(?=## )/m).find((part) => part.startsWith(`## ${section}\n`)) ?? whole
}
