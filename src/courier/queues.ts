// Opens the queues of the courier, webhooks, e-mails and cancellations, with the connections that they need. The same on Node and in
// an edge function.

import type { Logger } from 'pino'
import type { CourierRpc } from '../gateway/courier-rpc.ts'
import { cancellationQueue } from './cancellation-queue.ts'
import type { AnyQueue, Observe } from './courier.ts'
import { emailQueue } from './emails/queue.ts'
import { type MailOptions, openMail } from './mail/index.ts'
import { createWebhookSender } from './send-webhook.ts'
import { webhookQueue } from './webhooks.ts'

export type QueueOptions = {
  webhookTimeoutSeconds: number
  /** Whether webhooks may go to this machine, without TLS. */
  webhooksToLoopback: boolean
  /** Ports of this machine that must never get one: those of Usher, and of the services that it uses. */
  ownPorts: number[]
  mail: MailOptions
  /** The sender address of e-mails. */
  mailFrom: string
}

export type Queues = {
  queues: AnyQueue[]
  /** Closes their connections, and aborts webhooks in flight. */
  close(): Promise<void>
}

// How long a claim outlives the webhook's timeout: the result is settled after it, and that may have to be retried.
const settleSeconds = 45

export function openQueues(options: QueueOptions, rpc: CourierRpc, log: Logger, observe: Observe = () => {}): Queues {
  const sender = createWebhookSender({
    allowLoopback: options.webhooksToLoopback,
    ownPorts: options.ownPorts,
    timeoutMs: options.webhookTimeoutSeconds * 1000,
  })
  const leaseSeconds = options.webhookTimeoutSeconds + settleSeconds
  const emails = emailQueue(rpc, openMail(options.mail), options.mailFrom, log, observe)
  return {
    queues: [webhookQueue(rpc, sender, leaseSeconds, log, observe), emails, cancellationQueue(rpc, log)],
    async close() {
      sender.close()
      await emails.close()
    },
  }
}
