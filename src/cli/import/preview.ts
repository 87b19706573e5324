// How a list was understood, for somebody to look at before anything is sent.

import { type Columns, fields } from './columns.ts'
import type { Event, TicketType } from './event.ts'
import type { Guest } from './guests.ts'
import { delimiters, type Sheet } from './sheet.ts'
import { shown } from './shown.ts'

/** What the file is, and what its columns hold. */
export function describeSheet({ path, encoding, delimiter, header }: Sheet, columns: Columns): string {
  const called = delimiters[delimiter as keyof typeof delimiters] ?? `"${delimiter}"`
  const held = [
    ...[...columns.fields].sort(([a], [b]) => fields.indexOf(a) - fields.indexOf(b)).map(([field, at]) => [at, field]),
    ...[...columns.metadata].map(([at, key]) => [at, `metadata.${key}`]),
    ...columns.statuses.map((at) => [at, 'status']),
  ] as [number, string][]
  const names = held.map(([at]) => shown(header[at] ?? ''))
  const width = Math.max(...names.map(({ length }) => length))
  const lines = held.map(([, holds], i) => `  ${names[i]?.padEnd(width)}  → ${holds}`)
  const leftOut = columns.leftOut.length > 0 ? `\nLeft out: ${columns.leftOut.map(shown).join(', ')}` : ''
  return `${path}: ${encoding}, separated by ${called}\n${lines.join('\n')}${leftOut}`
}

/** Some guests, as a table. */
export function describeGuests(guests: Guest[], ticketTypes: TicketType[], defaultTicketType: TicketType | undefined) {
  const nameOf = (id: string | undefined) =>
    ticketTypes.find((each) => each.id === id)?.name ?? defaultTicketType?.name ?? ''
  const rows = guests.map(({ name, email, company, external_id, metadata, ticket_type_id }) => [
    ...[name, email, company ?? '', nameOf(ticket_type_id), external_id ?? ''],
    metadata === undefined ? '' : JSON.stringify(metadata),
  ])
  const table = [
    ['name', 'email', 'company', 'ticket type', 'external_id', 'metadata'],
    ...rows.map((row) => row.map(shown)),
  ]
  const used = table[0]?.map((_, column) => rows.some((row) => row[column] !== '')) ?? []
  const widths = used.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)))
  return table
    .map((row) => `  ${row.flatMap((cell, i) => (used[i] ? [cell.padEnd(widths[i] ?? 0)] : [])).join('  ')}`.trimEnd())
    .join('\n')
}

/** What holds for every guest. */
export function describeDoubts(event: Event, sendEmail: boolean): string[] {
  return [
    ...(event.phase === 'ended' || event.status === 'completed'
      ? ['The event is over: only guests already registered are updated.']
      : []),
    sendEmail
      ? 'Tickets are complimentary, and are e-mailed to new guests.'
      : 'Tickets are complimentary and not e-mailed. Use --send-email to e-mail them.',
  ]
}

/** Each call of a dry run sees all places free. `taken`: new guests by ticket type. */
export function describeShortages(
  event: Event,
  ticketTypes: TicketType[],
  taken: Map<string | undefined, number>,
): string[] {
  const used = ticketTypes.reduce((sum, { quantity_sold, quantity_held }) => sum + quantity_sold + quantity_held, 0)
  const all = [...taken.values()].reduce((sum, guests) => sum + guests, 0)
  const left = event.capacity === null ? null : Math.max(event.capacity - used, 0)
  return [
    ...ticketTypes.flatMap(({ id, name, quantity_available }) =>
      shortage(name, taken.get(id) ?? 0, quantity_available),
    ),
    ...shortage(event.name, all, left),
  ]
}

const shortage = (name: string, wanted: number, left: number | null): string[] =>
  left === null || wanted <= left
    ? []
    : [`${name}: ${guestsOf(wanted)} for ${count(left)} places. The last guests of the list would be refused.`]

export const count = (number: number): string => number.toLocaleString('en-GB')
export const guestsOf = (number: number): string => `${count(number)} ${number === 1 ? 'guest' : 'guests'}`
