// Notifications (the log of changes) and their deliveries to webhook endpoints.
// SQL: supabase/schemas/90-outbox/notifications.sql to 90-outbox/delivery-operations.sql.

import * as z from 'zod'
import { AttendeeSchema } from './attendees.ts'
import { directions } from './check-ins.ts'
import { emailKinds } from './email-kinds.ts'
import { EventSchema } from './events.ts'
import { id, one, timestamp } from './fields.ts'
import { oneOf } from './inputs.ts'
import { atOrAfter, before, listOf, nextPage, paging } from './lists.ts'
import { type Declared, names } from './operation.ts'
import { OrderSchema, PaymentSchema, RefundSchema } from './orders.ts'
import { TicketTypeSchema } from './ticket-types.ts'
import { WaitingListEntrySchema } from './waiting-list.ts'
import { notificationTypes, unknownType, WebhookEndpointSchema } from './webhook-endpoints.ts'

const deliveryStatuses = ['pending', 'delivered', 'failed', 'cancelled'] as const

const typeFilter = z.enum(notificationTypes, unknownType).optional().describe('Only this type.')

/** The data of email.bounced. */
export const BouncedEmailSchema = z.strictObject({
  object: z.literal('email'),
  kind: z.enum(emailKinds).describe('Kind of e-mail.'),
  event_id: id('event'),
  order_id: id('order').nullable().describe('null: a waiting-list offer.'),
  attendee_id: id('attendee').nullable().describe('null: to the buyer.'),
  waiting_list_entry_id: id('entry of the waiting list').nullable().describe('For a waiting-list offer.'),
  to: z.string().describe('The undeliverable address.'),
  status: z.enum(['bounced', 'failed']).describe('bounced: returned later. failed: refused when it was sent.'),
  sent_at: timestamp.nullable(),
  error: z.string().nullable().describe('Report of the mail service.'),
})

/** The data of attendee.checked_in, attendee.checked_out and attendee.check_in_undone: the attendee, and the scan. */
export const ArrivalSchema = AttendeeSchema.extend({
  check_in: z
    .strictObject({
      id: id('check-in'),
      direction: z.enum(directions),
      check_in_point: z.strictObject({ id: id('check-in point'), name: z.string() }).nullable(),
      scanned_at: timestamp,
      device: z.string().nullable(),
    })
    .describe('The scan.'),
})

export const NotificationSchema = z.strictObject({
  object: z.literal('notification'),
  id: id('notification; also the webhook-id of its deliveries'),
  type: z.enum(notificationTypes),
  created_at: timestamp,
  data: z
    .union([
      OrderSchema,
      PaymentSchema,
      RefundSchema,
      AttendeeSchema,
      ArrivalSchema,
      BouncedEmailSchema,
      EventSchema,
      TicketTypeSchema,
      WaitingListEntrySchema,
      WebhookEndpointSchema,
    ])
    .describe('The object at that time; the first word of the type names its kind.'),
})

export const WebhookDeliverySchema = z.strictObject({
  object: z.literal('webhook_delivery'),
  id: id('delivery'),
  webhook_endpoint_id: id('webhook endpoint'),
  notification_id: id('notification; also the webhook-id'),
  type: z.enum(notificationTypes),
  status: z.enum(deliveryStatuses),
  attempts: z.int().describe('Number of attempts; starts again at 0 when it is redelivered.'),
  next_attempt_at: timestamp.nullable(),
  last_attempt_at: timestamp.nullable(),
  last_response: z
    .strictObject({
      status: z.int().describe('HTTP status.'),
      body: z.string().nullable().describe('The first 1024 characters.'),
      milliseconds: z.int().nullable().describe('Response time of the endpoint.'),
    })
    .nullable(),
  last_error: z.string().nullable().describe('Why there was no response.'),
  delivered_at: timestamp.nullable(),
  created_at: timestamp,
  updated_at: timestamp,
})

const deliveryEssentials = names(`
  id webhook_endpoint_id type status attempts next_attempt_at created_at
  last_response.status last_response.body last_error
`)

