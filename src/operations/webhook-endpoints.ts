// Webhook endpoints. SQL: supabase/schemas/25_webhook_endpoints.sql and 26_webhook_endpoint_operations.sql.

import * as z from 'zod'
import type { Operation } from '../operation.ts'
import { changesOf, control, id, ifVersions, line, listOf, one, paging, timestamp, version } from './fields.ts'

export const notificationTypes = [
  'order.created',
  'order.completed',
  'order.cancelled',
  'attendee.checked_in',
  'attendee.check_in_undone',
  'attendee.updated',
  'attendee.cancelled',
  'event.published',
  'event.updated',
  'event.cancelled',
  'webhook_endpoint.test',
] as const

const endpointStatuses = ['enabled', 'disabled'] as const
const subscribableTypes = notificationTypes.filter((type) => type !== 'webhook_endpoint.test')

export const WebhookEndpointSchema = z.strictObject({
  object: z.literal('webhook_endpoint'),
  id: id('webhook endpoint'),
  url: z.string(),
  description: z.string().nullable(),
  types: z.array(z.enum(notificationTypes)).describe('What it hears of.'),
  status: z.enum(endpointStatuses),
  disabled_reason: z.string().nullable().describe('Why Usher stopped sending; null where a person did.'),
  failing_since: timestamp
    .nullable()
    .describe('Since when nothing that was sent to it succeeded; disabled after five days.'),
  secret: z
    .string()
    .nullable()
    .describe('What its webhooks are signed with, as Standard Webhooks has it; shown at creation and rotation only.'),
  version,
  created_at: timestamp,
  updated_at: timestamp,
})

const webhookEndpointId = id('webhook endpoint')

const endpointFields = {
  url: line(
    2000,
    new RegExp(
      String.raw`^(https://([^\][/?#@:\s${control}]+|\[[0-9a-fA-F:.]+\])|http://(localhost|127\.0\.0\.1|\[::1\]))(:[0-9]{1,5})?([/?#][^\s${control}]*)?$`,
    ),
    'must be an https address without credentials',
  )
    .refine(URL.canParse, 'must be an address')
    .describe('Where webhooks are sent: an https address. http only to this machine, while developing.'),
  description: line(200).nullable().describe('For people: what listens there.'),
  types: z
    .array(z.enum(subscribableTypes, `must be one of ${subscribableTypes.join(', ')}`))
    .min(1, 'must name at least one type')
    .max(50, 'must be at most 50')
    .describe('What it hears of; each type needs the scope to read its object.'),
}

const needsScopes =
  'order.* types also need orders:read, attendee.* attendees:read and event.* events:read: on missing_scope details.scope names it.'

export const listWebhookEndpoints = {
  name: 'list_webhook_endpoints',
  title: 'List webhook endpoints',
  summary: 'Webhook endpoints of the organisation, newest first.',
  description:
    'Lists the addresses that hear of what happens, newest first, with the types each hears of and whether it is enabled. Secrets are not shown.',
  method: 'GET',
  path: '/webhook-endpoints',
  scope: 'events:write',
  input: z.strictObject(paging),
  output: listOf(WebhookEndpointSchema),
} satisfies Operation

export const getWebhookEndpoint = {
  name: 'get_webhook_endpoint',
  title: 'Get a webhook endpoint',
  summary: 'One webhook endpoint, without its secret.',
  description:
    'Reads one webhook endpoint by its identifier. On not_found, find the identifier with list_webhook_endpoints.',
  method: 'GET',
  path: '/webhook-endpoints/{webhook_endpoint_id}',
  scope: 'events:write',
  input: z.strictObject({ webhook_endpoint_id: webhookEndpointId }),
  output: one(WebhookEndpointSchema),
} satisfies Operation

export const createWebhookEndpoint = {
  name: 'create_webhook_endpoint',
  title: 'Create a webhook endpoint',
  summary: 'Send webhooks of some types to an address.',
  description: `Adds an address that is told of what happens from now on, by signed webhooks (Standard Webhooks). The answer shows the secret, this once: keep it where the receiver verifies signatures. ${needsScopes} Try it with test_webhook_endpoint. There can be 50: on too_many_webhook_endpoints delete one.`,
  method: 'POST',
  path: '/webhook-endpoints',
  scope: 'events:write',
  input: z.strictObject({
    url: endpointFields.url,
    types: endpointFields.types,
    description: endpointFields.description.optional(),
  }),
  output: one(WebhookEndpointSchema),
  hints: { destructive: false, idempotent: false },
} satisfies Operation

export const updateWebhookEndpoint = {
  name: 'update_webhook_endpoint',
  title: 'Change a webhook endpoint',
  summary: 'Change address, description or types of a webhook endpoint; disable or enable it.',
  description: `Changes a webhook endpoint. status disabled stops sending, enabled starts again with what was owed before; what happened meanwhile is in list_notifications. ${needsScopes} On version_mismatch read it again.`,
  method: 'PATCH',
  path: '/webhook-endpoints/{webhook_endpoint_id}',
  scope: 'events:write',
  input: z.strictObject({
    webhook_endpoint_id: webhookEndpointId,
    changes: changesOf({
      ...endpointFields,
      status: z.enum(endpointStatuses, 'must be enabled or disabled').describe('disabled: nothing is sent to it.'),
    }),
    if_version: ifVersions,
  }),
  output: one(WebhookEndpointSchema),
  hints: { destructive: true, idempotent: true },
} satisfies Operation

export const deleteWebhookEndpoint = {
  name: 'delete_webhook_endpoint',
  title: 'Delete a webhook endpoint',
  summary: 'Forget a webhook endpoint, with its secret and its deliveries.',
  description:
    'Deletes a webhook endpoint with its secret and the log of its deliveries, for good. To stop sending for a while, set its status to disabled with update_webhook_endpoint instead.',
  method: 'DELETE',
  path: '/webhook-endpoints/{webhook_endpoint_id}',
  scope: 'events:write',
  input: z.strictObject({ webhook_endpoint_id: webhookEndpointId }),
  output: one(
    z.strictObject({ object: z.literal('webhook_endpoint'), id: webhookEndpointId, deleted: z.literal(true) }),
  ),
  hints: { destructive: true, idempotent: false },
} satisfies Operation

export const rotateWebhookSecret = {
  name: 'rotate_webhook_secret',
  title: 'Rotate a webhook secret',
  summary: 'Give a webhook endpoint a new secret; for a while webhooks are signed with both.',
  description: `Gives a webhook endpoint a new secret and shows it, this once. The one before it goes on signing beside it for overlap_hours, so that the receiver can be changed meanwhile; any older one stops now. ${needsScopes}`,
  method: 'POST',
  path: '/webhook-endpoints/{webhook_endpoint_id}/rotate-secret',
  scope: 'events:write',
  input: z.strictObject({
    webhook_endpoint_id: webhookEndpointId,
    overlap_hours: z
      .int('must be a whole number from 0 to 168')
      .min(0, 'must be at least 0')
      .max(168, 'must be at most 168')
      .optional()
      .meta({ default: 24 })
      .describe('How long both sign, in hours up to a week; 24 when left out. 0 when the old one has leaked.'),
  }),
  output: one(WebhookEndpointSchema),
  hints: { destructive: true, idempotent: false },
} satisfies Operation
