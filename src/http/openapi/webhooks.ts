// The webhooks of the OpenAPI document, for writing a receiver: one for each type of notification.

import * as z from 'zod'
import type { ZodOpenApiObject } from 'zod-openapi'
import { AttendeeSchema } from '../../operations/attendees.ts'
import { EventSchema } from '../../operations/events.ts'
import { timestamp } from '../../operations/fields.ts'
import { ArrivalSchema, BouncedEmailSchema } from '../../operations/notifications.ts'
import { OrderSchema, PaymentSchema, RefundSchema } from '../../operations/orders.ts'
import { TicketTypeSchema } from '../../operations/ticket-types.ts'
import { WaitingListEntrySchema } from '../../operations/waiting-list.ts'
import { notificationTypes, WebhookEndpointSchema } from '../../operations/webhook-endpoints.ts'

const objects = {
  order: OrderSchema,
  payment: PaymentSchema,
  refund: RefundSchema,
  attendee: AttendeeSchema,
  email: BouncedEmailSchema,
  event: EventSchema,
  ticket_type: TicketTypeSchema,
  waiting_list_entry: WaitingListEntrySchema,
  webhook_endpoint: WebhookEndpointSchema,
}

const headers = {
  'webhook-id': 'Identifier of the notification: the same at each attempt, to detect repeats.',
  'webhook-timestamp': 'Time of this attempt, in seconds since 1970.',
  'webhook-signature': 'One signature for each secret, two while one replaces another: see standardwebhooks.com.',
}

const description = `
Verify it with a library for [Standard Webhooks](https://www.standardwebhooks.com) and the secret of the endpoint, before trusting its content.
It arrives at least once and in no particular order. Any response but 2xx is retried, after 5 s, 5 min, 30 min, 2, 5, 10, 14, 20 and 24 h,
each varied by up to a fifth, and not before a \`Retry-After\`.
`.trim()

export function describeWebhooks(): NonNullable<ZodOpenApiObject['webhooks']> {
  return Object.fromEntries(
    notificationTypes.map((type) => {
      const data = type.startsWith('attendee.check')
        ? ArrivalSchema
        : objects[type.split('.')[0] as keyof typeof objects]
      return [
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
                  schema: z.strictObject({
                    type: z.literal(type),
                    timestamp: timestamp.describe('When it happened.'),
                    data: data.describe('The object at that time.'),
                  }),
                },
              },
            },
            responses: {
              204: { description: 'Received. Any 2xx within 15 seconds counts.' },
              410: { description: 'Disables the endpoint.' },
            },
          },
        },
      ]
    }),
  )
}