export const listNotifications = {
  name: 'list_notifications',
  title: 'List notifications',
  description: `Lists changes of objects the key may read, oldest first. To catch up, pass the last id you saw (the webhook-id of a webhook) as after. ${nextPage} On not_found it is past its retention: leave after out.`,
  method: 'GET',
  path: '/notifications',
  errors: ['not_found'],
  scope: 'events:write',
  unlisted: true,
  lean: names(`
    id type created_at
    data.id data.reference data.name data.status data.kind data.to data.amount data.currency
  `),
  input: z.strictObject({
    type: typeFilter,
    after: id('last notification seen: only later ones').optional(),
    created_after: atOrAfter,
    ...paging,
  }),
  output: listOf(NotificationSchema),
} satisfies Declared

export const listWebhookDeliveries = {
  name: 'list_webhook_deliveries',
  title: 'List webhook deliveries',
  description: `Lists webhook deliveries, newest first, with the last response of the endpoint. redeliver_webhook sends a failed one again. ${nextPage}`,
  method: 'GET',
  path: '/webhook-deliveries',
  scope: 'events:write',
  lean: deliveryEssentials,
  input: z.strictObject({
    webhook_endpoint_id: id('webhook endpoint').optional(),
    notification_id: id('notification').optional(),
    type: typeFilter,
    status: oneOf(deliveryStatuses).optional().describe('Only deliveries with this status.'),
    ...paging,
  }),
  output: listOf(WebhookDeliverySchema),
} satisfies Declared

export const redeliverWebhook = {
  name: 'redeliver_webhook',
  title: 'Redeliver a webhook',
  description: 'Sends a delivery again, whatever its status, with the same webhook-id and body.',
  method: 'POST',
  path: '/webhook-deliveries/{webhook_delivery_id}/redeliver',
  errors: ['webhook_endpoint_disabled', 'type_not_subscribed'],
  scope: 'events:write',
  lean: deliveryEssentials,
  input: z.strictObject({ webhook_delivery_id: id('delivery') }),
  output: one(WebhookDeliverySchema),
  hints: { destructive: false, idempotent: false, openWorld: true },
} satisfies Declared

export const WebhookRedeliverySchema = z.strictObject({
  object: z.literal('webhook_redelivery'),
  webhook_endpoint_id: id('webhook endpoint'),
  redelivered: z.int().describe('How many deliveries are due again; at most 10,000 per call.'),
})

export const redeliverWebhooks = {
  name: 'redeliver_webhooks',
  title: 'Redeliver webhooks',
  description:
    'Sends undelivered webhooks again after an outage: all, or those tried or added from updated_after on (its failing_since); with status delivered also those that arrived. Repeat it while redelivered is 10000.',
  method: 'POST',
  path: '/webhook-endpoints/{webhook_endpoint_id}/redeliver',
  errors: ['webhook_endpoint_disabled'],
  scope: 'events:write',
  input: z.strictObject({
    webhook_endpoint_id: id('webhook endpoint'),
    updated_after: atOrAfter,
    created_before: before,
    status: oneOf(deliveryStatuses).optional().describe('Default failed and pending.'),
  }),
  output: one(WebhookRedeliverySchema),
  hints: { destructive: false, idempotent: false, openWorld: true },
} satisfies Declared

export const testWebhookEndpoint = {
  name: 'test_webhook_endpoint',
  title: 'Test a webhook endpoint',
  description:
    'Sends webhook_endpoint.test, or the example of a type, to a webhook endpoint. list_webhook_deliveries has the response.',
  method: 'POST',
  path: '/webhook-endpoints/{webhook_endpoint_id}/test',
  errors: ['webhook_endpoint_disabled'],
  scope: 'events:write',
  lean: deliveryEssentials,
  input: z.strictObject({
    webhook_endpoint_id: id('webhook endpoint'),
    type: z.enum(notificationTypes, unknownType).optional().describe('Its example is sent, with livemode false.'),
  }),
  output: one(WebhookDeliverySchema),
  hints: { destructive: false, idempotent: false, openWorld: true },
} satisfies Declared
