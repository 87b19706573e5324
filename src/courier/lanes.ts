// Everything that is owed to the outside, as lanes of the courier. In come configuration and the way to the database, out go
// the lanes and how to let go of their connections. The same on Node and in an edge function.

import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import type { AnyLane, Observe } from './courier.ts'
import { openMail } from './mail/index.ts'
import type { Outbox } from './outbox.ts'
import { configuredPorts, type OwnPorts } from './own-ports.ts'
import { createWebhookSender } from './send-webhook.ts'
import { ticketEmailLane } from './ticket-emails.ts'
import { webhookLane } from './webhooks.ts'

export type Lanes = {
  lanes: AnyLane[]
  close(): Promise<void>
}

// Longer than sending may take, for saying how it went comes after it, and may have to be repeated.
const settleSeconds = 45

/** @param ownPorts those that this Usher was given only when it started. */
export function openLanes(
  config: Config,
  outbox: Outbox,
  log: Logger,
  observe: Observe = () => {},
  ownPorts: OwnPorts = () => [],
): Lanes {
  const configured = configuredPorts(config)
  const sender = createWebhookSender({
    allowLoopback: config.webhooksToLoopback,
    ownPorts: () => [...configured, ...ownPorts()],
    timeoutMilliseconds: config.webhookTimeoutSeconds * 1000,
  })
  const mail = openMail(config.mail)
  return {
    lanes: [
      webhookLane(outbox, sender, config.webhookTimeoutSeconds + settleSeconds, log, observe),
      ticketEmailLane(outbox, mail, config.mailFrom, log, observe),
    ],
    async close() {
      sender.close()
      await mail.close()
    },
  }
}
