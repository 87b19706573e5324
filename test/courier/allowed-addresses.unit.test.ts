// Where a webhook may not go: every form that a private address takes, in a URL and in the DNS, and at a second look-up. A
// refusal names its reason, so that a network which merely cannot reach an address passes for none.

import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createWebhookSender } from '../../src/courier/send-webhook.ts'
import { dnsThatAnswers } from '../support/fake-dns.ts'
import { pendingWebhook } from '../support/pending-webhook.ts'
import { startWebhookReceiver, status, type WebhookReceiver } from '../support/webhook-receiver.ts'
import { othersOfLoopback, privateAddresses, privateHosts, spellingsOfLoopback } from './hostile-hosts.ts'

const NOT_PUBLIC = 'The address is not allowed: it is private or reserved.'
const NOT_HTTPS = 'The address is not allowed: it must begin with https.'
const WITH_CREDENTIALS = 'The address is not allowed: it must not contain a user name or a password.'
const OWN = "The address is not allowed: it is Usher's own."
const NO_URL = 'The address is not a URL.'

let receiver: WebhookReceiver
beforeEach(async () => {
  receiver = await startWebhookReceiver()
})
afterEach(() => receiver.close())

const refusedWith = (error: string) => ({ kind: 'unanswered', error, milliseconds: expect.any(Number) })

describe('by default', () => {
  const sender = createWebhookSender({ allowLoopback: false, timeoutMs: 2_000 })

  test.each([...spellingsOfLoopback, 'localhost', '[::1]', ...othersOfLoopback, ...privateHosts])(
    'https://%s is refused',
    async (host) => {
      const result = await sender.send(pendingWebhook(`https://${host}:${receiver.port}/`))
      expect(result).toEqual(refusedWith(NOT_PUBLIC))
      expect(receiver.connections()).toBe(0)
    },
  )

  test.each(privateAddresses)('a name that is found to be %s is refused', async (addresses) => {
    const dns = dnsThatAnswers(addresses.split(','))
    const { send, close } = createWebhookSender({ allowLoopback: false, findAddresses: dns.findAddresses })
    const result = await send(pendingWebhook(`https://hooks.example.com:${receiver.port}/`))
    close()
    expect(result).toEqual(refusedWith(NOT_PUBLIC))
    expect(dns.asked).toEqual(['hooks.example.com'])
    expect(receiver.connections()).toBe(0)
  })

  test('a name that is found to be nothing is refused', async () => {
    const { send, close } = createWebhookSender({ allowLoopback: false, findAddresses: async () => [] })
    expect(await send(pendingWebhook(`https://hooks.example.com:${receiver.port}/`))).toEqual(refusedWith(NOT_PUBLIC))
    close()
    expect(receiver.connections()).toBe(0)
  })

  test.each(
    Object.entries({
      [NOT_HTTPS]: [
        ...[
          'http://hooks.example.com/',
          'http://127.0.0.1/',
          'http://localhost/',
          'HTTP://[::1]/',
          'file:///etc/passwd',
        ],
        ...['ftp://hooks.example.com/', 'wss://hooks.example.com/', 'data:text/plain,hello', 'javascript:alert(1)'],
        ...['gopher://127.0.0.1:6379/_FLUSHALL', 'unix:///var/run/docker.sock'],
      ],
      [WITH_CREDENTIALS]: [
        'https://user:hunter2@hooks.example.com/',
        'https://hooks.example.com@127.0.0.1/',
        'https://:hunter2@127.0.0.1/',
      ],
      [NO_URL]: [
        ...['//127.0.0.1/', 'hooks.example.com', 'https://', 'https://hooks.example.com:65536/', ''],
        ...['https://[fe80::1%25eth0]/', 'https://256.256.256.256/'],
      ],
      [NOT_PUBLIC]: [
        ...['https://127.0.0.1\\@hooks.example.com/', 'https:127.0.0.1', 'https:/\\127.0.0.1', 'ht\ntps://127.0.0.1'],
      ],
    }).flatMap(([error, urls]) => urls.map((url) => [url, error])),
  )('%j is refused', async (url, error) => {
    expect(await sender.send(pendingWebhook(url))).toEqual(refusedWith(error))
  })

  test('a name that is public is connected to, and refused as soon as it is not', async () => {
    // Of the public range, but of a part that nobody was given: nothing is there to be disturbed, or to answer.
    const dns = dnsThatAnswers(['2d00::1'], ['10.0.0.1'])
    const { send, close } = createWebhookSender({
      allowLoopback: false,
      timeoutMs: 250,
      findAddresses: dns.findAddresses,
    })
    const pending = pendingWebhook('https://hooks.example.com/')
    expect(await send(pending)).not.toEqual(refusedWith(NOT_PUBLIC))
    expect(await send(pending)).toEqual(refusedWith(NOT_PUBLIC))
    close()
    expect(dns.asked).toHaveLength(2)
  })
})

