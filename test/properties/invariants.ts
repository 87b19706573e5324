// What must be true of an event whatever happened to it, counted anew from its rows by the database itself: supabase/schemas/98-invariants.
// Every transaction leaves all of it true, so it may be asked in the midst of things: one statement sees one moment.

import { studio } from '../support/database.ts'

export type Broken = { check: string; table: string; id: string; stored: string; expected: string }

/** Rows of the event that are not what a recount says. None, or something is wrong. */
export async function brokenRules(eventId: string): Promise<Broken[]> {
  return (await studio.query<Broken>('select * from private.verify_invariants($1)', [eventId])).rows
}
