// The queue of webhooks: claims deliveries, sends them, and settles each with the endpoint's answer.
// SQL decides when a delivery is retried and when an endpoint is disabled (see `api.settle_webhooks`).

import type { Logger } from 'pino'
import type { CourierRpc } from '../gateway/courier-rpc.ts'
import { notificationExamples } from '../operations/notification-examples.ts'
import type { Observe, Queue } from './courier.ts'
import type { PendingWebhook, WebhookResult, WebhookSender } from './send-webhook.ts'
import { batchResults, settle } from './settle.ts'

/** What `api.settle_webhooks` answers: deliveries whose result disabled their endpoint, and whether more may be due. */
type Settled = { disabled: string[]; more: boolean }

/** @param leaseSeconds how long a claim lasts: longer than sending and settling take together. */
export function webhookQueue(
  rpc: CourierRpc,
  sender: WebhookSender,
  leaseSeconds: number,
  log: Logger,
  observe: Observe,
): Queue<PendingWebhook> {
  const record = batchResults(
    async (results: Record<string, unknown>[]) => (await settle(rpc, 'settle_webhooks', { results })) as Settled,
  )
  return {
    name: 'webhooks',
    concurrency: 64,
    maxPerRun: 400,
    claim: async (limit) => (await rpc('claim_webhooks', { limit, lease_seconds: leaseSeconds })) as PendingWebhook[],
    async deliver(pending) {
      const { id, claim, url } = pending
      const result = await sender.send(withExample(pending))
      if (result.kind === 'abandoned') {
        await rpc('release_webhook', { webhook_delivery_id: id, claim })
        return false
      }
      const { milliseconds } = result
      const { disabled, more } = await record({
        id,
        claim,
        url,
        milliseconds,
        ...(result.kind === 'answered'
          ? {
              response_status: result.status,
              response_body: result.body,
              retry_after_seconds: result.retryAfterSeconds,
            }
          : { error: result.error }),
      })
      const line = {
        delivery_id: id,
        notification_id: pending.webhook_id,
        webhook_endpoint_id: pending.webhook_endpoint_id,
        type: pending.type,
        attempt: pending.attempt,
        duration_ms: milliseconds,
        ...(result.kind === 'answered' ? { status: result.status } : { reason: result.error }),
      }
      log.info(line, 'webhook')
      if (disabled.includes(id)) log.warn(line, 'webhook endpoint disabled')
      observe('webhooks', outcomeOf(result), milliseconds / 1000)
      return more
    },
  }
}

/** What is no change is not livemode, whatever the organisation. */
function withExample(pending: PendingWebhook): PendingWebhook {
  const { example } = pending
  if (example === undefined || example === null) return pending
  return { ...pending, type: example, livemode: false, data: notificationExamples[example].data }
}

const outcomeOf = (result: Exclude<WebhookResult, { kind: 'abandoned' }>): string =>
  result.kind === 'unanswered' ? 'unanswered' : result.status >= 200 && result.status <= 299 ? 'delivered' : 'refused'
