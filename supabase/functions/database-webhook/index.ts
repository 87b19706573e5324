// An example of the other way: a Database Webhook of Supabase (Database, Webhooks) on inserts into public.notifications, in Usher's own
// project. Less than a signed webhook: pg_net sends it once, unsigned, and forgets it. Good for a hint; docs/guides/edge-functions.md says when.
//
//   supabase secrets set DATABASE_WEBHOOK_SECRET=$(openssl rand -hex 32)
//   supabase functions deploy database-webhook
// and in the Database Webhook the header Authorization: Bearer DATABASE_WEBHOOK_SECRET.

import { env } from 'node:process'
import { bearerOf } from '../../../src/http/middleware/bearer.ts'
import { sharedSecret } from '../../../src/http/middleware/shared-secret.ts'

declare const Deno: { serve(handler: (request: Request) => Promise<Response>): unknown }

type Notification = { id: string; type: string; data: { object: string; id?: string }; created_at: string }

/** As pg_net sends it; `record` is the row, here of notifications. */
type Payload = { type: 'INSERT' | 'UPDATE' | 'DELETE'; table: string; record: Notification | null }

const { DATABASE_WEBHOOK_SECRET = '' } = env
if (DATABASE_WEBHOOK_SECRET.length < 16)
  throw new Error('DATABASE_WEBHOOK_SECRET must be set, to at least 16 characters.')
const isSecret = sharedSecret(DATABASE_WEBHOOK_SECRET)

Deno.serve(async (request) => {
  if (!isSecret(bearerOf(request.headers.get('Authorization')) ?? '')) {
    return new Response('The secret is not valid.', { status: 401 })
  }
  const payload = await request.json().then(payloadOf, () => undefined)
  if (payload === undefined) return new Response('This is not what a Database Webhook sends.', { status: 400 })
  const { type, table, record } = payload
  if (type !== 'INSERT' || table !== 'notifications' || record === null) return Response.json({ handled: false })
  // A hint only: it may be missing, and nothing says that it comes once. Read the truth from GET /notifications.
  console.log(`${record.created_at} ${record.type} ${record.data.object} ${record.data.id ?? ''}`)
  return Response.json({ handled: true, id: record.id, type: record.type })
})

/** Of anything else, undefined. */
function payloadOf(body: unknown): Payload | undefined {
  const { type, table, record } = (body ?? {}) as Partial<Payload>
  if (typeof type !== 'string' || typeof table !== 'string') return undefined
  if (table === 'notifications' && type !== 'DELETE' && typeof record?.data?.object !== 'string') return undefined
  return { type, table, record: record ?? null }
}
