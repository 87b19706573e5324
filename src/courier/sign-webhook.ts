// A webhook as it is sent: body and headers, signed (https://www.standardwebhooks.com). The courier and `usher listen` share it.

import { Webhook } from 'standardwebhooks'
import packageJson from '../../package.json' with { type: 'json' }

export type UnsignedWebhook = {
  /** `whsec_…`, the current one first; two during a rotation. */
  secrets: string[]
  /** Id of the notification: the same at each attempt. */
  webhook_id: string
  type: string
  /** Time of the notification, RFC 3339. */
  timestamp: string
  /** false: of a test organisation. */
  livemode: boolean
  /** The object as the API returns it. */
  data: unknown
}

export class NothingToSignWith extends Error {}

/** Serialises the body once, so that the bytes that are signed are the bytes that are sent. @throws NothingToSignWith */
export function signWebhook({ secrets, webhook_id, type, timestamp, livemode, data }: UnsignedWebhook): {
  headers: Record<string, string>
  body: string
} {
  const body = JSON.stringify({ type, timestamp, livemode, data })
  const now = new Date()
  return {
    headers: {
      'Content-Type': 'application/json',
      'Accept-Encoding': 'identity',
      'User-Agent': `Usher/${packageJson.version}`,
      'webhook-id': webhook_id,
      'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
      'webhook-signature': signatures(secrets, (webhook) => webhook.sign(webhook_id, now, body)),
    },
    body,
  }
}

function signatures(secrets: string[], sign: (webhook: Webhook) => string): string {
  if (secrets.length === 0) throw new NothingToSignWith()
  try {
    return secrets.map((secret) => sign(new Webhook(secret))).join(' ')
  } catch {
    // The library's own message may quote the secret.
    throw new NothingToSignWith()
  }
}
