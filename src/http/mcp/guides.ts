// Resources of MCP: the guides in docs/, for a model that writes an integration or meets an error. The same for every key.

import { readFileSync } from 'node:fs'
import type { ReadResourceResult, Resource } from '@modelcontextprotocol/server'

type Guide = { title: string; description: string; file: string; section?: string }

const guides: Record<string, Guide> = {
  integrators: {
    title: 'REST and MCP',
    description: 'Operations, objects, pages, idempotency, registrations, check-ins, webhooks and limits.',
    file: 'integrators.md',
  },
  webhooks: {
    title: 'Webhooks',
    description: 'Types, payloads, signatures, retries, and how to catch up.',
    file: 'integrators.md',
    section: 'Webhooks and notifications',
  },
  errors: { title: 'Errors', description: 'Every error code, with what to do.', file: 'errors.md' },
  mcp: { title: 'MCP clients', description: 'How to connect each client, and with which scopes.', file: 'mcp.md' },
}

const mimeType = 'text/markdown'
const prefix = 'usher://guides/'

export const listedGuides: Resource[] = Object.entries(guides).map(([name, { title, description }]) => ({
  uri: `${prefix}${name}`,
  name,
  title,
  description,
  mimeType,
}))

/** @returns undefined for an unknown URI. */
export function readGuide(uri: string): ReadResourceResult | undefined {
  const name = uri.startsWith(prefix) ? uri.slice(prefix.length) : ''
  if (!Object.hasOwn(guides, name)) return undefined
  const { file, section } = guides[name] as Guide
  const whole = readFileSync(new URL(`../../../docs/${file}`, import.meta.url), 'utf8')
  const text = section === undefined ? whole : sectionOf(whole, section)
  return { contents: [{ uri, mimeType, text }] }
}

function sectionOf(markdown: string, heading: string): string {
  const sections = markdown.split(/^(?=## )/m)
  return sections.find((section) => section.startsWith(`## ${heading}\n`)) ?? markdown
}
