// What the Data API client gets of its requests: answers, however they are sent, and why there is none.

import { createServer, type RequestListener } from 'node:http'
import { gzipSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { listenOnLoopback } from '../../scripts/support/listen.ts'
import { createSend } from '../../src/gateway/data-api-send.ts'

async function sending(listener: RequestListener) {
  const { url, close } = await listenOnLoopback(createServer(listener))
  onTestFinished(close)
  const send = createSend(`${url}/rest/v1`)
  return (timeoutMs = 15_000) => send('/rpc/x', { a: 'b' }, '{}', timeoutMs)
}

test('decompresses an answer that a proxy has compressed', async () => {
  const text = JSON.stringify({ name: 'Märy'.repeat(1000) })
  const send = await sending((req, res) => {
    expect([req.method, req.url, req.headers.a, req.headers['accept-encoding']]).toEqual([
      'POST',
      '/rest/v1/rpc/x',
      'b',
      'gzip',
    ])
    res.writeHead(200, { 'Content-Encoding': 'gzip' }).end(gzipSync(text))
  })
  expect(await send()).toEqual({ status: 200, text })
})

test('joins the pieces of an answer before it reads them as text', async () => {
  const bytes = Buffer.from('"ü"')
  const send = await sending((_req, res) => {
    res.writeHead(400).write(bytes.subarray(0, 2))
    setTimeout(() => res.end(bytes.subarray(2)), 20)
  })
  expect(await send()).toEqual({ status: 400, text: '"ü"' })
})

test('gives up after its time, closes the connection, and sends what comes next on another one', async () => {
  const answers = [() => {}, () => {}]
  const closed = Promise.withResolvers<void>()
  const send = await sending((_req, res) => {
    if (answers.pop() === undefined) res.end('{}')
    else res.on('close', closed.resolve)
  })
  await expect(send(20)).rejects.toMatchObject({ name: 'TimeoutError', message: 'No answer in time.' })
  await closed.promise
  await expect(send(20)).rejects.toMatchObject({ name: 'TimeoutError' })
  expect(await send()).toEqual({ status: 200, text: '{}' })
})

test('names why a connection was refused', async () => {
  const { url, close } = await listenOnLoopback(createServer())
  await close()
  const refused = createSend(url)('/rpc/x', {}, '{}', 15_000)
  await expect(refused).rejects.toMatchObject({ name: 'TypeError', cause: { code: 'ECONNREFUSED' } })
})
