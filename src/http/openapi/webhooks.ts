// What Usher sends to webhook endpoints, for whoever writes a receiver: in come the types of notifications, out go the webhooks
// of the OpenAPI document.

import * as z from 'zod'
import type { ZodOpenApiObject } from 'zod-openapi'
import { AttendeeSchema } from '../../operations/attendees.ts'
import { EventSchema } from '../../operations/events.ts'
import { timestamp } from '../../operations/fields.ts'
import { OrderSchema } from '../../operations/orders.ts'
import { notificationTypes, WebhookEndpointSchema } from '../../operations/webhook-endpoints.ts'

const objects = {
  order: OrderSchema,
  attendee: AttendeeSchema,
  event: EventSchema,
  webhook_endpoint: WebhookEndpointSchema,
}

const headers = {
  'webhook-id': 'Of the notification: the same at each attempt, so that repeats can be told.',
  'webhook-timestamp': 'When this attempt was made, in seconds since 1970.',
  'webhook-signature': 'One signature for each secret, two while one replaces another: see standardwebhooks.com.',
}

const description = `
Verify it with a library for [Standard Webhooks](https://www.standardwebhooks.com) and the secret of the endpoint, before trusting any of it.
It arrives at least once and in no particular order. Anything but 2xx is tried again, after 5 s, 5 min, 30 min, 2, 5, 10, 14, 20 and 24 h,
a fifth more or less, and not before a \`Retry-After\`.
`.trim()

export function describeWebhooks(): NonNullable<ZodOpenApiObject['webhooks']> {
  return Object.fromEntries(
    notificationTypes.map((type) => {
      const data = objects[type.split('.')[0] as keyof typeof objects]
      return [
        type,
        {
          post: {
            operationId: `on_${type.replace('.', '_')}`,
            summary: `Sent to webhook endpoints that hear of ${type}.`,
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
                  schema: z.strictObject({
                    type: z.literal(type),
                    timestamp: timestamp.describe('When it happened.'),
                    data: data.describe('The object as it was then.'),
                  }),
                },
              },
            },
            responses: {
              204: { description: 'Received; so says any 2xx within 15 seconds.' },
              410: { description: 'Never again: the endpoint is disabled.' },
            },
          },
        },
      ]
    }),
  )
}
