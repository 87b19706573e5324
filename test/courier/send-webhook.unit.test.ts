// One webhook, posted to a receiver that verifies it as a customer would, and what is made of the answer.

import { type AddressInfo, createServer, type Socket } from 'node:net'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { createWebhookSender, type PendingWebhook, type WebhookResult } from '../../src/courier/send-webhook.ts'
import { newSecret, pendingWebhook } from '../support/pending-webhook.ts'
import {
  type Answer,
  drip,
  floodWith,
  hang,
  raw,
  reset,
  startWebhookReceiver,
  status,
  type WebhookReceiver,
} from '../support/webhook-receiver.ts'

let receiver: WebhookReceiver
const sender = createWebhookSender({ allowLoopback: true, timeoutMs: 10_000 })
const hasty = createWebhookSender({ allowLoopback: true, timeoutMs: 250 })

beforeEach(async () => {
  receiver = await startWebhookReceiver()
})
afterEach(() => receiver.close())

const send = (given: Partial<PendingWebhook> = {}, by = sender): Promise<WebhookResult> =>
  by.send(pendingWebhook(`${receiver.url}/hooks?of=usher`, given))

describe('what is sent', () => {
  test('is a Standard Webhook', async () => {
    const pending = pendingWebhook(`${receiver.url}/hooks?of=usher`)
    expect(await sender.send(pending)).toMatchObject({
      kind: 'answered',
      status: 204,
      body: '',
      retryAfterSeconds: null,
    })

    const [webhook] = receiver.received
    expect(webhook).toMatchObject({
      method: 'POST',
      path: '/hooks?of=usher',
      body: JSON.stringify({ type: pending.type, timestamp: pending.timestamp, livemode: true, data: pending.data }),
      headers: {
        'content-type': 'application/json',
        'user-agent': `Usher/${packageJson.version}`,
        'webhook-id': pending.webhook_id,
        'webhook-timestamp': expect.stringMatching(/^\d{10}$/),
        'webhook-signature': expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/),
      },
    })
    expect(webhook?.verified(pending.secrets[0] as string)).toEqual(JSON.parse(webhook?.body as string))
  })

  test('verifies with each of two secrets, and with no other', async () => {
    const secrets = [newSecret(), newSecret()]
    await send({ secrets })
    const [webhook] = receiver.received
    for (const secret of secrets) expect(webhook?.verified(secret)).toMatchObject({ type: 'attendee.checked_in' })
    expect(() => webhook?.verified(newSecret())).toThrow('No matching signature found')
    expect(webhook?.headers['webhook-signature']).toMatch(/^v1,\S+ v1,\S+$/)
  })

  test('is the same at each attempt, but for the time of it', async () => {
    const pending = pendingWebhook(`${receiver.url}/hooks`, { timestamp: '2020-02-20T20:20:20.000Z' })
    const before = Math.floor(Date.now() / 1000)
    receiver.answerWith(status(500))
    await sender.send(pending)
    await sender.send({ ...pending, claim: 'another', attempt: 2 })
    const [first, second] = receiver.received
    expect([second?.body, second?.headers['webhook-id']]).toEqual([first?.body, first?.headers['webhook-id']])
    expect(JSON.parse(first?.body as string).timestamp).toBe(pending.timestamp)
    const attempted = Number(second?.headers['webhook-timestamp'])
    expect([attempted >= before, attempted <= Date.now() / 1000]).toEqual([true, true])
  })

  test.each([
    ['there is no secret', []],
    ['a secret is not one', [newSecret(), 'whsec_not base64!']],
    ['a secret is empty', ['whsec_']],
  ])('never leaves unsigned: %s', async (_, secrets) => {
    expect(await send({ secrets })).toMatchObject({ kind: 'unanswered', error: 'The webhook could not be signed.' })
    expect(receiver.connections()).toBe(0)
  })

  test('is nothing if it cannot be a header', async () => {
    expect(await send({ webhook_id: 'a\r\nX-Injected: b' })).toMatchObject({
      kind: 'unanswered',
      error: 'The request could not be sent.',
    })
    expect(receiver.connections()).toBe(0)
  })
})

