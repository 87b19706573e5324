// Sends one webhook (https://www.standardwebhooks.com). In comes what is owed to an endpoint, out goes what it answered, or
// why it did not. Whoever calls decides what follows from that, and when. It must never throw, take longer than its time,
// follow a redirect, or send anything unsigned or to a place that allowed-addresses.ts refuses. It knows no database.

import { Webhook } from 'standardwebhooks'
import type { Dispatcher } from 'undici'
import packageJson from '../../package.json' with { type: 'json' }
import { createRoutes, type Routes } from './allowed-addresses.ts'
import { describeFailure, NoAnswerInTime, NothingToSignWith } from './describe-failure.ts'
import type { FindAddresses } from './find-addresses.ts'
import type { OwnPorts } from './own-ports.ts'
import { excerptOf, retryAfterSeconds } from './webhook-answer.ts'

/** What the database says is owed to one endpoint. */
export type OwedWebhook = {
  /** Of the delivery. */
  id: string
  /** Names this claim of it when settling. */
  claim: string
  attempt: number
  webhook_endpoint_id: string
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
  /** The sender was closed meanwhile, which is nobody's fault but ours. */
  | { kind: 'abandoned'; milliseconds: number }

export type WebhookSender = {
  /** Never rejects. Any status is an answer: which of them are a success is for the caller to say. */
  send(owed: OwedWebhook): Promise<WebhookResult>
  /** Closes connections, also those in use. */
  close(): void
}

export function createWebhookSender({
  allowLoopback,
  ownPorts,
  timeoutMilliseconds = 15_000,
  findAddresses,
}: {
  /** For development: http, too, to localhost, 127.0.0.1 and [::1]. */
  allowLoopback: boolean
  /** Ports of this machine that are refused all the same. */
  ownPorts?: OwnPorts | undefined
  /** For all of it, from the look-up of the host to the last byte of the answer. */
  timeoutMilliseconds?: number
  /** Instead of the system's. What it finds is checked like any other. */
  findAddresses?: FindAddresses
}): WebhookSender {
  const routes = createRoutes({ allowLoopback, ownPorts, timeoutMilliseconds, findAddresses })
  let closed = false

  return {
    async send(owed) {
      const startedAt = performance.now()
      const milliseconds = () => Math.round(performance.now() - startedAt)
      const deadline = new AbortController()
      const timer = setTimeout(() => deadline.abort(new NoAnswerInTime(timeoutMilliseconds)), timeoutMilliseconds)
      try {
        const request = { ...routes.to(owed.url), ...signed(owed), method: 'POST', signal: deadline.signal } as const
        const response = await inTime(deadline.signal, post(routes, request))
        return {
          kind: 'answered',
          status: response.statusCode,
          body: await excerptOf(response),
          milliseconds: milliseconds(),
          retryAfterSeconds: retryAfterSeconds(response.headers['retry-after']),
        }
      } catch (error) {
        if (closed) return { kind: 'abandoned', milliseconds: milliseconds() }
        return { kind: 'unanswered', error: describeFailure(error), milliseconds: milliseconds() }
      } finally {
        clearTimeout(timer)
      }
    },
    close() {
      closed = true
      routes.close()
    },
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

type Request = Dispatcher.RequestOptions & { signal: AbortSignal }

/** Ends with the head of the answer, whose body is then still to be read; the deadline ends that, too. */
async function post({ dispatcher, couldNotConnect }: Routes, request: Request): Promise<Dispatcher.ResponseData> {
  let isConnectionNew = false
  const noteConnection = (origin: URL) => {
    isConnectionNew ||= origin.origin === request.origin
  }
  dispatcher.on('connect', noteConnection)
  try {
    return await dispatcher.request(request)
  } catch (error) {
    // An endpoint may close a connection just as it is used again: that says nothing of this webhook. Posting twice does no
    // harm, for the webhook-id is the same.
    const wasClosed = ['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'].includes(String((error as NodeJS.ErrnoException).code))
    if (!wasClosed || isConnectionNew || couldNotConnect(error) || request.signal.aborted) throw error
    return dispatcher.request(request)
  } finally {
    dispatcher.off('connect', noteConnection)
  }
}

/** The client takes note of a deadline only when it is connected. */
function inTime<T>(deadline: AbortSignal, work: Promise<T>): Promise<T> {
  const over = new Promise<never>((_, reject) => {
    deadline.addEventListener('abort', () => reject(deadline.reason), { once: true })
  })
  return Promise.race([work, over])
}
