// The webhooks of the OpenAPI document, for writing a receiver: one for each type of notification.

import * as z from 'zod'
import type { ZodOpenApiObject } from 'zod-openapi'
import { timestamp } from '../../operations/fields.ts'
import { notificationExamples } from '../../operations/notification-examples.ts'
import { ArrivalSchema, NotificationSchema } from '../../operations/notifications.ts'
import { notificationTypes } from '../../operations/webhook-endpoints.ts'
import { kindOf } from './objects.ts'

const headers = {
  'webhook-id': 'Identifier of the notification: the same at each attempt, to detect repeats.',
  'webhook-timestamp': 'Time of this attempt, in seconds since 1970.',
  'webhook-signature': 'One signature for each secret, two during a rotation: see standardwebhooks.com.',
}

const description = `
Verify it with a library for [Standard Webhooks](https://www.standardwebhooks.com) and the secret of the endpoint, before trusting its content.
\`data\` is the object at that time. The notification arrives at least once and in no particular order. Any response but 2xx is retried, after
5 s, 5 min, 30 min, 2, 5, 10, 14, 20 and 24 h, each varied by up to a fifth, and not before a \`Retry-After\`.
`.trim()

/** The object that a notification is about; of a scan with the scan. */
function dataOf(type: string): z.ZodType {
  const { options } = NotificationSchema.shape.data
  const data = type.startsWith('attendee.check')
    ? ArrivalSchema
    : options.find((option) => kindOf(option) === type.split('.')[0])
  if (data === undefined) throw new Error(`Which object does ${type} have?`)
  // With a description it would be a copy, and no component.
  return data
}

export function describeWebhooks(): NonNullable<ZodOpenApiObject['webhooks']> {
  return Object.fromEntries(
    notificationTypes.map((type) => [
      type,
      {
        post: {
          operationId: `on_${type.replace('.', '_')}`,
          summary: `Sent to webhook endpoints subscribed to ${type}.`,
          description,
          tags: ['Webhooks'],
          security: [],
          parameters: Object.entries(headers).map(([name, description]) =>
            z.string().meta({ description, param: { in: 'header', name } }),
          ),
          requestBody: {
            required: true,
            content: {
              'application/json': {
                schema: z.object({
                  type: z.literal(type),
                  timestamp: timestamp.describe('When it happened.'),
                  livemode: z.boolean().describe('false: of a test organisation.'),
                  data: dataOf(type),
                }),
                example: { type, livemode: true, ...notificationExamples[type] },
              },
            },
          },
          responses: {
            204: { description: 'Received. Any 2xx within 15 seconds counts.' },
            410: { description: 'Disables the endpoint.' },
          },
        },
      },
    ]),
  )
}
