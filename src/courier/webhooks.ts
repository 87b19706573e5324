// The queue of webhooks: fans notifications out to deliveries, claims these, sends them signed, and settles them with what the
// endpoint answered. When a delivery is tried again, and when an endpoint is given up, is decided in SQL
// (supabase/schemas/32_courier.sql).

import type { Logger } from 'pino'
import type { Observe, Queue } from './courier.ts'
import { type CourierRpc, settle } from './courier-rpc.ts'
import type { OwedWebhook, WebhookResult, WebhookSender } from './send-webhook.ts'

/** @param leaseSeconds longer than the sender may take, and than saying how that went. */
export function webhookQueue(
  rpc: CourierRpc,
  sender: WebhookSender,
  leaseSeconds: number,
  log: Logger,
  observe: Observe,
): Queue<OwedWebhook> {
  return {
    name: 'webhooks',
    concurrency: 64,
    maxPerRun: 400,
    prepare: async () => (await rpc('fan_out_webhooks', {})) === true,
    claim: async (limit) => (await rpc('claim_webhooks', { limit, lease_seconds: leaseSeconds })) as OwedWebhook[],
    async deliver(owed) {
      const { id, claim, url } = owed
      const result = await sender.send(owed)
      if (result.kind === 'abandoned') {
        await rpc('release_webhook', { webhook_delivery_id: id, claim })
        return
      }
      const { milliseconds } = result
      const isDisabled = await settle(rpc, 'settle_webhook', {
        webhook_delivery_id: id,
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
        notification_id: owed.webhook_id,
        webhook_endpoint_id: owed.webhook_endpoint_id,
        type: owed.type,
        attempt: owed.attempt,
        duration_ms: milliseconds,
        ...(result.kind === 'answered' ? { status: result.status } : { reason: result.error }),
      }
      log.info(line, 'webhook')
      if (isDisabled === true) log.warn(line, 'webhook endpoint disabled')
      observe('webhooks', outcomeOf(result), milliseconds / 1000)
    },
  }
}

const outcomeOf = (result: Exclude<WebhookResult, { kind: 'abandoned' }>): string =>
  result.kind === 'unanswered' ? 'unanswered' : result.status >= 200 && result.status <= 299 ? 'delivered' : 'refused'
