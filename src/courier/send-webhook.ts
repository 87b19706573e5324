// Makes one attempt to send a webhook (https://www.standardwebhooks.com). Retries are decided by the caller. It must never throw, exceed
// its timeout, follow a redirect, send anything unsigned, or connect to an address that allowed-addresses.ts refuses.

import type { Dispatcher } from 'undici'
import type { NotificationType } from '../operations/webhook-endpoints.ts'
import { createRoutes, inTime, type Routes } from '../process/outbound/allowed-addresses.ts'
import type { FindAddresses } from '../process/outbound/find-addresses.ts'
import { describeFailure } from './describe-failure.ts'
import { signWebhook, type UnsignedWebhook } from './sign-webhook.ts'
import { excerptOf, retryAfterSeconds } from './webhook-answer.ts'

/** One delivery to one endpoint, as `api.claim_webhooks` returns it. */
export type PendingWebhook = UnsignedWebhook & {
  /** Id of the delivery. */
  id: string
  /** Id of this claim, for settling it. */
  claim: string
  attempt: number
  webhook_endpoint_id: string
  url: string
  /** Of a test: the type whose example is sent. */
  example?: NotificationType | null
}

export type WebhookResult =
  | {
      kind: 'answered'
      status: number
      /** The first 1024 characters. */
      body: string
      milliseconds: number
      /** From the header `Retry-After`, at most a day. Null: not given. */
      retryAfterSeconds: number | null
    }
  | {
      kind: 'unanswered'
      /** One line for the owner of the endpoint. */
      error: string
      milliseconds: number
    }
  /** The sender was closed meanwhile: no fault of the endpoint. */
  | { kind: 'abandoned'; milliseconds: number }

export type WebhookSender = {
  /** Never rejects. Any status is an answer: the caller decides which of them mean success. */
  send(pending: PendingWebhook): Promise<WebhookResult>
  /** Closes all connections, including those in use. */
  close(): void
}

export function createWebhookSender({
  allowLoopback,
  ownPorts = [],
  timeoutMs = 15_000,
  findAddresses,
}: {
  /** For development: allows localhost, 127.0.0.1 and [::1], also over http. */
  allowLoopback: boolean
  /** Ports that are refused on loopback even if it is allowed. */
  ownPorts?: number[]
  /** For the whole attempt, from the DNS query to the last byte of the answer. */
  timeoutMs?: number
  /** Replaces the system's resolver. Its addresses are checked like any other. */
  findAddresses?: FindAddresses
}): WebhookSender {
  const routes = createRoutes({ allowLoopback, ownPorts, timeoutMs, findAddresses })
  let closed = false

  return {
    async send(pending) {
      const startedAt = performance.now()
      const milliseconds = () => Math.round(performance.now() - startedAt)
      const deadline = AbortSignal.timeout(timeoutMs)
      try {
        const request = {
          ...routes.to(pending.url),
          ...signWebhook(pending),
          method: 'POST',
          signal: deadline,
        } as const
        const response = await inTime(deadline, post(routes, request))
        return {
          kind: 'answered',
          status: response.statusCode,
          body: await excerptOf(response),
          milliseconds: milliseconds(),
          retryAfterSeconds: retryAfterSeconds(response.headers['retry-after']),
        }
      } catch (error) {
        if (closed) return { kind: 'abandoned', milliseconds: milliseconds() }
        const reason = deadline.aborted ? `No answer within ${timeoutMs / 1000} s.` : describeFailure(error)
        return { kind: 'unanswered', error: reason, milliseconds: milliseconds() }
      }
    },
    close() {
      closed = true
      routes.close()
    },
  }
}

type Request = Dispatcher.RequestOptions & { signal: AbortSignal }

/** Resolves with the head of the answer; the body is still to be read, until the deadline. */
async function post({ dispatcher }: Routes, request: Request): Promise<Dispatcher.ResponseData> {
  let isConnectionNew = false
  const noteConnection = (origin: URL) => {
    isConnectionNew ||= origin.origin === request.origin
  }
  dispatcher.on('connect', noteConnection).on('connectionError', noteConnection)
  try {
    return await dispatcher.request(request)
  } catch (error) {
    // An endpoint may close a kept connection just as it is reused, which says nothing about this webhook. Posting twice does no harm,
    // because the webhook-id is the same.
    const wasClosed = ['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'].includes(String((error as NodeJS.ErrnoException).code))
    if (!wasClosed || isConnectionNew || request.signal.aborted) throw error
    return dispatcher.request(request)
  } finally {
    dispatcher.off('connect', noteConnection).off('connectionError', noteConnection)
  }
}
