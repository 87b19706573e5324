// A notification of each type, as the story of the documentation leaves them in the log. Written by `npm run examples`, never by hand.

import recorded from '../../docs/reference/notifications.json' with { type: 'json' }
import type { NotificationType } from './webhook-endpoints.ts'

export const notificationExamples: Record<NotificationType, { timestamp: string; data: object }> = recorded
