// An organisation with an event, and a caller over REST with a key of its own.

import type { Scope } from '../../src/operations/operation.ts'
import { createOrganisation, type EventOptions } from './organisation.ts'
import { rest } from './rest.ts'

/** The key has these scopes; all of them when none are named. */
export async function createOrganiser(options: EventOptions = {}, ...scopes: Scope[]) {
  const organisation = await createOrganisation()
  const event = await organisation.event(options)
  const key = await organisation.key(...scopes)
  return { organisation, event, key, send: rest(key) }
}
