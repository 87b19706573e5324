// An example of a consumer: verifies Usher's webhooks, keeps each in the table webhook_inbox (table.sql), and says in a chat who has
// arrived. Copy it into the project that is to receive them. Idempotent by webhook-id, for a webhook may arrive twice.
//
//   supabase secrets set WEBHOOK_SECRET=whsec_… CHAT_WEBHOOK_URL=https://hooks.slack.com/…
//   supabase functions deploy webhook-consumer

import { env } from 'node:process'
import { createClient } from '@supabase/supabase-js'
import { Webhook } from 'standardwebhooks'

declare const Deno: { serve(handler: (request: Request) => Promise<Response>): unknown }

type Received = { type: string; timestamp: string; data: { id?: string; name?: string; company?: string | null } }

const { SUPABASE_URL = '', SUPABASE_SERVICE_ROLE_KEY = '', WEBHOOK_SECRET = '', CHAT_WEBHOOK_URL } = env
const webhook = new Webhook(WEBHOOK_SECRET)
const supabase = createClient(SUPABASE_URL, SUPABASE_SERVICE_ROLE_KEY, { auth: { persistSession: false } })

Deno.serve(async (request) => {
  const body = await request.text()
  let received: Received
  try {
    received = webhook.verify(body, Object.fromEntries(request.headers)) as Received
  } catch {
    return new Response('The signature is not valid.', { status: 401 })
  }

  const webhook_id = request.headers.get('webhook-id') ?? ''
  const { type, timestamp, data } = received
  const { error } = await supabase.from('webhook_inbox').insert({ webhook_id, type, sent_at: timestamp, data })
  // The unique key says that it was handled before.
  if (error?.code === '23505') return new Response(null, { status: 204 })
  // Any answer but 2xx is tried again.
  if (error) return new Response(error.message, { status: 500 })

  if (
    type === 'attendee.checked_in' &&
    !(await say(`${data.name} is here${data.company ? ` (${data.company})` : ''}.`))
  ) {
    await supabase.from('webhook_inbox').delete().eq('webhook_id', webhook_id)
    return new Response('The chat does not answer.', { status: 502 })
  }
  return new Response(null, { status: 204 })
})

/** Posts to the incoming webhook of a chat, as Slack and others have it. @returns whether it was taken, or there is none. */
async function say(text: string): Promise<boolean> {
  if (!CHAT_WEBHOOK_URL) return true
  const response = await fetch(CHAT_WEBHOOK_URL, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ text }),
  }).catch(() => undefined)
  return response?.ok === true
}
