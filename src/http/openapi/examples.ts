// Requests and answers, successes and errors, recorded from a run of scripts/examples/story.ts, in its order. Written by
// `npm run examples`, never by hand; a test runs the story again.

import { isDeepStrictEqual } from 'node:util'
import recorded from '../../../docs/reference/examples.json' with { type: 'json' }
import type { Operation } from '../../operations/operation.ts'

export type Example = {
  operation: string
  /** A few words on what happened; unique among the examples of the operation. */
  title: string
  /** As the operation and its MCP tool take it. */
  input: Record<string, unknown>
  status: number
  body: Record<string, unknown>
}

export const examples: readonly Example[] = recorded

const registered = examples.find((e) => e.operation === 'register_attendee' && e.status === 201)?.input

/** The event that the examples are about, and the ticket type of its first guest. */
export const storyIds = {
  eventId: String(registered?.event_id),
  ticketTypeId: String(registered?.ticket_type_id),
}

export const isError = ({ status }: Example): boolean => status >= 400

export function successesOf(operation: Operation): Example[] {
  return examples.filter((example) => example.operation === operation.name && !isError(example))
}

/** Named examples of a media type: `pick` selects the value of each, and repeated values are left out. */
export function named(chosen: readonly Example[], pick: (example: Example) => unknown) {
  const values: { summary: string; value: unknown }[] = []
  for (const example of chosen) {
    const value = pick(example)
    if (!values.some((earlier) => isDeepStrictEqual(earlier.value, value)))
      values.push({ summary: example.title, value })
  }
  return Object.fromEntries(values.map((each) => [kebab(each.summary), each]))
}

const kebab = (title: string): string =>
  title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