describe('with loopback allowed', () => {
  const sender = createWebhookSender({ allowLoopback: true, timeoutMs: 2_000 })

  test.each(spellingsOfLoopback)('http://%s is this machine', async (host) => {
    const result = await sender.send(pendingWebhook(`http://${host}:${receiver.port}/`))
    expect(result).toMatchObject({ kind: 'answered', status: 204 })
  })

  test('http://localhost and http://[::1] are this machine', async () => {
    const six = await startWebhookReceiver({ host: '::1' })
    expect(await sender.send(pendingWebhook(`${six.url}/`))).toMatchObject({ kind: 'answered', status: 204 })
    await six.close()
    const url = `http://localhost:${receiver.port}/`
    expect(await sender.send(pendingWebhook(url))).toMatchObject({ kind: 'answered', status: 204 })
  })

  test('a name is tried at its other addresses if the first does not answer', async () => {
    const six = await startWebhookReceiver({ host: '::1' })
    const dns = dnsThatAnswers(['::1', '127.0.0.1'])
    const { send, close } = createWebhookSender({ allowLoopback: true, findAddresses: dns.findAddresses })
    const pending = pendingWebhook(`http://localhost:${six.port}/`)
    expect(await send(pending)).toMatchObject({ kind: 'answered', status: 204 })
    close()
    await six.close()
    expect(dns.asked).toEqual(['localhost'])
  })

  test.each([...othersOfLoopback, ...privateHosts])('https://%s is still refused', async (host) => {
    const result = await sender.send(pendingWebhook(`https://${host}:${receiver.port}/`))
    expect(result).toEqual(refusedWith(NOT_PUBLIC))
    expect(receiver.connections()).toBe(0)
  })

  test.each([...othersOfLoopback, ...privateHosts, '93.184.215.14', 'hooks.example.com', 'localhost.', 'a.localhost'])(
    'http://%s is still refused',
    async (host) => {
      const result = await sender.send(pendingWebhook(`http://${host}:${receiver.port}/`))
      expect(result).toEqual(refusedWith(NOT_HTTPS))
      expect(receiver.connections()).toBe(0)
    },
  )

  test.each([['10.0.0.1'], ['93.184.215.14'], ['127.0.0.2'], ['127.0.0.1', '93.184.215.14']])(
    'localhost is not this machine if it is found to be %s',
    async (...addresses) => {
      const dns = dnsThatAnswers(addresses)
      const { send, close } = createWebhookSender({ allowLoopback: true, findAddresses: dns.findAddresses })
      const result = await send(pendingWebhook(`http://localhost:${receiver.port}/`))
      close()
      expect(result).toEqual(refusedWith(NOT_PUBLIC))
      expect(dns.asked).toEqual(['localhost'])
    },
  )
})

describe('a port of Usher itself', () => {
  const own = (port: number, addresses?: string[]) =>
    createWebhookSender({
      allowLoopback: true,
      timeoutMs: 2_000,
      ownPorts: [1, port],
      ...(addresses && { findAddresses: dnsThatAnswers(addresses).findAddresses }),
    })

  test.each([...spellingsOfLoopback, 'localhost', '[::1]'].flatMap((host) => [`http://${host}`, `https://${host}`]))(
    'is not connected to at %s, though loopback is allowed',
    async (base) => {
      const host = base.includes('::1') ? '::1' : '127.0.0.1'
      const endpoint = await startWebhookReceiver({ host })
      const { send, close } = own(endpoint.port)
      const result = await send(pendingWebhook(`${base}:${endpoint.port}/rpc/anything`))
      close()
      await endpoint.close()
      expect(result).toEqual(refusedWith(OWN))
      expect(endpoint.connections()).toBe(0)
    },
  )

  test.each([['127.0.0.1'], ['::1'], ['93.184.215.14', '127.0.0.1']])(
    'is not connected to by a name that is found to be %s',
    async (...addresses) => {
      const { send, close } = own(receiver.port, addresses)
      const result = await send(pendingWebhook(`https://hooks.example.com:${receiver.port}/`))
      close()
      expect(result).toEqual(refusedWith(OWN))
      expect(receiver.connections()).toBe(0)
    },
  )

  test('does not keep others of this machine from being reached', async () => {
    const { send, close } = own(receiver.port - 1)
    expect(await send(pendingWebhook(`${receiver.url}/`))).toMatchObject({ kind: 'answered', status: 204 })
    close()
  })
})

describe('a name that changes', () => {
  test('is looked up for each connection, and its new address refused', async () => {
    const dns = dnsThatAnswers(['127.0.0.1'], ['10.0.0.1'])
    const { send, close } = createWebhookSender({ allowLoopback: true, findAddresses: dns.findAddresses })
    receiver.answerWith(status(200, { Connection: 'close' }))
    const pending = pendingWebhook(`http://localhost:${receiver.port}/`)
    expect(await send(pending)).toMatchObject({ kind: 'answered', status: 200 })
    expect(await send(pending)).toEqual(refusedWith(NOT_PUBLIC))
    close()
    expect(dns.asked).toHaveLength(2)
    expect(receiver.received).toHaveLength(1)
  })

  test('is not followed by a connection that is kept: it leads where it was allowed to', async () => {
    const dns = dnsThatAnswers(['127.0.0.1'], ['10.0.0.1'])
    const { send, close } = createWebhookSender({ allowLoopback: true, findAddresses: dns.findAddresses })
    const pending = pendingWebhook(`http://localhost:${receiver.port}/`)
    expect(await send(pending)).toMatchObject({ kind: 'answered', status: 204 })
    // The connection is free a moment after its answer is read.
    await setImmediate()
    expect(await send(pending)).toMatchObject({ kind: 'answered', status: 204 })
    await setImmediate()
    expect(receiver.received).toHaveLength(2)
    expect(dns.asked).toHaveLength(1)
    // Two at once need a second connection.
    const results = await Promise.all([send(pending), send(pending)])
    close()
    expect(results).toContainEqual(refusedWith(NOT_PUBLIC))
    expect(receiver.received).toHaveLength(3)
  })

  test('is not vouched for by a connection of another sender, which may be allowed more', async () => {
    const lenient = createWebhookSender({ allowLoopback: true })
    const strict = createWebhookSender({ allowLoopback: false })
    expect(await lenient.send(pendingWebhook(`${receiver.url}/`))).toMatchObject({ kind: 'answered' })
    expect(await strict.send(pendingWebhook(`${receiver.url.replace('http:', 'https:')}/`))).toEqual(
      refusedWith(NOT_PUBLIC),
    )
    lenient.close()
    strict.close()
  })
})
