// What is fetched from an address that a client gave, and what is not.

import { createServer, type RequestListener } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { listenOnLoopback } from '../../../scripts/support/listen.ts'
import { createDocumentFetcher } from '../../../src/process/outbound/fetch-document.ts'
import { dnsThatAnswers } from '../../support/fake-dns.ts'

async function serve(listener: RequestListener): Promise<string> {
  const { url, close } = await listenOnLoopback(createServer(listener))
  onTestFinished(close)
  return url
}

const onThisMachine = { allowLoopback: true }

test.each([
  ['https://127.0.0.1/'],
  ['https://[::1]/'],
  ['https://10.0.0.1/'],
  ['https://169.254.169.254/latest/meta-data'],
  ['https://2130706433/'],
  ['http://93.184.216.34/'],
  ['https://user:password@client.example/'],
])('%s is not asked', async (url) => {
  await expect(createDocumentFetcher()(url)).rejects.toThrow('not allowed')
})

test('a name that leads to a private address is not asked', async () => {
  const { findAddresses } = dnsThatAnswers(['93.184.216.34', '192.168.1.1'])
  await expect(createDocumentFetcher({ findAddresses })('https://client.example/')).rejects.toThrow('private')
})

test('a redirect is not followed', async () => {
  const asked: string[] = []
  const url = await serve((req, res) => {
    asked.push(req.url ?? '')
    res.writeHead(302, { Location: '/elsewhere' }).end()
  })
  expect((await createDocumentFetcher(onThisMachine)(`${url}/client.json`)).status).toBe(302)
  expect(asked).toEqual(['/client.json'])
})

test('ten megabytes are not read', async () => {
  let sent = 0
  const url = await serve((_req, res) => {
    const send = () => {
      while (!res.destroyed && sent < 10_000_000 && res.write(Buffer.alloc(64 * 1024))) sent += 64 * 1024
    }
    res.on('drain', send).on('close', () => res.destroy())
    send()
  })
  await expect(createDocumentFetcher(onThisMachine)(url)).rejects.toThrow('larger than')
  expect(sent).toBeLessThan(10_000_000)
})

test.each<[string, RequestListener]>([
  ['does not begin', () => {}],
  ['does not end', (_req, res) => void res.write('{')],
])('an answer that %s is given up', async (_how, listener) => {
  const url = await serve(listener)
  await expect(createDocumentFetcher({ ...onThisMachine, timeoutMs: 300 })(url)).rejects.toThrow()
})
