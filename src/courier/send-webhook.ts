// Sends one webhook (https://www.standardwebhooks.com). In comes what is owed to an endpoint, out goes what it answered, or
// why it did not. Whoever calls decides what follows from that, and when. It must never throw, take longer than its time,
// follow a redirect, or send anything unsigned or to a place that allowed-addresses.ts refuses. It knows no database, and
// uses Node's built-ins alone, for it also runs under Deno.

import { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { LookupFunction } from 'node:net'
import { Webhook } from 'standardwebhooks'
import packageJson from '../../package.json' with { type: 'json' }
import { createRoutes, type Route } from './allowed-addresses.ts'
import { describeFailure, NoAnswerInTime, NothingToSignWith } from './describe-failure.ts'
import { excerptOf, retryAfterSeconds } from './webhook-answer.ts'

/** What the database says is owed to one endpoint. */
export type OwedWebhook = {
  /** Of the delivery. */
  id: string
  /** Names this claim of it when settling. */
  claim: string
  attempt: number
  url: string
  /** `whsec_…`, the one that signs first; two during a rotation. */
  secrets: string[]
  /** Of the notification: the same at each attempt. */
  webhook_id: string
  type: string
  /** When it happened, RFC 3339. */
  timestamp: string
  /** The API's own object. */
  data: unknown
}

export type WebhookResult =
  | {
      kind: 'answered'
      status: number
      /** The first 1024 characters of it. */
      body: string
      milliseconds: number
      /** What the endpoint asks for, at most a day. Null: it does not ask. */
      retryAfterSeconds: number | null
    }
  | {
      kind: 'unanswered'
      /** One line for the owner of the endpoint. */
      error: string
      milliseconds: number
    }

export type WebhookSender = {
  /** Never rejects. Any status is an answer: which of them are a success is for the caller to say. */
  send(owed: OwedWebhook): Promise<WebhookResult>
  /** Closes connections, also those in use. */
  close(): void
}

export function createWebhookSender({
  allowLoopback,
  timeoutMilliseconds = 15_000,
  lookup,
}: {
  /** For development: http, too, to localhost, 127.0.0.1 and [::1]. */
  allowLoopback: boolean
  /** For all of it, from the look-up of the host to the last byte of the answer. */
  timeoutMilliseconds?: number
  /** Instead of dns.lookup. What it finds is filtered like any other. */
  lookup?: LookupFunction
}): WebhookSender {
  const routes = createRoutes({ allowLoopback, lookup })

  return {
    async send(owed) {
      const startedAt = performance.now()
      const milliseconds = () => Math.round(performance.now() - startedAt)
      const deadline = new AbortController()
      const timer = setTimeout(() => deadline.abort(new NoAnswerInTime(timeoutMilliseconds)), timeoutMilliseconds)
      try {
        const response = await post(routes.to(owed.url), signed(owed), deadline.signal)
        return {
          kind: 'answered',
          status: response.statusCode ?? 0,
          body: await excerptOf(response),
          milliseconds: milliseconds(),
          retryAfterSeconds: retryAfterSeconds(response.headers['retry-after']),
        }
      } catch (error) {
        return { kind: 'unanswered', error: describeFailure(error), milliseconds: milliseconds() }
      } finally {
        clearTimeout(timer)
      }
    },
    close: routes.close,
  }
}

type Message = { headers: Record<string, string>; body: string }

/** The body is put into writing once, so that what is signed is what is sent. */
function signed({ secrets, webhook_id, type, timestamp, data }: OwedWebhook): Message {
  const body = JSON.stringify({ type, timestamp, data })
  const now = new Date()
  return {
    headers: {
      'Content-Type': 'application/json',
      'Content-Length': String(Buffer.byteLength(body)),
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
    // The library's own words may be about the secret.
    throw new NothingToSignWith()
  }
}

/** Ends with the head of the answer, whose body is then still to be read; the deadline ends that, too. */
function post(route: Route, message: Message, deadline: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = route.request({ ...route.options, method: 'POST', headers: message.headers })
    const giveUp = () => {
      reject(deadline.reason)
      request.destroy()
    }
    if (deadline.aborted) return giveUp()
    deadline.addEventListener('abort', giveUp, { once: true })
    request.on('response', resolve)
    // A 101, which nobody asked for. It is an answer, too, after which no HTTP comes.
    request.on('upgrade', (response, socket) => {
      socket.destroy()
      resolve(response)
    })
    request.on('error', (error: NodeJS.ErrnoException) => {
      // An endpoint may close a connection just as it is used again: that says nothing of this webhook. Posting twice does no
      // harm, for the webhook-id is the same, and ends with the first connection that is new.
      const wasStale = request.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE')
      if (wasStale && !deadline.aborted) resolve(post(route, message, deadline))
      else reject(error)
    })
    request.end(message.body)
  })
}
