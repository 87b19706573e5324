// MERGE: delete this file, and its two uses (round.ts, playing.test.ts), with the merge of the part that takes names where ids are wanted. Until then it
// puts ids in the place of names, as that part will.

import { operations } from '../../src/operations/index.ts'
import type { Database } from './organisation.ts'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-/
const tables = {
  event: { table: 'events', column: 'name' },
  ticket_type: { table: 'ticket_types', column: 'name' },
  order: { table: 'orders', column: 'reference' },
  attendee: { table: 'attendees', column: 'name' },
} as const
type Kind = keyof typeof tables

export async function withIds(
  database: Database,
  organisationId: string,
  tool: string,
  sent: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  // Takes names by itself.
  if (tool === 'apply_event') return sent
  const { ticket_types, ...args } = sent
  let eventId: string | undefined
  const idOf = async (kind: Kind, name: unknown): Promise<unknown> => {
    if (typeof name !== 'string' || uuid.test(name)) return name
    const { table, column } = tables[kind]
    const ofEvent = kind === 'event' || eventId === undefined ? '' : `and event_id = '${eventId}'`
    const { rows } = await database.query(
      `select id from public.${table} where organisation_id = $1 and ${column} = $2 ${ofEvent}`,
      [organisationId, name],
    )
    if (rows.length !== 1) throw new Error(`${rows.length} of ${table} are called ${name}`)
    return rows[0].id
  }
  const named: Record<string, unknown> = {}
  for (const [argument, value] of Object.entries(args)) {
    if (!(argument in tables)) named[argument] = value
    else named[`${argument}_id`] = await idOf(argument as Kind, value)
    if (argument === 'event') eventId = named.event_id as string
  }
  if (ticket_types !== undefined) {
    named.ticket_type_ids = await Promise.all((ticket_types as string[]).map((name) => idOf('ticket_type', name)))
  }
  const takesEvent = 'event_id' in (operations.find(({ name }) => name === tool)?.input.shape ?? {})
  if (!takesEvent) delete named.event_id
  return named
}