describe('connections', () => {
  test('are used again, and opened for what is sent at once', async () => {
    for (let i = 0; i < 5; i++) {
      await send()
      // A connection is free a moment after its answer is read.
      await setImmediate()
    }
    expect([receiver.received.length, receiver.connections()]).toEqual([5, 1])
    await Promise.all(Array.from({ length: 6 }, () => send()))
    expect(receiver.connections()).toBe(6)
  })

  test('that the endpoint closed as they were used again count for nothing', async () => {
    await send()
    await setImmediate()
    const answered = receiver.received.length
    receiver.answerWith((response, webhook) => {
      if (receiver.connections() === 1) reset(response, webhook)
      else status(200)(response, webhook)
    })
    expect(await send()).toMatchObject({ kind: 'answered', status: 200 })
    expect(receiver.connections()).toBe(2)
    const ids = receiver.received.slice(answered).map(({ headers }) => headers['webhook-id'])
    expect([ids.length, new Set(ids).size]).toEqual([2, 1])
  })

  test.each([
    ['at once', 'https', (socket: Socket) => socket.resetAndDestroy()],
    ['when TLS is spoken to it', 'https', (socket: Socket) => void socket.once('data', () => socket.resetAndDestroy())],
    ['without a word', 'https', (socket: Socket) => void socket.once('data', () => socket.end())],
    ['without an answer', 'http', (socket: Socket) => void socket.once('data', () => socket.destroy())],
  ])('that the endpoint closes %s are made once for an attempt', async (_, scheme, close) => {
    const server = await listen(close)
    const result = await send({ url: `${scheme}://127.0.0.1:${server.port}/` })
    expect(result).toMatchObject({ kind: 'unanswered', error: 'The connection was closed before an answer.' })
    expect(server.accepted()).toBe(1)
  })

  test('that are being made end when the sender is closed, and no other is begun', async () => {
    const silent = await listen(() => {})
    const other = await listen(() => {}, { host: '::1', port: silent.port })
    const findAddresses = async () => ['127.0.0.1', '::1']
    const closing = createWebhookSender({ allowLoopback: true, findAddresses })
    const sent = send({ url: `https://hooks.example.com:${silent.port}/` }, closing)
    await expect.poll(silent.open).toBe(1)
    closing.close()
    expect(await sent).toMatchObject({ kind: 'abandoned' })
    await expect.poll(silent.open).toBe(0)
    await sleep(1_100)
    expect([silent.accepted(), other.accepted()]).toEqual([1, 0])
  })

  test('need no more than the first of many addresses', async () => {
    const findAddresses = async () => ['::1', '127.0.0.1', '127.0.0.1', '127.0.0.1']
    const patient = createWebhookSender({ allowLoopback: true, findAddresses })
    const result = await send({ url: `http://localhost:${receiver.port}/` }, patient)
    expect(result).toMatchObject({ kind: 'answered', status: 204 })
    // Nothing comes after, neither a connection nor an error that nobody waits for.
    await sleep(50)
    expect(receiver.connections()).toBe(1)
  })

  test('are tried at another address at once when one refuses', async () => {
    const other = await listen((socket) => socket.end(), { host: '::1' })
    const findAddresses = async () => ['127.0.0.1', '127.0.0.1', '127.0.0.1', '::1']
    // Less than the three seconds after which the last is tried in any case.
    const hurried = createWebhookSender({ allowLoopback: true, timeoutMs: 2_500, findAddresses })
    await send({ url: `https://hooks.example.com:${other.port}/` }, hurried)
    expect(other.accepted()).toBe(1)
  })

  test('are tried at another address when one says nothing, long before the time is up', async () => {
    const silent = await listen(() => {})
    const other = await listen((socket) => socket.end(), { host: '::1', port: silent.port })
    const findAddresses = async () => ['127.0.0.1', '::1']
    const patient = createWebhookSender({ allowLoopback: true, timeoutMs: 2_500, findAddresses })
    const sent = send({ url: `https://hooks.example.com:${silent.port}/` }, patient)
    await expect.poll(other.accepted).toBe(1)
    expect(await sent).toMatchObject({ kind: 'unanswered', error: 'The connection timed out.' })
    await expect.poll(silent.open).toBe(0)
  })

  test('end when the sender is closed, and so does what is under way, through no fault of the endpoint', async () => {
    const closing = createWebhookSender({ allowLoopback: true })
    receiver.answerWith(() => closing.close())
    expect(await send({}, closing)).toMatchObject({ kind: 'abandoned' })
    expect(await send({}, closing)).toMatchObject({ kind: 'abandoned' })
    expect(receiver.received).toHaveLength(1)
  })
})

