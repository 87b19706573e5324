// The event that a list is for, and its ticket types, by what people call them.

import type * as z from 'zod'
import type { EventSchema } from '../../operations/events.ts'
import type { TicketTypeSchema } from '../../operations/ticket-types.ts'
import { CommandError } from '../command-error.ts'
import { type Client, Refusal } from './client.ts'
import { shown } from './shown.ts'

export type Event = z.infer<typeof EventSchema>
export type TicketType = z.infer<typeof TicketTypeSchema>

const uuid = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i
const mostSuggested = 5

/** By id, slug, external_id or name, in any case; the first of them that fits. @throws CommandError 2: none or several are called so */
export async function findEvent({ call, list }: Client, wanted: string): Promise<Event> {
  if (uuid.test(wanted)) {
    try {
      return (await call<{ data: Event }>('GET', `/events/${wanted}`)).data
    } catch (error) {
      if (!(error instanceof Refusal && error.code === 'not_found')) throw error
    }
  }
  const events: Event[] = []
  for await (const event of list<Event>('/events')) events.push(event)
  const [event, ...others] =
    [
      events.filter(({ slug }) => isSame(slug, wanted)),
      events.filter(({ external_id }) => external_id === wanted),
      events.filter((each) => namesOf(each).some((name) => isSame(name, wanted))),
    ].find(({ length }) => length > 0) ?? []
  if (event === undefined) {
    const near = nearest(wanted, events, namesOf).map(({ slug }) => slug)
    const found = near.length === 0 ? 'The organisation of the key has no events.' : `There is: ${near.join(', ')}.`
    throw new CommandError(2, `There is no event ${wanted}. ${found}`)
  }
  if (others.length > 0) {
    const slugs = [event, ...others].map(({ slug }) => slug).join(', ')
    throw new CommandError(2, `Several events are called ${wanted}. Name it by its slug: ${slugs}.`)
  }
  return event
}

const namesOf = ({ slug, name, external_id }: Event): string[] => [slug, name, external_id ?? ''].filter(Boolean)

export async function listTicketTypes({ list }: Client, event: Event): Promise<TicketType[]> {
  const ticketTypes: TicketType[] = []
  for await (const ticketType of list<TicketType>(`/events/${event.id}/ticket-types`)) ticketTypes.push(ticketType)
  return ticketTypes
}

/** By id, external_id or name; where several have the name, the one that is issued. */
export function findTicketType(ticketTypes: TicketType[], wanted: string): TicketType | { error: string } {
  const found = ticketTypes.filter(({ id, name, external_id }) =>
    [id, name, external_id ?? ''].some((each) => isSame(each, wanted)),
  )
  const active = found.filter(({ status }) => status === 'active')
  const [one, ...others] = active.length > 0 ? active : found
  if (one !== undefined && others.length === 0) return one
  if (one !== undefined) return { error: `Several ticket types of the event are called ${shown(wanted)}.` }
  const near = nearest(wanted, ticketTypes, ({ name }) => [name]).map(({ name }) => name)
  return { error: `The event has no ticket type ${shown(wanted)}. It has: ${near.join(', ') || 'none'}.` }
}

const isSame = (name: string, wanted: string): boolean => fold(name) === fold(wanted)
const fold = (text: string): string => text.normalize('NFKC').trim().toLowerCase()

/** Those whose name has most pairs of letters in common with it come first. */
function nearest<T>(wanted: string, all: T[], namesOf: (one: T) => string[]): T[] {
  const pairs = pairsOf(wanted)
  const likeness = (name: string) => {
    const others = pairsOf(name)
    return (2 * [...pairs].filter((pair) => others.has(pair)).length) / (pairs.size + others.size || 1)
  }
  return all
    .map((one) => ({ one, alike: Math.max(...namesOf(one).map(likeness)) }))
    .sort((a, b) => b.alike - a.alike)
    .slice(0, mostSuggested)
    .map(({ one }) => one)
}

function pairsOf(text: string): Set<string> {
  const letters = [...fold(text).replace(/[^\p{L}\p{N}]+/gu, '')]
  return new Set(letters.slice(1).map((letter, i) => `${letters[i]}${letter}`))
}
