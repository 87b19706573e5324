// Looking up names when name servers do not answer: only the webhook that needs the name waits.

import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { createWebhookSender } from '../../src/courier/send-webhook.ts'
import { askNameServers } from '../../src/process/outbound/find-addresses.ts'
import { pendingWebhook } from '../support/pending-webhook.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

/** One that takes questions and says nothing. */
async function silentNameServer(): Promise<string> {
  const server = createSocket('udp4').bind(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `127.0.0.1:${server.address().port}`
}

test('names whose servers do not answer hold up no other webhook', async () => {
  const receiver = await startWebhookReceiver()
  onTestFinished(() => receiver.close())
  const { find: findAddresses } = askNameServers([await silentNameServer()])
  const sender = createWebhookSender({ allowLoopback: true, timeoutMs: 1_000_000, findAddresses })

  const dead = Array.from({ length: 12 }, (_, i) => sender.send(pendingWebhook(`https://dead-${i}.example.com/`)))
  const good = sender.send(pendingWebhook(`http://localhost:${receiver.port}/`))
  expect(await Promise.race([good, ...dead])).toMatchObject({ kind: 'answered', status: 204 })
  sender.close()
  for (const result of await Promise.all(dead)) expect(result).toMatchObject({ kind: 'abandoned' })
})

test('whoever has time is told that nobody could be asked', async () => {
  const { find } = askNameServers([await silentNameServer()])
  await expect(find('hooks.example.com')).rejects.toMatchObject({ code: 'EAI_AGAIN' })
})

test('nobody is asked for localhost', async () => {
  expect(await askNameServers(['127.0.0.1:9']).find('localhost')).toEqual(['127.0.0.1', '::1'])
})

test('whoever stops does not wait for an answer', async () => {
  const { find, cancel } = askNameServers([await silentNameServer()])
  const events: string[] = []
  const found = find('hooks.example.com').catch(() => events.push('told'))
  // As long as the server has for an answer.
  const waited = sleep(2_000).then(() => events.push('waited'))
  cancel()
  await Promise.all([found, waited])
  expect(events).toEqual(['told', 'waited'])
})
