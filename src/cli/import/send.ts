// Sends guests to import_attendees, as many in a call as it takes, and says for each what became of them.

import { randomUUID } from 'node:crypto'
import type * as z from 'zod'
import { type AttendeeImportSchema, importAttendees } from '../../operations/registrations.ts'
import { type Client, Refusal } from '../client.ts'
import type { Guest, Judged } from './guests.ts'
import type { Row } from './sheet.ts'

type Import = z.infer<typeof AttendeeImportSchema>
type Verdict = Import['results'][number]

export type Outcome = { row: Row; guest?: Guest; result: Verdict['result']; error?: string }

type Sending = { eventId: string; ticketTypeId: string | undefined; sendEmail: boolean; dryRun: boolean | undefined }

// A body is full by its bytes, or by its values: each of these counts as its share of the bytes.
const { bytes: mostBytes, values: mostValues } = importAttendees.bodyLimit
const bytesOfAValue = mostBytes / mostValues
// Room for what stands around the list.
const fullAtBytes = mostBytes - 4_096
const mostGuests = 1_000

/** In the order of the rows, a list for each call that was answered. What is refused here already keeps its place. */
export async function* send(
  judged: AsyncIterable<Judged>,
  { eventId, ticketTypeId, sendEmail, dryRun }: Sending,
  { call }: Client,
  warnings: Set<string>,
): AsyncGenerator<Outcome[]> {
  // An answer that is lost is asked for again under the same key. Another run has other keys, and is matched by the guests themselves.
  const run = randomUUID()
  let calls = 0
  const lineOfAttendee = new Map<string, number>()
  const importGuests = (attendees: Guest[]) =>
    call<{ data: Import; warnings?: { message: string }[] }>(
      'POST',
      `/events/${eventId}/attendees/import`,
      { attendees, ticket_type_id: ticketTypeId, dry_run: dryRun, send_email: sendEmail },
      `usher-import-${run}-${++calls}`,
    )

  for await (const batch of batchesOf(judged)) {
    let rest = batch
    for (let size = batch.length; rest.length > 0; ) {
      const part = rest.slice(0, size)
      const guests = part.flatMap((one) => ('guest' in one ? [one.guest] : []))
      let results: Verdict[] = []
      try {
        if (guests.length > 0) {
          const answer = await importGuests(guests)
          results = answer.data.results
          for (const { message } of answer.warnings ?? []) warnings.add(message)
        }
      } catch (error) {
        if (!(error instanceof Refusal && error.code === 'out_of_time' && guests.length > 1)) throw error
        size = Math.ceil(part.length / 2)
        continue
      }
      const outcomes = outcomesOf(part, results, lineOfAttendee)
      // There may have been no time for the last ones.
      rest = rest.slice(outcomes.length)
      yield outcomes
    }
  }
}

const repeated = (line: number) =>
  `Line ${line} has the same e-mail address and name, so this row updated that guest. If they are two people, give each an external_id.`

/** In the words of the command line. */
const noTicketType = 'The row has no ticket type. Fill it in, or give one for all such rows with --ticket-type.'

/** import_attendees refuses whoever is twice in one call. Whoever comes again in a later one is known by the attendee that it answers. */
function outcomesOf(part: Judged[], results: Verdict[], lineOfAttendee: Map<string, number>): Outcome[] {
  const outcomes: Outcome[] = []
  const verdicts = results.values()
  for (const one of part) {
    if ('error' in one) {
      outcomes.push({ row: one.row, result: 'refused', error: one.error })
      continue
    }
    const { value: verdict } = verdicts.next()
    if (verdict === undefined) break
    const { result, error, attendee_id: id } = verdict
    const before = lineOfAttendee.get(id ?? '')
    if (error !== null) {
      outcomes.push({ ...one, result, error: describe(error) })
    } else if (before !== undefined) {
      outcomes.push({ row: one.row, result: 'refused', error: repeated(before) })
    } else {
      if (id !== null) lineOfAttendee.set(id, one.row.line)
      outcomes.push({ ...one, result })
    }
  }
  return outcomes
}

function describe({ code, message, hint, param }: NonNullable<Verdict['error']>): string {
  if (code === 'validation_failed' && param === 'ticket_type_id') return noTicketType
  return [message, hint, `(${code})`].filter(Boolean).join(' ')
}

async function* batchesOf(judged: AsyncIterable<Judged>): AsyncGenerator<Judged[]> {
  let batch: Judged[] = []
  let bytes = 0
  for await (const one of judged) {
    const size = 'guest' in one ? sizeOf(one.guest) : 0
    if (batch.length === mostGuests || (batch.length > 0 && bytes + size > fullAtBytes)) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(one)
    bytes += size
  }
  if (batch.length > 0) yield batch
}

function sizeOf(guest: Guest): number {
  const values = 2 * (1 + Object.keys(guest).length + Object.keys(guest.metadata ?? {}).length)
  return Math.max(Buffer.byteLength(JSON.stringify(guest)) + 1, values * bytesOfAValue)
}
