// A program that sends webhooks and prints their results, for what can only be told a process as it starts: whom it trusts, which
// proxy others should use, and on which runtime it runs. In come the webhooks as its argument, as JSON.

import { argv } from 'node:process'
import { createWebhookSender } from '../../src/courier/send-webhook.ts'

const sender = createWebhookSender({ allowLoopback: true, timeoutMs: 10_000 })
console.log(JSON.stringify(await Promise.all(JSON.parse(argv[2] as string).map(sender.send))))
sender.close()
