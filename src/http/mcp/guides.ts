// Guides as resources of MCP, for a model that writes an integration or meets an error. The same for every key.

import type { ReadResourceResult, Resource } from '@modelcontextprotocol/server'
import { guides, readGuide } from '../guides.ts'

const mimeType = 'text/markdown'
const uriOf = (name: string) => `usher://guides/${name}`

export const listedGuides: Resource[] = guides.map(([name, { title, description }]) => ({
  uri: uriOf(name),
  name,
  title,
  description,
  mimeType,
}))

/** @returns undefined for an unknown URI. */
export function readResource(uri: string): ReadResourceResult | undefined {
  const [, guide] = guides.find(([name]) => uriOf(name) === uri) ?? []
  return guide && { contents: [{ uri, mimeType, text: readGuide(guide) }] }
}
