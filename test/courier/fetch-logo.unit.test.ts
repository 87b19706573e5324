// One logo, fetched from a server that may answer anything.

import { gzipSync } from 'node:zlib'
import { PNG } from 'pngjs'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { createLogoFetcher, type LogoResult } from '../../src/courier/fetch-logo.ts'
import { imageHeader } from '../../src/courier/image-header.ts'
import { dnsThatAnswers } from '../support/fake-dns.ts'
import {
  type Answer,
  drip,
  hang,
  raw,
  reset,
  startWebhookReceiver,
  status,
  type WebhookReceiver,
} from '../support/webhook-receiver.ts'
import { othersOfLoopback, privateHosts } from './hostile-hosts.ts'

let server: WebhookReceiver
beforeEach(async () => {
  server = await startWebhookReceiver()
})
afterEach(() => server.close())

const fetcher = createLogoFetcher({ allowLoopback: true, timeoutMs: 10_000 })
const hasty = createLogoFetcher({ allowLoopback: true, timeoutMs: 250 })

const png = (width: number, height: number) => PNG.sync.write(new PNG({ width, height }))
/** Progressive, one pixel. */
const jpeg = Buffer.from(
  '/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////wgALCAABAAEBAREA/8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQABPxD/2Q==',
  'base64',
)

function fetchFrom(answer: Answer, by = fetcher): Promise<LogoResult> {
  server.answerWith(answer)
  return by.fetch(`${server.url}/logo.png?v=1`)
}

/** As if it never got better. */
const failed = (error: string) => ({ kind: 'failed', error, permanent: true })
const failedForNow = (error: string) => ({ kind: 'failed', error, permanent: false })
const withHeader = (bytes: Buffer, width: number, height: number) => {
  const changed = Buffer.from(bytes)
  changed.writeUInt32BE(width, 16)
  changed.writeUInt32BE(height, 20)
  return changed
}

