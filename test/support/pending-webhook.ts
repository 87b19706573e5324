// A pending webhook, for tests of sending it. The secrets are new each time: nothing verifies by accident.

import { randomBytes, randomUUID } from 'node:crypto'
import type { PendingWebhook } from '../../src/courier/send-webhook.ts'

export const newSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`

export function pendingWebhook(url: string, given: Partial<PendingWebhook> = {}): PendingWebhook {
  return {
    id: randomUUID(),
    claim: randomUUID(),
    attempt: 1,
    webhook_endpoint_id: randomUUID(),
    url,
    secrets: [newSecret()],
    webhook_id: randomUUID(),
    type: 'attendee.checked_in',
    timestamp: '2026-11-20T18:30:00.000Z',
    livemode: true,
    data: { object: 'attendee', name: 'Zoë Ångström 🎟', checked_in: true },
    ...given,
  }
}
