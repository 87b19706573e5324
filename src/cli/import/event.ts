// The event that a list is for, and its ticket types, by what people call them.

import type * as z from 'zod'
import type { EventSchema } from '../../operations/events.ts'
import type { TicketTypeSchema } from '../../operations/ticket-types.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../command-error.ts'
import { listed, shown } from './shown.ts'

export type Event = z.infer<typeof EventSchema>
export type TicketType = z.infer<typeof TicketTypeSchema>

/** By id, slug, external_id or name, in any case; the first of them that fits. @throws CommandError 2: none or several are called so */
export async function findEvent({ list }: Client, wanted: string): Promise<Event> {
  const events = await list<Event>('/events')
  const called = (...names: (string | null)[]) => names.some((name) => name !== null && isSame(name, wanted))
  const [event, ...others] =
    [
      events.filter(({ id, slug }) => called(id, slug)),
      events.filter(({ external_id }) => external_id === wanted),
      events.filter(({ external_id, name }) => called(external_id, name)),
    ].find(({ length }) => length > 0) ?? []
  if (event === undefined) {
    throw new CommandError(2, `There is no event ${wanted}. Events: ${listed(events.map(({ slug }) => slug))}.`)
  }
  if (others.length > 0) {
    const slugs = [event, ...others].map(({ slug }) => slug).join(', ')
    throw new CommandError(2, `More than one event is named ${wanted}. Use a slug: ${slugs}.`)
  }
  return event
}

/** By id, external_id or name; where several have the name, the one that is issued. */
export function findTicketType(ticketTypes: TicketType[], wanted: string): TicketType | { error: string } {
  const found = ticketTypes.filter(({ id, name, external_id }) =>
    [id, name, external_id ?? ''].some((each) => isSame(each, wanted)),
  )
  const active = found.filter(({ status }) => status === 'active')
  const [one, ...others] = active.length > 0 ? active : found
  if (one !== undefined && others.length === 0) return one
  if (one !== undefined) return { error: `More than one ticket type of the event is named ${shown(wanted)}.` }
  const names = listed(ticketTypes.map(({ name }) => name))
  return { error: `The event has no ticket type ${shown(wanted)}. Ticket types: ${names}.` }
}

const isSame = (name: string, wanted: string): boolean => fold(name) === fold(wanted)
const fold = (text: string): string => text.normalize('NFKC').trim().toLowerCase()
