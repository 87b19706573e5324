// A program that sends the webhooks in its argument (JSON) and prints their results. For what only the start of a process
// decides: which certificates it trusts, which proxy is set, and the runtime.

import { argv } from 'node:process'
import { createWebhookSender } from '../../src/courier/send-webhook.ts'

const sender = createWebhookSender({ allowLoopback: true, timeoutMs: 10_000 })
console.log(JSON.stringify(await Promise.all(JSON.parse(argv[2] as string).map(sender.send))))
sender.close()