describe('an answer', () => {
  test.each([200, 201, 204, 400, 404, 410, 429, 500, 503, 599])('may be %d', async (code) => {
    receiver.answerWith(status(code))
    const result = await send()
    expect(result).toMatchObject({ kind: 'answered', status: code, retryAfterSeconds: null })
    expect(result.milliseconds).toBeGreaterThanOrEqual(0)
  })

  test.each([301, 302, 303, 307, 308])('of %d is not followed, wherever it points', async (code) => {
    const elsewhere = await startWebhookReceiver()
    onTestFinished(() => elsewhere.close())
    receiver.answerWith(status(code, { Location: `${elsewhere.url}/`, Refresh: `0; url=${elsewhere.url}/` }))
    expect(await send()).toMatchObject({ kind: 'answered', status: code })
    expect(receiver.received).toHaveLength(1)
    expect(elsewhere.connections()).toBe(0)
  })

  const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000)
  /** As RFC 850 and asctime had it, which a recipient must still understand. */
  const rfc850 = (date: Date) => {
    const [, day, month, year, time] = /(\d\d) (\w{3}) \d\d(\d\d) ([\d:]{8})/.exec(
      date.toUTCString(),
    ) as RegExpExecArray
    return `${date.toLocaleDateString('en-GB', { weekday: 'long', timeZone: 'UTC' })}, ${day}-${month}-${year} ${time} GMT`
  }
  const asctime = (date: Date) =>
    date.toUTCString().replace(/^(\w{3}), (\d\d) (\w{3}) (\d{4}) ([\d:]{8}) GMT$/, '$1 $3 $2 $5 $4')

  test.each<[string, () => string, number]>([
    ['seconds', () => '120', 120],
    ['no seconds', () => '0', 0],
    ['more than a day', () => '99999999', 86_400],
    ['more than numbers hold', () => '9'.repeat(400), 86_400],
    ['a date', () => inSeconds(90).toUTCString(), 90],
    ['a date as RFC 850 wrote it', () => rfc850(inSeconds(90)), 90],
    ['a date as asctime wrote it', () => asctime(inSeconds(90)), 90],
    ['a date that has passed', () => inSeconds(-90).toUTCString(), 0],
    ['a date in years', () => inSeconds(1e8).toUTCString(), 86_400],
  ])('may ask to wait: %s', async (_, header, seconds) => {
    for (const code of [429, 410]) {
      receiver.answerWith(status(code, { 'Retry-After': header() }))
      const asked = Date.now()
      const result = (await send()) as Extract<WebhookResult, { kind: 'answered' }>
      expect(result.status).toBe(code)
      // A date is of whole seconds, and some time has passed since.
      const passed = seconds - (result.retryAfterSeconds ?? Number.NaN)
      expect(passed).toBeGreaterThanOrEqual(0)
      expect(passed).toBeLessThanOrEqual((Date.now() - asked) / 1000 + 2)
    }
  })

  test.each(['', 'soon', '-5', '1.5', '1e3', '0x10', 'Monday', 'Mon, 99 Foo 2026 00:00:00 GMT'])(
    'asks for nothing in particular with Retry-After: %s',
    async (header) => {
      receiver.answerWith(status(429, { 'Retry-After': header }))
      expect(await send()).toMatchObject({ kind: 'answered', status: 429, retryAfterSeconds: null })
    },
  )
})

describe('of a body', () => {
  const bodyOf = async (body: string | Uint8Array, headers = {}): Promise<string> => {
    receiver.answerWith(status(500, headers, body))
    const result = await send()
    if (result.kind !== 'answered') throw new Error(JSON.stringify(result))
    expect(result.status).toBe(500)
    return result.body
  }

  test('is kept what is text', async () => {
    expect(await bodyOf('{"error":"Zoë is not here"}')).toBe('{"error":"Zoë is not here"}')
  })

  test('1024 characters are kept, of however many bytes', async () => {
    expect(await bodyOf('x'.repeat(1024))).toBe('x'.repeat(1024))
    expect(await bodyOf('x'.repeat(5000))).toBe('x'.repeat(1024))
    expect(await bodyOf('🎟'.repeat(1025))).toBe('🎟'.repeat(1024))
    expect(await bodyOf(`\ufeff${'🎟'.repeat(5000)}`)).toBe('🎟'.repeat(1024))
    expect(await bodyOf(`x${'é'.repeat(5000)}`)).toBe(`x${'é'.repeat(1023)}`)
  })

  test('that never ends the beginning is kept, and no more is read', async () => {
    const closed = new Promise((resolve) => {
      receiver.answerWith((response, webhook) => {
        response.on('close', resolve)
        floodWith('z'.repeat(64 * 1024))(response, webhook)
      })
    })
    const patient = createWebhookSender({ allowLoopback: true, timeoutMs: 1_000_000 })
    const result = await send({}, patient)
    expect(result).toMatchObject({ kind: 'answered', status: 200, body: 'z'.repeat(1024) })
    await closed
  })

  test('is replaced what is no UTF-8 and what Postgres cannot hold', async () => {
    expect(await bodyOf(Uint8Array.of(0x61, 0xff, 0xc3, 0x28, 0x00, 0x62, 0xf0, 0x9f))).toBe('a��(�b�')
    const noise = await bodyOf(Uint8Array.from({ length: 9000 }, (_, i) => (i * 7919) % 256))
    expect(Array.from(noise)).toHaveLength(1024)
    expect(noise).not.toContain('\0')
    expect(noise.isWellFormed()).toBe(true)
  })

  test('is nothing shown if it is compressed, for nothing compressed was asked for', async () => {
    expect(await bodyOf(gzipSync('x'.repeat(1e6)), { 'Content-Encoding': 'gzip' })).toBe(
      '(compressed, and so not shown)',
    )
    expect(receiver.received[0]?.headers['accept-encoding']).toBe('identity')
    expect(await bodyOf('plain', { 'Content-Encoding': 'identity' })).toBe('plain')
  })

  test('that breaks off the beginning is kept', async () => {
    receiver.answerWith((response) => {
      response.writeHead(200, { 'Content-Length': 100 }).write('as far as', () => response.destroy())
    })
    expect(await send()).toMatchObject({ kind: 'answered', status: 200, body: 'as far as' })
  })
})

