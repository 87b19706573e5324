// What the server answered when the story in scripts/examples/story.ts was told to it: requests and answers, successes and
// refusals, in the order of the story. Written by `npm run examples`, never by hand; a test tells the story again.

import { isDeepStrictEqual } from 'node:util'
import type { Operation } from '../../operation.ts'
import recorded from './examples.json' with { type: 'json' }

export type Example = {
  operation: string
  /** What happened, in a few words; unique among the examples of the operation. */
  title: string
  /** As the operation takes it, and as the MCP tool of the same name does. */
  input: Record<string, unknown>
  status: number
  body: Record<string, unknown>
}

export const examples: readonly Example[] = recorded

export const isRefusal = ({ status }: Example): boolean => status >= 400

export function successesOf(operation: Operation): Example[] {
  return examples.filter((example) => example.operation === operation.name && !isRefusal(example))
}

/** Named examples of a media type: `pick` takes from each what stands there, and what was the same before is left out. */
export function named(chosen: readonly Example[], pick: (example: Example) => unknown) {
  const values: unknown[] = []
  const entries = chosen.flatMap((example) => {
    const value = pick(example)
    if (values.some((earlier) => isDeepStrictEqual(earlier, value))) return []
    values.push(value)
    return [[kebab(example.title), { summary: example.title, value }] as const]
  })
  return Object.fromEntries(entries)
}

const kebab = (title: string): string =>
  title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
