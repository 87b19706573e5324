// Everything that is derived, recounted from what it is derived from: `usher doctor --deep`. Each file beside this one is a query that
// answers the rows that are not what a recount says, and names the rule that they break. It only reads, and nobody waits for it.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dirname, 'invariants')

/** A row that is not what a recount says. `stored` and `expected` are for people. */
export type Disagreement = { check: string; table: string; id: string; stored: string; expected: string }

export const invariants = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'utf8'))

/** All of them as one statement, which sees one moment. It answers each {@link Disagreement} of the event `$1`, or of all where that is null. */
export const disagreementsSql = `
  with asked_events as materialized (select e.id from public.events e where $1::uuid is null or e.id = $1),
  asked_types as materialized (select t.id from public.ticket_types t where $1::uuid is null or t.event_id = $1)
  ${invariants.map((query) => `select * from (${query}) d`).join('\nunion all\n')}`