describe('a picture', () => {
  test.each([
    ['image/png', png(300, 80), 300, 80],
    ['image/png', png(2000, 1), 2000, 1],
    ['image/jpeg', jpeg, 1, 1],
  ])('of type %s is kept as it is, whatever its server calls it', async (content_type, bytes, width, height) => {
    expect(await fetchFrom(status(200, { 'Content-Type': 'text/html' }, bytes))).toEqual({
      kind: 'fetched',
      content: bytes.toString('base64'),
      content_type,
      width,
      height,
    })
    expect(server.received).toMatchObject([
      { method: 'GET', path: '/logo.png?v=1', headers: { 'accept-encoding': 'identity' } },
    ])
  })

  test('is found through redirects, each of which is checked like the first address', async () => {
    const answer: Answer = (response, { path }) =>
      path === '/logo'
        ? status(200, {}, png(2, 2))(response, server.received[0] as never)
        : redirectTo('/logo')(response)
    expect(await fetchFrom(answer)).toMatchObject({ kind: 'fetched', width: 2 })
    expect(await fetchFrom((response) => redirectTo('/logo.png?v=1')(response))).toEqual(
      failed('The address of the logo redirects too often.'),
    )
    expect(await fetchFrom((response) => redirectTo('https://[::ffff:127.0.0.1]/logo.png')(response))).toEqual(
      failed('The address is not allowed: it is private or reserved.'),
    )
    expect(await fetchFrom((response) => redirectTo('http://logos.example/logo.png')(response))).toEqual(
      failed('The address is not allowed: it must begin with https.'),
    )
  })

  test.each([
    [
      'a page',
      status(200, {}, '\n<!DOCTYPE html><title>Sign in'),
      'At the address of the logo is a web page, not a picture.',
    ],
    ['an SVG', status(200, {}, '<svg xmlns="http://www.w3.org/2000/svg"/>'), 'The logo is neither a PNG nor a JPEG.'],
    ['nothing', status(200), 'The logo is neither a PNG nor a JPEG.'],
    ['too wide', status(200, {}, png(2001, 1)), 'The logo has 2001 by 1 pixels; 2000 by 2000 are the most.'],
    [
      'vast',
      status(200, {}, withHeader(png(1, 1), 2 ** 32 - 1, 7)),
      'The logo has 4294967295 by 7 pixels; 2000 by 2000 are the most.',
    ],
    ['without a pixel', status(200, {}, withHeader(png(1, 1), 0, 7)), 'The logo has no pixels.'],
    [
      'compressed',
      status(200, { 'Content-Encoding': 'gzip' }, gzipSync(png(1, 1))),
      'The logo is compressed on its way, which was not asked for.',
    ],
    ['missing', status(404, {}, png(1, 1)), 'The address of the logo answered with the status 404.'],
    [
      'a byte too large',
      status(200, {}, Buffer.concat([png(1, 1), Buffer.alloc(256 * 1024)])),
      'The logo is larger than 256 KiB.',
    ],
  ])('that is %s is refused for good', async (_, answer, error) => {
    expect(await fetchFrom(answer)).toEqual(failed(error))
  })

  test('of 50 MB is cut off while it is read', async () => {
    let sent = 0
    const closed = Promise.withResolvers<void>()
    const result = await fetchFrom((response) => {
      const chunk = Buffer.alloc(64 * 1024)
      response.on('close', closed.resolve)
      response.writeHead(200).write(png(1, 1))
      const write = () => {
        while (sent < 50e6 && !response.destroyed) {
          sent += chunk.length
          if (!response.write(chunk)) return void response.once('drain', write)
        }
        response.end()
      }
      write()
    })
    expect(result).toEqual(failed('The logo is larger than 256 KiB.'))
    await closed.promise
    expect(sent).toBeLessThan(50e6)
  })

  test.each([
    ['a server in trouble', status(503), 'The address of the logo answered with the status 503.'],
    ['too many requests', status(429), 'The address of the logo answered with the status 429.'],
    ['a broken connection', reset, 'The connection was closed before an answer.'],
    ['no HTTP', raw('not http\r\n\r\n'), 'The answer is not HTTP.'],
    ['silence', hang, 'No answer within 0.25 s.'],
    ['a picture byte by byte', drip, 'No answer within 0.25 s.'],
    ['half a PNG', status(200, {}, png(50, 50).subarray(0, 60)), 'The logo is not complete: its end is missing.'],
    ['half a JPEG', status(200, {}, jpeg.subarray(0, -2)), 'The logo is not complete: its end is missing.'],
  ])('may be tried again after %s', async (_, answer, error) => {
    expect(await fetchFrom(answer, hasty)).toEqual(failedForNow(error))
  })
})

describe('an address', () => {
  test('that is private is never connected to, however it is written', async () => {
    for (const host of [...othersOfLoopback, ...privateHosts]) {
      expect([host, await fetcher.fetch(`https://${host}:${server.port}/`)]).toEqual([
        host,
        failed('The address is not allowed: it is private or reserved.'),
      ])
    }
    const { findAddresses } = dnsThatAnswers(['10.0.0.1'])
    const strict = createLogoFetcher({ allowLoopback: false, findAddresses })
    onTestFinished(() => strict.close())
    expect(await strict.fetch('https://logos.example/logo.png')).toMatchObject({ permanent: true })
    expect(await strict.fetch(`${server.url}/logo.png`)).toMatchObject({ permanent: true })
    expect(server.connections()).toBe(0)
  })

  test('is given up quietly when the courier stops', async () => {
    const stopping = createLogoFetcher({ allowLoopback: true })
    const fetched = fetchFrom(hang, stopping)
    await expect.poll(() => server.received.length).toBe(1)
    stopping.close()
    expect(await fetched).toEqual({ kind: 'abandoned' })
  })
})

test('a header that breaks off anywhere, or is followed by anything, is read without an error', () => {
  for (const bytes of [png(5, 6), jpeg]) {
    for (let length = 0; length <= bytes.length; length++) imageHeader(bytes.subarray(0, length))
  }
  for (let value = 0; value < 256; value++) imageHeader(Buffer.concat([jpeg.subarray(0, 3), Buffer.alloc(60, value)]))
  expect(imageHeader(jpeg)).toEqual({ content_type: 'image/jpeg', width: 1, height: 1 })
})

const redirectTo =
  (location: string) =>
  (response: Parameters<Answer>[0]): void =>
    void response.writeHead(302, { Location: location }).end()
