// Rows as guests, in the form that import_attendees takes, or with what is wrong with them. It asks nobody.

import type * as z from 'zod'
import { withFormulas } from '../../http/formulas.ts'
import { importAttendees } from '../../operations/registrations.ts'
import { type Columns, type Field, isOut } from './columns.ts'
import { findTicketType, type TicketType } from './event.ts'
import type { Row } from './sheet.ts'

const GuestSchema = importAttendees.input.shape.attendees.element
export type Guest = z.infer<typeof GuestSchema>

export type Judged = { row: Row; guest: Guest } | { row: Row; error: string }

export type Reading = {
  columns: Columns
  width: number
  ticketTypes: TicketType[]
  externalIdPrefix: string
}

/**
 * In the order of the rows. An external_id counts the first time, however far apart the two are: import_attendees sees those of one call.
 * @param leftOut counts the rows of those who do not come, by the reason
 */
export async function* judge(
  rows: AsyncIterable<Row>,
  reading: Reading,
  leftOut: Map<string, number>,
): AsyncGenerator<Judged> {
  const lineOfId = new Map<string, number>()
  for await (const row of rows) {
    const reason = whyLeftOut(row, reading.columns)
    if (reason !== undefined) {
      leftOut.set(reason, (leftOut.get(reason) ?? 0) + 1)
      continue
    }
    const judged = judgeRow(row, reading)
    const id = 'guest' in judged ? judged.guest.external_id : undefined
    const before = id == null ? undefined : lineOfId.get(id)
    if (id != null && before === undefined) lineOfId.set(id, row.line)
    yield before === undefined
      ? judged
      : { row, error: `Line ${before} has the same external_id, which must be unique.` }
  }
}

function whyLeftOut({ cells }: Row, { fields, statuses }: Columns): string | undefined {
  // By which Usher replaces the address of whoever was erased.
  if (/@erased\.invalid\s*$/.test(cells[fields.get('email') ?? -1] ?? '')) return 'erased'
  return statuses.map((column) => cells[column]?.trim() ?? '').find(isOut)
}

function judgeRow(row: Row, reading: Reading): Judged {
  const { columns, width } = reading
  // As an export wrote them.
  const cells = row.cells.map(withFormulas)
  const isTooLong = cells.slice(width).some((cell) => cell.trim() !== '')
  // Excel writes no empty cells at the end of a row.
  if (isTooLong) return { row, error: `The row has ${cells.length} cells, but the header has ${width}.` }
  const cell = (field: Field) => cells[columns.fields.get(field) ?? -1]?.trim() ?? ''
  const name = cell('name') || `${cell('first_name')} ${cell('last_name')}`.trim()
  const [company, externalId, called] = [cell('company'), cell('external_id'), cell('ticket_type')]
  const metadata = [...columns.metadata].flatMap(([column, key]) => {
    const value = cells[column] ?? ''
    return value.trim() === '' ? [] : [[key, value] as const]
  })
  const ticketType = called === '' ? undefined : findTicketType(reading.ticketTypes, called)
  if (ticketType && 'error' in ticketType) return { row, error: ticketType.error }
  const result = GuestSchema.safeParse({
    name,
    email: cell('email'),
    // An empty cell leaves what is known.
    company: company || undefined,
    external_id: externalId === '' ? undefined : reading.externalIdPrefix + externalId,
    metadata: metadata.length === 0 ? undefined : Object.fromEntries(metadata),
    ticket_type_id: ticketType?.id,
  })
  if (result.success) return { row, guest: result.data }
  return { row, error: result.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`).join('; ') }
}
