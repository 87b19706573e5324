// An example of a consumer: verifies Usher's webhooks, keeps each once in the table webhook_inbox (table.sql), and says in a chat who has
// arrived. It records first and posts after: whatever ends in between, the next attempt of the same webhook finds what is still to be
// said. Requests for one webhook at the same time post it once: the first of them takes it for as long as a post may take.
// docs/guides/edge-functions.md goes from here to a message in a chat.

import { env } from 'node:process'
import { createClient } from '@supabase/supabase-js'
import { Webhook } from 'standardwebhooks'
import type { UsherWebhook } from './usher-webhooks.ts'

declare const Deno: { serve(handler: (request: Request) => Promise<Response>): unknown }

// Usher waits 15 seconds for an answer.
const chatTimeoutMs = 5_000

const { SUPABASE_URL = '', SUPABASE_SECRET_KEYS = '{}', WEBHOOK_SECRET = '', CHAT_WEBHOOK_URL = '' } = env
if (!/^whsec_./.test(WEBHOOK_SECRET)) throw new Error('WEBHOOK_SECRET must be set, to the secret of the endpoint.')
if (!URL.canParse(CHAT_WEBHOOK_URL)) throw new Error('CHAT_WEBHOOK_URL must be set, to the incoming webhook of a chat.')
const [secretKey] = Object.values<string>(JSON.parse(SUPABASE_SECRET_KEYS || '{}'))
if (!secretKey) throw new Error('SUPABASE_SECRET_KEYS has no key: create a secret key in the dashboard, "API Keys".')

const webhook = new Webhook(WEBHOOK_SECRET)
const supabase = createClient(SUPABASE_URL, secretKey, { auth: { persistSession: false } })

Deno.serve(async (request) => {
  const body = await request.text()
  let received: UsherWebhook
  try {
    received = webhook.verify(body, Object.fromEntries(request.headers)) as UsherWebhook
  } catch {
    return new Response('The signature is not valid.', { status: 401 })
  }

  // The same at each attempt.
  const webhook_id = request.headers.get('webhook-id') ?? ''
  const { type, timestamp, data } = received
  const inbox = supabase.from('webhook_inbox')
  const { data: kept, error } = await inbox
    .upsert({ webhook_id, type, sent_at: timestamp, data }, { onConflict: 'webhook_id' })
    .select('posted_at')
    .single()
  // Any answer but 2xx is tried again.
  if (error) return new Response(error.message, { status: 500 })

  const text = messageOf(received)
  if (text === undefined || kept.posted_at !== null) return new Response(null, { status: 204 })
  const now = new Date()
  const taken = await inbox
    .update({ taken_until: new Date(now.getTime() + chatTimeoutMs + 1_000) }, { count: 'exact' })
    .eq('webhook_id', webhook_id)
    .is('posted_at', null)
    .or(`taken_until.is.null,taken_until.lt.${now.toISOString()}`)
  if (taken.error) return new Response(taken.error.message, { status: 500 })
  if (taken.count !== 1) return new Response('Another request is posting it.', { status: 503 })
  const isPosted = await post(text)
  // If it ends right here, the message is said a second time: a chat cannot be asked whether it has it.
  const ended = await inbox
    .update(isPosted ? { posted_at: new Date() } : { taken_until: null })
    .eq('webhook_id', webhook_id)
  if (ended.error) console.error(ended.error.message)
  return isPosted ? new Response(null, { status: 204 }) : new Response('The chat does not answer.', { status: 502 })
})

/** What is said of a webhook; undefined where it is only kept. */
function messageOf(received: UsherWebhook): string | undefined {
  switch (received.type) {
    case 'attendee.checked_in': {
      const { name, company } = received.data
      return `${name} is here${company ? ` (${company})` : ''}.`
    }
    case 'webhook_endpoint.test':
      return 'Usher reaches this chat.'
    default:
      return undefined
  }
}

/** Posts to the incoming webhook of a chat, as Slack and others have it. @returns whether it was taken in time. */
async function post(text: string): Promise<boolean> {
  const response = await fetch(CHAT_WEBHOOK_URL, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ text }),
    signal: AbortSignal.timeout(chatTimeoutMs),
  }).catch(() => undefined)
  return response?.ok === true
}
