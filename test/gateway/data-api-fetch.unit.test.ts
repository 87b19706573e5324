// What the Data API client gets from its `fetch`: answers, however they are sent, and why there is none.

import { createServer, type RequestListener } from 'node:http'
import { gzipSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { listenOnLoopback } from '../../scripts/support/listen.ts'
import { createDataApiFetch } from '../../src/gateway/data-api-fetch.ts'

const aborted = new Error('aborted')

async function fetching(listener: RequestListener) {
  const { url, close } = await listenOnLoopback(createServer(listener))
  onTestFinished(close)
  const send = createDataApiFetch(url)
  return (signal?: AbortSignal) =>
    send(`${url}/rpc/x`, { method: 'POST', headers: new Headers({ a: 'b' }), body: '{}', ...(signal && { signal }) })
}

test('decompresses an answer that a proxy has compressed', async () => {
  const text = JSON.stringify({ name: 'Märy'.repeat(1000) })
  const send = await fetching((req, res) => {
    expect([req.url, req.headers.a, req.headers['accept-encoding']]).toEqual(['/rpc/x', 'b', 'gzip'])
    res.writeHead(200, { 'Content-Encoding': 'gzip' }).end(gzipSync(text))
  })
  const answer = await send()
  expect([answer.ok, answer.status, await answer.text()]).toEqual([true, 200, text])
})

test('joins the pieces of an answer before it reads them as text', async () => {
  const bytes = Buffer.from('"ü"')
  const send = await fetching((_req, res) => {
    res.writeHead(400).write(bytes.subarray(0, 2))
    setTimeout(() => res.end(bytes.subarray(2)), 20)
  })
  const answer = await send()
  expect([answer.ok, answer.status, await answer.text()]).toEqual([false, 400, '"ü"'])
})

test('gives up when told to: before, and while there is no answer', async () => {
  const stop = new AbortController()
  let closed: Promise<void> | undefined
  const send = await fetching((req, res) => {
    closed = new Promise((resolve) => res.on('close', resolve))
    req.resume().on('end', () => stop.abort(aborted))
  })
  await expect(send(stop.signal)).rejects.toBe(aborted)
  await closed
  await expect(send(stop.signal)).rejects.toBe(aborted)
})

test('names why a connection was refused', async () => {
  const { url, close } = await listenOnLoopback(createServer())
  await close()
  const refused = createDataApiFetch(url)(`${url}/rpc/x`, { headers: new Headers() })
  await expect(refused).rejects.toMatchObject({ name: 'TypeError', cause: { code: 'ECONNREFUSED' } })
})