describe('no answer', () => {
  const unansweredWith = (error: string) => ({ kind: 'unanswered', error, milliseconds: expect.any(Number) })

  test.each([
    ['is reset', reset, 'The connection was closed before an answer.'],
    [
      'goes on in another protocol',
      raw('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n'),
      'The connection was closed before an answer.',
    ],
    ['speaks no HTTP', raw('220 mail.example.com ESMTP\r\n'), 'The answer is not HTTP.'],
    ['has too long a head', status(200, { 'X-Long': 'x'.repeat(20_000) }), 'The headers of the answer are too long.'],
  ])('comes from what %s', async (_, answer, error) => {
    receiver.answerWith(answer)
    expect(await send()).toEqual(unansweredWith(error))
  })

  test('comes from where nobody listens', async () => {
    await receiver.close()
    expect(await send()).toEqual(unansweredWith('Connection refused.'))
  })

  test('comes from a host that there is not', async () => {
    const { error } = (await send({ url: 'https://no-such-host.invalid/' })) as { error: string }
    expect(['No such host.', 'The host name could not be resolved.']).toContain(error)
  })

  const interim: Answer = (response) => {
    const timer = setInterval(() => response.writeProcessing(), 20)
    response.on('close', () => clearInterval(timer))
  }
  test.each([
    ['the endpoint is silent', hang],
    ['there are only interim answers', interim],
  ])('is waited for no longer than there is time while %s', async (_, answer) => {
    receiver.answerWith(answer)
    const result = await send({}, hasty)
    expect(result).toEqual(unansweredWith('No answer within 0.25 s.'))
    expect(result.milliseconds).toBeGreaterThanOrEqual(240)
  })

  test('is waited for no longer while a name is looked up, or TLS is agreed on', async () => {
    const findAddresses = () => new Promise<string[]>(() => {})
    const waiting = createWebhookSender({ allowLoopback: true, timeoutMs: 250, findAddresses })
    const { port } = await listen(() => {})
    expect([
      await send({ url: 'https://hooks.example.com/' }, waiting),
      await send({ url: `https://127.0.0.1:${port}/` }, hasty),
    ]).toEqual([unansweredWith('No answer within 0.25 s.'), unansweredWith('No answer within 0.25 s.')])
  })

  test('is no name for a status whose body drips: that is an answer, as far as it got in the time', async () => {
    receiver.answerWith(drip)
    const result = await send({}, hasty)
    expect(result).toMatchObject({ kind: 'answered', status: 200, body: expect.stringMatching(/^\.{1,15}$/) })
    expect(result.milliseconds).toBeGreaterThanOrEqual(240)
  })
})

/** A server that speaks neither TLS nor HTTP. */
async function listen(welcome: (socket: Socket) => void, { host = '127.0.0.1', port = 0 } = {}) {
  const sockets = new Set<Socket>()
  let accepted = 0
  const server = createServer((socket) => {
    accepted++
    sockets.add(socket)
    // Read, or its end is never seen.
    socket
      .on('close', () => sockets.delete(socket))
      .on('error', () => {})
      .resume()
    welcome(socket)
  })
  await new Promise<void>((resolve) => server.listen(port, host, resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, accepted: () => accepted, open: () => sockets.size }
}
