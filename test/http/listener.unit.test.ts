// The port as raw bytes meet it: what cannot be read, who sends or reads too slowly, and more connections than there is room for.

import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { type ListenerOptions, openListener } from '../../src/http/listener.ts'

const large = Buffer.alloc(32 * 1024 * 1024, 'x')

/** Reads the body, and answers its length; /large answers more than a kernel holds. */
const listener: RequestListener = async (req, res) => {
  if (req.url === '/large') return void res.end(large)
  if (req.url === '/waits') return
  let length = 0
  req.on('error', () => {})
  for await (const chunk of req) length += chunk.length
  res.end(String(length))
}

async function open(options: Partial<ListenerOptions> = {}) {
  const opened = await openListener({ host: '127.0.0.1', port: 0, ...options })
  onTestFinished(opened.close)
  let begun = 0
  opened.serve((req, res) => {
    begun += 1
    void Promise.resolve(listener(req, res)).catch(() => {})
  })
  const { port } = new URL(opened.url)
  return {
    opened,
    begun: () => begun,
    socket() {
      const socket = connect(Number(port), '127.0.0.1')
      socket.on('error', () => {})
      onTestFinished(() => void socket.destroy())
      return socket
    },
  }
}

/** What comes until the other side closes. */
async function received(socket: Socket): Promise<string> {
  let text = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk
  })
  if (!socket.closed) await once(socket, 'close')
  return text
}

const get = (path = '/') => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`

function expectRefusal(answer: string, status: number, code: string): void {
  const [head = '', body = ''] = answer.split('\r\n\r\n')
  expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} [A-Z]`))
  expect(head).toMatch(/^Content-Type: application\/json/im)
  expect(head).toMatch(/^Connection: close/im)
  const { error } = JSON.parse(body)
  expect(error).toMatchObject({ code, message: expect.any(String), retryable: status === 408 })
  expect(head).toContain(`X-Request-Id: ${error.request_id}`)
}

