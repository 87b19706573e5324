// The list of operations: the whole public interface. Whoever adds one adds it here, and REST and MCP have it.

import type { Operation } from '../operation.ts'
import { getApiKey } from './api-keys.ts'
import { checkIn, undoCheckIn } from './check-ins.ts'
import { getEvent, listEvents, listTicketTypes } from './events.ts'
import { registerAttendee } from './registrations.ts'

export const operations: readonly Operation[] = [
  getApiKey,
  listEvents,
  getEvent,
  listTicketTypes,
  registerAttendee,
  checkIn,
  undoCheckIn,
]
