// Everything that is owed to the outside, as queues of the courier. In come configuration and the way to the database, out go
// the queues and how to let go of their connections. The same on Node and in an edge function.

import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import type { AnyQueue, Observe } from './courier.ts'
import type { CourierRpc } from './courier-rpc.ts'
import { openMail } from './mail/index.ts'
import { configuredPorts, type OwnPorts } from './own-ports.ts'
import { createWebhookSender } from './send-webhook.ts'
import { ticketEmailQueue } from './ticket-emails.ts'
import { webhookQueue } from './webhooks.ts'

export type Queues = {
  queues: AnyQueue[]
  close(): Promise<void>
}

// Longer than sending may take, for saying how it went comes after it, and may have to be repeated.
const settleSeconds = 45

/** @param ownPorts those that this Usher was given only when it started. */
export function openQueues(
  config: Config,
  rpc: CourierRpc,
  log: Logger,
  observe: Observe = () => {},
  ownPorts: OwnPorts = () => [],
): Queues {
  const configured = configuredPorts(config)
  const sender = createWebhookSender({
    allowLoopback: config.webhooksToLoopback,
    ownPorts: () => [...configured, ...ownPorts()],
    timeoutMilliseconds: config.webhookTimeoutSeconds * 1000,
  })
  const mail = openMail(config.mail)
  return {
    queues: [
      webhookQueue(rpc, sender, config.webhookTimeoutSeconds + settleSeconds, log, observe),
      ticketEmailQueue(rpc, mail, config.mailFrom, log, observe),
    ],
    async close() {
      sender.close()
      await mail.close()
    },
  }
}
