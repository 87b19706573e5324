// Places are counted by triggers. Whatever a test did, they must equal a count of the rows.

import { expect } from 'vitest'
import { brokenRules } from '../properties/invariants.ts'
import type { TestEvent } from '../support/organisation.ts'

/** Holds the event against a recount: the places of its ticket types, and everything else that is derived. */
export async function expectExactCounts(event: TestEvent): Promise<void> {
  expect(await brokenRules(event.id)).toEqual([])
}
