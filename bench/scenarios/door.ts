import { type Organiser, registerInBulk, type Stack } from '../stack.ts'
import { comparing, type Scenario } from './scenario.ts'

const scansInABatch = 100

export const door: Scenario = {
  name: 'door',
  question: 'How fast is everyone checked in at one event, by live scans and by scans uploaded later?',
  run: comparing(
    ['usher', 'postgrest', 'base'],
    [
      {
        title: 'Live scans',
        connections: [1, 64],
        async prepare(stack, organiser, calls) {
          const codes = await unusedCodes(stack, organiser, calls)
          return () => ({ operation: 'check_in', args: { event_id: organiser.eventId, code: codes.pop() } })
        },
        written: 'check-ins',
        limits: [
          { figure: 'rate', at: 64, against: 'postgrest', atLeast: 2 },
          { figure: 'postgres', at: 1, against: 'base', atMost: 1.3 },
        ],
      },
      {
        title: `Uploaded scans: each answer is to a batch of ${scansInABatch}`,
        connections: [4],
        async prepare(stack, organiser, calls) {
          const codes = await unusedCodes(stack, organiser, Math.min(calls, 150) * scansInABatch)
          const scanned_at = new Date().toISOString()
          return () => ({
            operation: 'check_in_batch',
            args: {
              event_id: organiser.eventId,
              scans: Array.from({ length: scansInABatch }, () => ({
                scan_id: crypto.randomUUID(),
                code: codes.pop(),
                scanned_at,
              })),
            },
          })
        },
        written: 'check-ins',
        limits: [],
      },
    ],
  ),
}

/** Ticket codes that no scan has used: at least as many. */
async function unusedCodes(stack: Stack, organiser: Organiser, atLeast: number): Promise<string[]> {
  const read = async (): Promise<string[]> =>
    (
      await stack.database.query(
        'select ticket_code from public.attendees where event_id = $1 and checked_in_at is null',
        [organiser.eventId],
      )
    ).rows.map(({ ticket_code }) => ticket_code)
  await registerInBulk(stack, organiser, Math.ceil((atLeast - (await read()).length) / 50), { perOrder: 50 })
  return read()
}
