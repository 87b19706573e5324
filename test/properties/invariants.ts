// What must be true of an event whatever happened to it, counted anew from its rows: src/local/invariants.
// Every transaction leaves all of it true, so it may be asked in the midst of things: one statement sees one moment.

import { type Disagreement, disagreementsSql } from '../../src/local/invariants.ts'
import { studio } from '../support/database.ts'

/** Rows of the event that are not what a recount says. None, or something is wrong. */
export async function brokenRules(eventId: string): Promise<Disagreement[]> {
  return (await studio.query<Disagreement>(disagreementsSql, [eventId])).rows
}
