// Webhook endpoints. SQL: supabase/schemas/90-outbox/endpoints.sql and endpoint-operations.sql.

import * as z from 'zod'
import { changesOf, ifVersions, readAgain } from './changes.ts'
import { deleted, id, one, timestamp, versioned } from './fields.ts'
import { integer, line, secureUrl } from './inputs.ts'
import { listOf, paging } from './lists.ts'
import type { Declared } from './operation.ts'

/** Each type, and when it is sent. */
export const notifications = {
  'order.created': 'Guests are registered, or the first attendee of an order is added in Studio.',
  'order.updated': 'Contact, deadline, total or payments of an order change, and no other type of order.* tells it.',
  'order.completed': 'Nothing is due: the order is free or paid, and its tickets are valid.',
  'order.cancelled': 'The order, or its last ticket, is cancelled.',
  'order.expired': 'The order was not paid by its deadline, and is cancelled.',
  'order.reopened': 'An order that expired gets more time.',
  'attendee.created': 'An attendee is added to an order that exists; the first ones are part of order.created.',
  'attendee.checked_in': 'An entry is scanned and accepted.',
  'attendee.checked_out': 'An exit is scanned and accepted.',
  'attendee.check_in_undone': 'A check-in is undone.',
  'attendee.updated': 'An attendee or their ticket changes.',
  'attendee.cancelled': 'A ticket is cancelled: one notification for each.',
  'attendee.erased': 'The personal data of an attendee is erased.',
  'event.published': 'An event is published.',
  'event.updated': 'An event that is not a draft is edited, unpublished or completed.',
  'event.cancelled': 'An event is cancelled.',
  'payment.recorded': 'A payment is recorded.',
  'payment.voided': 'A payment is voided.',
  'refund.recorded': 'A refund is recorded.',
  'email.bounced': 'An e-mail could not be delivered: it bounced, or was refused.',
  'ticket_type.sold_out':
    'The last place of a ticket type is taken, or its quantity or the capacity is lowered to what is sold.',
  'waiting_list_entry.created': 'A person joins the waiting list.',
  'waiting_list_entry.offered': 'The waiting list offers a person a place.',
  'waiting_list_entry.accepted': 'The person accepts the offer.',
  'waiting_list_entry.expired': 'The offer ends without an answer.',
  'waiting_list_entry.cancelled': 'The entry is cancelled.',
  'webhook_endpoint.test': 'You call test_webhook_endpoint.',
}

export type NotificationType = keyof typeof notifications
export const notificationTypes = Object.keys(notifications) as NotificationType[]

const endpointStatuses = ['enabled', 'disabled'] as const
/** There are too many to name in a refusal. */
export const unknownType = 'must be a type of notification, such as order.completed or attendee.checked_in'
export const subscribableTypes = notificationTypes.filter((type) => type !== 'webhook_endpoint.test')
/** `*`: every type, also later ones. */
const endpointTypes = ['*', ...subscribableTypes] as const

export const WebhookEndpointSchema = z.strictObject({
  object: z.literal('webhook_endpoint'),
  id: id('webhook endpoint'),
  url: z.string(),
  description: z.string().nullable(),
  types: z.array(z.enum(endpointTypes)).describe('Types it is subscribed to; *: every type.'),
  event_ids: z.array(z.string()).describe('Send only notifications of these events; empty: all events.'),
  status: z.enum(endpointStatuses),
  disabled_reason: z.string().nullable().describe('Why Usher disabled it; null if a person did.'),
  failing_since: timestamp
    .nullable()
    .describe('Start of continuous failure; after five days the endpoint is disabled.'),
  secret: z.string().nullable().describe('Signing secret (Standard Webhooks); shown at creation and rotation only.'),
  ...versioned,
})

const endpointEssentials = ['id', 'url', 'description', 'types', 'status', 'disabled_reason', 'failing_since']

const endpointFields = {
  url: secureUrl.describe('An https URL.'),
  types: z
    .array(z.enum(endpointTypes, unknownType))
    .min(1, 'must name at least one type')
    .max(50, 'must be at most 50')
    .refine((types) => !types.includes('*') || types.length === 1, 'must have * alone, or types without it')
    .describe('Each needs the scope to read its object; * alone: all.'),
  event_ids: z.array(z.guid()).max(100, 'must be at most 100').describe('Only of these events. Empty: all.'),
  description: line(200).nullable().describe('For people.'),
}

