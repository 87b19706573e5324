// The calling key itself. SQL: supabase/schemas/10-organisations/api-keys.sql.

import * as z from 'zod'
import { id, one, timestamp } from './fields.ts'
import { type Declared, scopes } from './operation.ts'

/** docs/spec.md, "API key object" and "Organisation object". */
export const ApiKeySchema = z.strictObject({
  object: z.literal('api_key'),
  id: id('key'),
  name: z.string(),
  prefix: z.string().describe('First characters of the key, for identification only.'),
  scopes: z.array(z.enum(scopes)),
  organisation: z.strictObject({
    object: z.literal('organisation'),
    id: id('organisation'),
    name: z.string(),
    slug: z.string(),
    plan: z.string(),
  }),
  rate_limit_per_minute: z.int().describe('Requests per minute allowed to this key.'),
  expires_at: timestamp.nullable(),
  created_at: timestamp,
  updated_at: timestamp,
})

export const getApiKey = {
  name: 'get_api_key',
  title: 'Get the API key',
  description: 'Shows the organisation, scopes and rate limit of the calling key.',
  method: 'GET',
  path: '/me',
  scope: null,
  unlisted: true,
  input: z.strictObject({}),
  output: one(ApiKeySchema),
} satisfies Declared
