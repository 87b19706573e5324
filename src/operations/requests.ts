// The log of requests. SQL: supabase/schemas/98-requests/requests.sql.

import * as z from 'zod'
import { id, timestamp } from './fields.ts'
import { flag, integer, line } from './inputs.ts'
import { atOrAfter, before, listOf, nextPage, paging } from './lists.ts'
import type { Declared } from './operation.ts'

const RequestSchema = z.strictObject({
  object: z.literal('request'),
  id: id('line'),
  request_id: z.string().describe('As in X-Request-Id and in error.request_id.'),
  source: z.enum(['api', 'mcp']),
  method: z.string().describe('HTTP method.'),
  route: z
    .string()
    .nullable()
    .describe('Over REST the path with {name} for its parameters, over MCP the operation; null for an unknown path.'),
  status: z.int().describe('HTTP status; over MCP that of the same answer over REST.'),
  code: z.string().nullable().describe('Error code; null for a success.'),
  param: z.string().nullable().describe('Field that the error is about.'),
  duration_ms: z.int(),
  api_key_id: id('API key'),
  idempotency_key: z.string().nullable(),
  created_at: timestamp.describe('When it was answered.'),
})

export const listRequests = {
  name: 'list_requests',
  title: 'List requests',
  description: `Lists answered requests of the last three days, newest first: status, error code and param tell why a call failed. A key sees its own; with events:write, those of all keys of its organisation. Lines appear within five seconds; the log has gaps under load and after a crash. ${nextPage}`,
  method: 'GET',
  path: '/requests',
  scope: null,
  unlisted: true,
  lean: [
    'request_id',
    'source',
    'method',
    'route',
    'status',
    'code',
    'param',
    'duration_ms',
    'api_key_id',
    'created_at',
  ],
  input: z.strictObject({
    status: integer(100, 599).optional().describe('Only this HTTP status.'),
    failed: flag.optional().describe('true: only status 400 and above; false: only successes.'),
    route: line(200)
      .optional()
      .describe('Only this route, such as /api/v1/events/{event_id}; over MCP the name of an operation.'),
    request_id: line(128).optional().describe('Only the request with this X-Request-Id.'),
    created_after: atOrAfter,
    created_before: before,
    ...paging,
  }),
  output: listOf(RequestSchema),
} satisfies Declared
