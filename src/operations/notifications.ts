// Notifications, the log of what happened, and their deliveries to webhook endpoints.
// SQL: supabase/schemas/27_notifications.sql to 31_webhook_delivery_operations.sql.

import * as z from 'zod'
import type { Operation } from '../operation.ts'
import { AttendeeSchema } from './attendees.ts'
import { EventSchema } from './events.ts'
import { id, listOf, one, paging, timestamp, timestampInput } from './fields.ts'
import { OrderSchema } from './orders.ts'
import { notificationTypes, WebhookEndpointSchema } from './webhook-endpoints.ts'

const deliveryStatuses = ['pending', 'delivered', 'failed', 'cancelled'] as const

const typeFilter = z
  .enum(notificationTypes, `must be one of ${notificationTypes.join(', ')}`)
  .optional()
  .describe('Only of this type.')

export const NotificationSchema = z.strictObject({
  object: z.literal('notification'),
  id: id('notification; also the webhook-id of its deliveries'),
  type: z.enum(notificationTypes),
  created_at: timestamp,
  data: z
    .union([OrderSchema, AttendeeSchema, EventSchema, WebhookEndpointSchema])
    .describe('The object as it was then; the first word of the type says which.'),
})

export const WebhookDeliverySchema = z.strictObject({
  object: z.literal('webhook_delivery'),
  id: id('delivery'),
  webhook_endpoint_id: id('webhook endpoint'),
  notification_id: id('notification; also the webhook-id'),
  type: z.enum(notificationTypes),
  status: z.enum(deliveryStatuses),
  attempts: z.int().describe('How often it was sent; counted anew when it is redelivered.'),
  next_attempt_at: timestamp.nullable(),
  last_attempt_at: timestamp.nullable(),
  last_response: z
    .strictObject({
      status: z.int().describe('HTTP status.'),
      body: z.string().nullable().describe('The first 1024 characters.'),
      milliseconds: z.int().nullable().describe('How long the endpoint took.'),
    })
    .nullable(),
  last_error: z.string().nullable().describe('Why there was no answer.'),
  delivered_at: timestamp.nullable(),
  created_at: timestamp,
  updated_at: timestamp,
})

export const listNotifications = {
  name: 'list_notifications',
  title: 'List notifications',
  summary: 'What happened, oldest first, to read on from the last one seen.',
  description:
    'Lists what happened, oldest first: orders created, completed and cancelled, people checked in, attendees and events changed. To catch up, pass the id of the last notification you saw (the webhook-id of a webhook) as after; while has_more is true, call again with cursor set to next_cursor. It shows what the key may read: order.* with orders:read, attendee.* with attendees:read, event.* with events:read. On not_found the notification is no longer kept: leave after out.',
  method: 'GET',
  path: '/notifications',
  scope: 'events:write',
  input: z.strictObject({
    type: typeFilter,
    after: id('last notification seen: only what came after it').optional(),
    ...paging,
  }),
  output: listOf(NotificationSchema),
} satisfies Operation

export const listWebhookDeliveries = {
  name: 'list_webhook_deliveries',
  title: 'List webhook deliveries',
  summary: 'Deliveries to webhook endpoints, newest first, by any of the filters.',
  description:
    'Lists deliveries to webhook endpoints, newest first, with what the endpoint answered last. Narrow it down by webhook_endpoint_id, by notification_id, by type, or by status: pending ones are tried again at next_attempt_at, failed ones were given up; send one again with redeliver_webhook. It shows deliveries of what the key may read.',
  method: 'GET',
  path: '/webhook-deliveries',
  scope: 'events:write',
  input: z.strictObject({
    webhook_endpoint_id: id('webhook endpoint').optional(),
    notification_id: id('notification').optional(),
    type: typeFilter,
    status: z
      .enum(deliveryStatuses, `must be one of ${deliveryStatuses.join(', ')}`)
      .optional()
      .describe('Only deliveries with this status.'),
    ...paging,
  }),
  output: listOf(WebhookDeliverySchema),
} satisfies Operation

export const redeliverWebhook = {
  name: 'redeliver_webhook',
  title: 'Redeliver a webhook',
  summary: 'Send a delivery once more, whatever became of it.',
  description:
    'Sends a delivery once more, also one that was delivered, with the same webhook-id and body. Find it with list_webhook_deliveries. On webhook_endpoint_disabled enable the endpoint first; on type_not_subscribed it does not hear of the type any more.',
  method: 'POST',
  path: '/webhook-deliveries/{webhook_delivery_id}/redeliver',
  scope: 'events:write',
  input: z.strictObject({ webhook_delivery_id: id('delivery') }),
  output: one(WebhookDeliverySchema),
  hints: { destructive: false, idempotent: false },
} satisfies Operation

export const WebhookRedeliverySchema = z.strictObject({
  object: z.literal('webhook_redelivery'),
  webhook_endpoint_id: id('webhook endpoint'),
  redelivered: z.int().describe('How many deliveries are owed once more; 10,000 at most in one call.'),
})

export const redeliverWebhooks = {
  name: 'redeliver_webhooks',
  title: 'Redeliver webhooks',
  summary: 'Send an endpoint once more what failed since a time.',
  description:
    'Sends a webhook endpoint once more what it was not sent since a time, say after an outage: by default all that failed, of the types it hears of. With status delivered it sends again what had arrived. At most 10,000 in one call, the oldest first: of what failed, repeat it while redelivered is 10000; of the rest, take narrower times. On webhook_endpoint_disabled enable the endpoint first.',
  method: 'POST',
  path: '/webhook-endpoints/{webhook_endpoint_id}/redeliver',
  scope: 'events:write',
  input: z.strictObject({
    webhook_endpoint_id: id('webhook endpoint'),
    since: timestampInput.describe('Only deliveries of what happened at or after this time: RFC 3339 with offset.'),
    until: timestampInput.optional().describe('Only of what happened before this time: RFC 3339 with offset.'),
    status: z
      .enum(deliveryStatuses, `must be one of ${deliveryStatuses.join(', ')}`)
      .optional()
      .meta({ default: 'failed' })
      .describe('Only deliveries with this status; failed when left out.'),
  }),
  output: one(WebhookRedeliverySchema),
  hints: { destructive: false, idempotent: false },
} satisfies Operation

export const testWebhookEndpoint = {
  name: 'test_webhook_endpoint',
  title: 'Test a webhook endpoint',
  summary: 'Send a webhook of type webhook_endpoint.test.',
  description:
    'Sends a webhook endpoint a notification of type webhook_endpoint.test, signed like any other. Answers the delivery; read it again with list_webhook_deliveries to see what the endpoint answered. On webhook_endpoint_disabled enable it first.',
  method: 'POST',
  path: '/webhook-endpoints/{webhook_endpoint_id}/test',
  scope: 'events:write',
  input: z.strictObject({ webhook_endpoint_id: id('webhook endpoint') }),
  output: one(WebhookDeliverySchema),
  hints: { destructive: false, idempotent: false },
} satisfies Operation