test.each([
  ['no HTTP at all', 'hello\r\n\r\n', 400, 'bad_request'],
  ['a method there is not', 'FETCH / HTTP/1.1\r\nHost: localhost\r\n\r\n', 400, 'bad_request'],
  ['two lengths', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', 400, 'bad_request'],
  [
    'a length beside chunks',
    'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
    400,
    'bad_request',
  ],
  [
    'a chunk of no length',
    'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
    400,
    'bad_request',
  ],
  ['no Host', 'GET / HTTP/1.1\r\n\r\n', 400, 'bad_request'],
  ['headers of 20 KiB', `GET / HTTP/1.1\r\nHost: a\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'headers_too_large'],
  ['an expectation there is not', 'GET / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n', 417, 'expectation_failed'],
])('a request with %s is answered in the shape of all errors', async (_what, text, status, code) => {
  const socket = (await open()).socket()
  socket.write(text)
  expectRefusal(await received(socket), status, code)
})

test('Expect: 100-continue is continued', async () => {
  const socket = (await open()).socket()
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\nConnection: close\r\n\r\n')
  const [first] = await once(socket, 'data')
  expect(String(first)).toMatch(/^HTTP\/1\.1 100 Continue/)
  socket.write('abc')
  expect(await received(socket)).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*3/)
})

test.each([
  ['nothing', ''],
  ['headers that do not end', 'GET / HTTP/1.1\r\nHost: a\r\nX-Slow: '],
  ['a body that does not end', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{'],
])('a client that sends %s, a byte now and then, is told so and shut out', async (_what, text) => {
  const socket = (await open({ timeouts: { headersMs: 200, requestMs: 300 } })).socket()
  socket.write(text)
  const drip = setInterval(() => text !== '' && socket.write('x'), 50)
  onTestFinished(() => clearInterval(drip))
  expectRefusal(await received(socket), 408, 'request_timeout')
})

test('rubbish behind a request that is being worked on is not its answer: the connection is closed', async () => {
  const socket = (await open()).socket()
  socket.write(`${get('/waits')}rubbish\r\n\r\n`)
  expect(await received(socket)).toBe('')
})

test('requests that are sent ahead are begun one after another', async () => {
  const { opened, socket } = await open()
  let [underWay, most] = [0, 0]
  opened.serve((req, res) => {
    underWay += 1
    most = Math.max(most, underWay)
    res.once('finish', () => {
      underWay -= 1
    })
    setTimeout(() => res.end(req.url), 10)
  })
  const polite = socket()
  const paths = ['/a', '/b', '/c', '/d', '/e', '/f', '/g']
  polite.write(paths.map(get).join('') + get('/h').replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
  expect((await received(polite)).match(/\/[a-h]$|\/[a-h](?=HTTP)/gm)).toEqual([...paths, '/h'])
  expect(most).toBe(1)
})

test('a client that sends hundreds of requests without waiting for an answer is shut out', async () => {
  const { opened, socket } = await open()
  let begun = 0
  opened.serve((_req, res) => {
    begun += 1
    setTimeout(() => res.end(), 50)
  })
  const rude = socket()
  rude.write(get().repeat(500))
  expect(await received(rude)).toBe('')
  expect(begun).toBe(1)
})

test('an answer of which nothing is read any more goes with its connection', async () => {
  const socket = (await open({ timeouts: { idleMs: 300 } })).socket()
  socket.pause()
  socket.write(get('/large'))
  // A socket that is paused does not hear that the other side has closed: what it is then given is less than all.
  await sleep(1_500)
  socket.resume()
  expect((await received(socket)).length).toBeLessThan(large.length)
})

test('an answer that is read slowly arrives whole', async () => {
  const socket = (await open({ timeouts: { idleMs: 2_000 } })).socket()
  socket.write(get('/large').replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
  let length = 0
  socket.on('data', (chunk: Buffer) => {
    length += chunk.length
    // More than two seconds in all, and no silence of two.
    if (length % 7 === 0) {
      socket.pause()
      setTimeout(() => socket.resume(), 50)
    }
  })
  await once(socket, 'close')
  expect(length).toBeGreaterThan(large.length)
})

test('when all connections are used up, the oldest that waits for its client gives way, and one that is worked on does not', async () => {
  const { socket, begun } = await open({ maxConnections: 10 })
  const worked = socket()
  worked.write(get('/waits'))
  await expect.poll(begun).toBe(1)
  const idle = Array.from({ length: 9 }, socket)
  await Promise.all(idle.map((one) => once(one, 'connect')))
  const newcomer = socket()
  newcomer.write(get())
  expect(String((await once(newcomer, 'data'))[0])).toMatch(/^HTTP\/1\.1 200/)
  await expect.poll(() => idle.filter(({ closed }) => closed).length).toBe(1)
  expect([worked.closed, idle[0]?.closed]).toEqual([false, true])
})

test('who does not read, and sends more requests behind, gives way as well', async () => {
  const { socket, begun } = await open({ maxConnections: 2 })
  const readers = Array.from({ length: 2 }, socket)
  for (const reader of readers) {
    reader.pause()
    reader.write(get('/large') + get('/large'))
  }
  await expect.poll(begun).toBe(2)
  const newcomer = socket()
  newcomer.write(get())
  expect(String((await once(newcomer, 'data'))[0])).toMatch(/^HTTP\/1\.1 200/)
})

test('when all connections wait for us, one more is turned away', async () => {
  const { socket, begun } = await open({ maxConnections: 3 })
  const worked = Array.from({ length: 3 }, socket)
  for (const one of worked) one.write(get('/waits'))
  await expect.poll(begun).toBe(3)
  expect(await received(socket())).toBe('')
  expect(worked.map(({ closed }) => closed)).toEqual([false, false, false])
})

test('places are given back: as many clients as you like come one after another', async () => {
  const { opened } = await open({ maxConnections: 3 })
  for (let i = 0; i < 10; i++) {
    const response = await fetch(opened.url, { headers: { Connection: 'close' } })
    expect([response.status, await response.text()]).toEqual([200, '0'])
  }
})

test('a request that meets a stop on an idle connection is answered, and the connection ends with it', async () => {
  const { opened, socket } = await open()
  const idle = socket()
  idle.write(get())
  await once(idle, 'data')
  const answer = received(idle)
  const stopped = opened.close()
  idle.write(get())
  expect(await answer).toMatch(/^HTTP\/1.1 200 OK\r\n[\s\S]*Connection: close\r\n/)
  await stopped
})
