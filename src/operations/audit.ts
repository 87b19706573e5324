// The audit trail. SQL: supabase/schemas/90-outbox/audit-trail.sql.

import * as z from 'zod'
import { id, timestamp } from './fields.ts'
import { oneOf } from './inputs.ts'
import { atOrAfter, listOf, nextPage, paging } from './lists.ts'
import type { Declared } from './operation.ts'

const objectTypes = [
  'organisation',
  'member',
  'api_key',
  'event',
  'ticket_type',
  'promo_code',
  'order',
  'payment',
  'payment_void',
  'refund',
  'attendee',
  'check_in',
  'check_in_point',
  'question',
  'webhook_endpoint',
  'waiting_list_entry',
  'export',
] as const

const AuditEntrySchema = z.strictObject({
  object: z.literal('audit_entry'),
  id: id('entry'),
  action: z.enum(['created', 'updated', 'deleted', 'confirmed']),
  object_type: z.enum(objectTypes),
  object_id: z.string().describe('Identifier of the object.'),
  actor: z.enum(['api_key', 'member', 'studio', 'courier', 'guest']),
  actor_name: z.string().nullable().describe('Current name of the API key, or name or e-mail address of the member.'),
  api_key_id: z.string().nullable().describe('The API key, if any.'),
  user_id: z.string().nullable().describe('The signed-in member, if any.'),
  source: z.enum(['api', 'mcp', 'studio', 'page']),
  changes: z
    .record(z.string(), z.unknown())
    .nullable()
    .describe(
      'Changed fields, each as { from, to }; secrets and ticket codes without values. For an export, its arguments; for a confirmation, its operation.',
    ),
  created_at: timestamp,
})

export const listAuditEntries = {
  name: 'list_audit_entries',
  title: 'List audit entries',
  description: `Lists changes by people and keys, newest first, with values before and after; object_id gives the history of one object. ${nextPage}`,
  method: 'GET',
  path: '/audit-entries',
  scope: 'events:write',
  lean: ['action', 'object_type', 'object_id', 'actor_name', 'source', 'changes', 'created_at'],
  input: z.strictObject({
    object_type: oneOf(objectTypes).optional(),
    object_id: id('object').optional(),
    created_after: atOrAfter,
    ...paging,
  }),
  output: listOf(AuditEntrySchema),
} satisfies Declared
