// What the Data API client gets of its requests: answers, however they are sent, and why there is none.

import { createServer, type RequestListener } from 'node:http'
import { gzipSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { listenOnLoopback } from '../../scripts/support/listen.ts'
import { DataApi } from '../../src/gateway/data-api.ts'
import { fetchByUndici } from '../../src/gateway/data-api-fetch.ts'

const tokens = { inPlaceOf: async (token: string) => token }

async function serving(listener: RequestListener) {
  const { url, close } = await listenOnLoopback(createServer(listener))
  onTestFinished(close)
  return url
}

async function sending(listener: RequestListener) {
  const url = await serving(listener)
  return (timeoutMs = 15_000) => fetchByUndici(url, { body: '{}', signal: AbortSignal.timeout(timeoutMs) })
}

test.each(['', '/', '/rest/v1', '/below/rest/v1'])('calls a function below a Data API at "%s"', async (path) => {
  const url = await serving(({ method, url, headers }, res) => {
    const { apikey, authorization, 'content-profile': profile } = headers
    res.end(JSON.stringify([method, url, apikey, authorization, profile]))
  })
  const asked = await new DataApi({ url: url + path, projectKey: 'key' }, tokens).rpc('me', {}, 'token')
  expect(asked).toEqual(['POST', `${path.replace(/\/$/, '')}/rpc/me`, 'key', 'Bearer token', 'api'])
})

test('decompresses an answer that a proxy has compressed', async () => {
  const text = JSON.stringify({ name: 'Märy'.repeat(1000) })
  const send = await sending((req, res) => {
    expect(req.headers['accept-encoding']).toBe('gzip')
    res.writeHead(200, { 'Content-Encoding': 'gzip' }).end(gzipSync(text))
  })
  expect(await (await send()).text()).toBe(text)
})

test('gives up after its time, closes the connection, and sends what comes next on another one', async () => {
  const answers = [() => {}, () => {}]
  const closed = Promise.withResolvers<void>()
  const send = await sending((_req, res) => {
    if (answers.pop() === undefined) res.end('{}')
    else res.on('close', closed.resolve)
  })
  await expect(send(500)).rejects.toMatchObject({ name: 'TimeoutError' })
  await closed.promise
  await expect(send(500)).rejects.toMatchObject({ name: 'TimeoutError' })
  expect(await send()).toMatchObject({ ok: true, status: 200 })
})

test('follows no redirect', async () => {
  const send = await sending((_req, res) => res.writeHead(307, { Location: 'http://127.0.0.1:9/' }).end())
  expect(await send()).toMatchObject({ ok: false, status: 307 })
})

test('names why a connection was refused', async () => {
  const { url, close } = await listenOnLoopback(createServer())
  await close()
  const refused = fetchByUndici(url, { body: '{}' })
  await expect(refused).rejects.toMatchObject({ name: 'TypeError', cause: { code: 'ECONNREFUSED' } })
})