export const listWebhookEndpoints = {
  name: 'list_webhook_endpoints',
  title: 'List webhook endpoints',
  description: 'Lists webhook endpoints, with types and status, without secrets.',
  method: 'GET',
  path: '/webhook-endpoints',
  scope: 'events:write',
  lean: endpointEssentials,
  input: z.strictObject(paging),
  output: listOf(WebhookEndpointSchema),
} satisfies Declared

export const getWebhookEndpoint = {
  name: 'get_webhook_endpoint',
  title: 'Get a webhook endpoint',
  description: 'Returns one webhook endpoint, without its secret.',
  method: 'GET',
  path: '/webhook-endpoints/{webhook_endpoint_id}',
  scope: 'events:write',
  unlisted: true,
  input: z.strictObject({ webhook_endpoint_id: id('webhook endpoint') }),
  output: one(WebhookEndpointSchema),
} satisfies Declared

export const createWebhookEndpoint = {
  name: 'create_webhook_endpoint',
  title: 'Create a webhook endpoint',
  description: `Adds a URL that receives notifications from now on as signed webhooks (Standard Webhooks). The secret is only in this answer: store it with the receiver. Try it with test_webhook_endpoint.`,
  method: 'POST',
  path: '/webhook-endpoints',
  errors: ['not_found', 'too_many_webhook_endpoints'],
  scope: 'events:write',
  lean: [...endpointEssentials, 'secret'],
  input: z.strictObject(endpointFields).partial().required({ url: true, types: true }),
  output: one(WebhookEndpointSchema),
  hints: { destructive: false, idempotent: false, openWorld: false },
} satisfies Declared

export const updateWebhookEndpoint = {
  name: 'update_webhook_endpoint',
  title: 'Change a webhook endpoint',
  description: `Changes a webhook endpoint. status disabled pauses it; enabled resumes pending deliveries. list_notifications has the changes in between. On missing_scope see details.scope. ${readAgain}`,
  method: 'PATCH',
  path: '/webhook-endpoints/{webhook_endpoint_id}',
  scope: 'events:write',
  unlisted: true,
  lean: endpointEssentials,
  input: z.strictObject({
    webhook_endpoint_id: id('webhook endpoint'),
    changes: changesOf({
      ...endpointFields,
      status: z.enum(endpointStatuses, 'must be enabled or disabled').describe('disabled: no webhooks.'),
    }),
    if_version: ifVersions,
  }),
  output: one(WebhookEndpointSchema),
  hints: { destructive: true, idempotent: true, openWorld: true },
} satisfies Declared

export const deleteWebhookEndpoint = {
  name: 'delete_webhook_endpoint',
  title: 'Delete a webhook endpoint',
  description:
    'Deletes a webhook endpoint with its secret and deliveries, permanently. update_webhook_endpoint can pause it instead.',
  method: 'DELETE',
  path: '/webhook-endpoints/{webhook_endpoint_id}',
  scope: 'events:write',
  unlisted: true,
  input: z.strictObject({ webhook_endpoint_id: id('webhook endpoint') }),
  output: deleted('webhook_endpoint', 'webhook endpoint'),
  hints: { destructive: true, idempotent: false, openWorld: false },
} satisfies Declared

export const rotateWebhookSecret = {
  name: 'rotate_webhook_secret',
  title: 'Rotate a webhook secret',
  description: `Gives a webhook endpoint a new secret, shown only in this answer. For overlap_hours the previous one signs as well.`,
  method: 'POST',
  path: '/webhook-endpoints/{webhook_endpoint_id}/rotate-secret',
  scope: 'events:write',
  unlisted: true,
  lean: [...endpointEssentials, 'secret'],
  input: z.strictObject({
    webhook_endpoint_id: id('webhook endpoint'),
    overlap_hours: integer(0, 168)
      .optional()
      .describe('Hours for which both secrets sign, up to a week; default 24. Use 0 if the old one has leaked.'),
  }),
  output: one(WebhookEndpointSchema),
  hints: { destructive: true, idempotent: false, openWorld: false },
} satisfies Declared
