// An example of the other way: a Database Webhook of Supabase (Database, Webhooks) on inserts into public.notifications, in Usher's own
// project. Less than a signed webhook: pg_net sends it once, unsigned, and forgets it. Good for a hint; docs/organisers.md says when.
//
//   supabase secrets set DATABASE_WEBHOOK_SECRET=$(openssl rand -hex 32)
//   supabase functions deploy database-webhook
// and in the Database Webhook the header Authorization: Bearer DATABASE_WEBHOOK_SECRET.

import { env } from 'node:process'
import { bearerOf } from '../../../src/http/middleware/bearer.ts'
import { sharedSecret } from '../../../src/http/middleware/shared-secret.ts'

declare const Deno: { serve(handler: (request: Request) => Promise<Response>): unknown }

/** As pg_net sends it; `record` is the row. */
type Payload = {
  type: 'INSERT' | 'UPDATE' | 'DELETE'
  schema: string
  table: string
  record: {
    id: string
    organisation_id: string
    type: string
    data: { object: string; id?: string }
    created_at: string
  } | null
  old_record: unknown
}

const { DATABASE_WEBHOOK_SECRET = '' } = env
if (DATABASE_WEBHOOK_SECRET.length < 16)
  throw new Error('DATABASE_WEBHOOK_SECRET must be set, to at least 16 characters.')
const isSecret = sharedSecret(DATABASE_WEBHOOK_SECRET)

Deno.serve(async (request) => {
  if (!isSecret(bearerOf(request.headers.get('Authorization')) ?? '')) {
    return new Response('The secret is not valid.', { status: 401 })
  }
  const { type, table, record } = (await request.json()) as Payload
  if (type !== 'INSERT' || table !== 'notifications' || record === null) return Response.json({ handled: false })
  // A hint only: it may be missing, and nothing says that it comes once. Read the truth from GET /notifications.
  console.log(`${record.created_at} ${record.type} ${record.data.object} ${record.data.id ?? ''}`)
  return Response.json({ handled: true, id: record.id, type: record.type })
})
