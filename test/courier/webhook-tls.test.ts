// TLS as it is in production: whom a webhook trusts, and that no proxy comes between. What a process trusts is settled as it
// starts, so what is trusted here is sent by a process of its own.

import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createWebhookSender } from '../../src/courier/send-webhook.ts'
import { pendingWebhook } from '../support/pending-webhook.ts'
import { type SelfSigned, selfSigned } from '../support/self-signed.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const program = join(import.meta.dirname, '../support/send-webhooks.ts')
const valid = selfSigned(2)
const expired = selfSigned(-1)

async function receiverWith(tls: SelfSigned | undefined) {
  const receiver = await startWebhookReceiver({ tls: tls as SelfSigned })
  onTestFinished(() => receiver.close())
  return receiver
}

// Without openssl there is no certificate to refuse: see self-signed.ts.
describe.skipIf(valid === undefined)('a certificate', () => {
  test.each([
    ['that nobody vouches for', valid, 'localhost', 'TLS: self-signed certificate.'],
    ['that has expired', expired, 'localhost', 'TLS: certificate has expired.'],
    ['of another host', valid, '127.0.0.1', 'TLS: self-signed certificate.'],
  ])('%s is refused', async (_, tls, host, error) => {
    const receiver = await receiverWith(tls)
    const sender = createWebhookSender({ allowLoopback: true })
    const result = await sender.send(pendingWebhook(`https://${host}:${receiver.port}/`))
    sender.close()
    expect(result).toMatchObject({ kind: 'unanswered', error })
    expect(receiver.received).toHaveLength(0)
  })

  test('is refused also where the environment turns that off', async () => {
    const receiver = await receiverWith(valid)
    const result = await sendInOwnProcess(`${receiver.url}/`, { NODE_TLS_REJECT_UNAUTHORIZED: '0' })
    expect(result).toMatchObject({ kind: 'unanswered', error: 'TLS: self-signed certificate.' })
    expect(receiver.received).toHaveLength(0)
  })

  test('that is trusted counts for its own host, and the webhook goes there and through no proxy', async () => {
    const receiver = await receiverWith(valid)
    const proxy = await startProxy()
    const folder = await mkdtemp(join(tmpdir(), 'usher-tls-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    await writeFile(join(folder, 'ca.pem'), valid?.cert as string)
    const environment = {
      NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem'),
      NODE_USE_ENV_PROXY: '1',
      HTTP_PROXY: proxy.url,
      HTTPS_PROXY: proxy.url,
      ALL_PROXY: proxy.url,
    }

    const result = await sendInOwnProcess(`${receiver.url}/`, environment)
    expect(result).toMatchObject({ kind: 'answered', status: 204 })
    expect(receiver.received).toHaveLength(1)
    expect(proxy.connections()).toBe(0)

    const elsewhere = await sendInOwnProcess(`https://127.0.0.1:${receiver.port}/`, environment)
    expect(elsewhere).toMatchObject({ kind: 'unanswered', error: 'TLS: the certificate is for another host.' })
  })
})

test('what does not speak TLS is told so', async () => {
  const plain = await startWebhookReceiver()
  onTestFinished(() => plain.close())
  const sender = createWebhookSender({ allowLoopback: true })
  const result = await sender.send(pendingWebhook(`https://127.0.0.1:${plain.port}/`))
  sender.close()
  expect(result).toMatchObject({ kind: 'unanswered', error: 'TLS: the handshake failed.' })
  expect(plain.received).toHaveLength(0)
})

async function sendInOwnProcess(url: string, environment: Record<string, string>): Promise<unknown> {
  const { PATH } = process.env
  const { stdout } = await promisify(execFile)(process.execPath, [program, JSON.stringify([pendingWebhook(url)])], {
    env: { PATH, ...environment },
  })
  return JSON.parse(stdout)[0]
}

/** Counts who comes, and lets nobody through. */
async function startProxy(): Promise<{ url: string; connections(): number }> {
  let connections = 0
  const server = createServer((socket) => {
    connections++
    socket.destroy()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, connections: () => connections }
}
