// A program that sends one webhook and prints the result, for what can only be told a process as it starts: whom it trusts,
// and which proxy others should use. In comes the webhook as its argument, as JSON.

import { createWebhookSender } from '../../src/courier/send-webhook.ts'

const sender = createWebhookSender({ allowLoopback: true, timeoutMilliseconds: 10_000 })
console.log(JSON.stringify(await sender.send(JSON.parse(process.argv[2] as string))))
sender.close()
