// Rows as guests, in the form that import_attendees takes, or with what is wrong with them. It asks nobody: the ticket types are given.

import type * as z from 'zod'
import { withFormulas } from '../../http/formulas.ts'
import { importAttendees } from '../../operations/registrations.ts'
import { type Columns, type Field, isOut } from './columns.ts'
import type { Row } from './sheet.ts'

const GuestSchema = importAttendees.input.shape.attendees.element
export type Guest = z.infer<typeof GuestSchema>

export type Judged = { row: Row; guest: Guest } | { row: Row; error: string }

export type Reading = {
  columns: Columns
  width: number
  /** The id of a ticket type of the event, by what a row calls it; else what is wrong with that. */
  ticketTypeOf(name: string): { id: string } | { error: string }
  externalIdPrefix: string
}

/**
 * In the order of the rows. A guest who is there twice counts the first time, however far apart the two are.
 * @param leftOut counts the rows of those who do not come, by the reason
 */
export async function* judge(
  rows: AsyncIterable<Row>,
  reading: Reading,
  leftOut: Map<string, number>,
): AsyncGenerator<Judged> {
  const findRepeated = createFinderOfRepeated()
  for await (const row of rows) {
    const reason = whyLeftOut(row, reading.columns)
    if (reason !== undefined) {
      leftOut.set(reason, (leftOut.get(reason) ?? 0) + 1)
      continue
    }
    const judged = judgeRow(row, reading)
    const error = 'guest' in judged ? findRepeated(judged.guest, row.line) : undefined
    yield error === undefined ? judged : { row, error }
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
  if (isTooLong) {
    return { row, error: `The row has ${cells.length} cells, and the header ${width}.` }
  }
  const cell = (field: Field) => cells[columns.fields.get(field) ?? -1]?.trim() ?? ''
  const name = cell('name') || `${cell('first_name')} ${cell('last_name')}`.trim()
  const [company, externalId, called] = [cell('company'), cell('external_id'), cell('ticket_type')]
  const metadata = [...columns.metadata].flatMap(([column, key]) => {
    const value = cells[column] ?? ''
    return value.trim() === '' ? [] : [[key, value] as const]
  })
  const ticketType = called === '' ? undefined : reading.ticketTypeOf(called)
  if (ticketType && 'error' in ticketType) return { row, error: ticketType.error }
  const result = GuestSchema.safeParse({
    name,
    email: cell('email'),
    // An empty cell leaves what is known.
    ...(company !== '' && { company }),
    ...(externalId !== '' && { external_id: reading.externalIdPrefix + externalId }),
    ...(metadata.length > 0 && { metadata: Object.fromEntries(metadata) }),
    ...(ticketType && { ticket_type_id: ticketType.id }),
  })
  if (result.success) return { row, guest: result.data }
  return {
    row,
    error: result.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`).join('; '),
  }
}

/** By the rules of import_attendees, which holds them for the guests of one call. */
function createFinderOfRepeated() {
  const lineOfId = new Map<string, number>()
  const linesOfPerson = new Map<string, { any: number; withoutId?: number }>()
  return ({ external_id: id, email, name }: Guest, line: number): string | undefined => {
    if (id != null) {
      const before = lineOfId.get(id)
      if (before !== undefined) return `Line ${before} has this external_id already: each is for one guest.`
      lineOfId.set(id, line)
    }
    const person = personOf(email, name)
    const before = linesOfPerson.get(person)
    const sameAs = id == null ? before?.any : before?.withoutId
    if (sameAs !== undefined) {
      return `Line ${sameAs} has this e-mail address and name already. If they are two people, give each an external_id.`
    }
    linesOfPerson.set(person, { ...(before ?? { any: line }), ...(id == null && { withoutId: line }) })
    return undefined
  }
}

/** Whom import_attendees takes for one person where there is no external_id. */
const personOf = (email: string, name: string): string => `${email.toLowerCase()} ${name.trim().toLowerCase()}`
