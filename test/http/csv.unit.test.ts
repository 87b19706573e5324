// Files on their way: to readers who wait long for a row, who do not read, and who have gone away.

import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import express, { type Response } from 'express'
import { expect, onTestFinished, test } from 'vitest'
import type { Row } from '../../src/gateway/exports.ts'
import { sendCsv } from '../../src/http/csv.ts'
import { withFormulas, withoutFormulas } from '../../src/http/formulas.ts'
import { openListener } from '../../src/http/listener.ts'
import { exportAttendees } from '../../src/operations/exports.ts'

const idleMs = 200

/** A file of these pages; `sent` is settled when it is sent or given up. */
async function serve(
  pages: () => AsyncIterable<Row[]>,
  { before = async (_: Response) => {}, signal = new AbortController().signal } = {},
) {
  const opened = await openListener({ host: '127.0.0.1', port: 0, timeouts: { idleMs } })
  onTestFinished(opened.close)
  const sent = Promise.withResolvers<string>()
  const app = express()
  app.get('/', async (_req, res) => {
    await before(res)
    const close = () => {}
    const file = {
      operation: { ...exportAttendees, toolset: 'attendees' } as const,
      asOf: '2026-01-01T00:00:00Z',
      fields: ['id', 'name'],
      pages: pages(),
      signal,
      close,
    }
    await sendCsv(res, file, false).then(
      () => sent.resolve('sent'),
      (error) => {
        res.destroy()
        sent.reject(error)
      },
    )
  })
  opened.serve(app)
  const request = get(opened.url)
  request.on('error', () => {})
  return { request, sent: sent.promise }
}

test('the header is sent at once, and whoever waits for a row longer than the limit gets it', async () => {
  const gate = Promise.withResolvers<void>()
  const { request } = await serve(async function* () {
    yield []
    await gate.promise
    yield [{ id: 1, name: 'Mary' }]
  })
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  answer.setEncoding('utf8')
  const [header] = await once(answer, 'data')
  expect(header).toBe('id,name\r\n')
  await sleep(4 * idleMs)
  gate.resolve()
  expect(await Array.fromAsync(answer)).toEqual(['1,Mary\r\n'])
})

test('whoever does not read what is written is cut off', async () => {
  const { request, sent } = await serve(async function* () {
    for (;;) yield [{ id: 1, name: 'x'.repeat(100_000) }]
  })
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  answer.on('error', () => {})
  expect(await sent).toBe('sent')
})

test('a file that makes way for another is cut off', async () => {
  const makeWay = new AbortController()
  const { request } = await serve(
    async function* () {
      for (;;) yield [{ id: 1, name: 'x'.repeat(100_000) }]
    },
    { signal: makeWay.signal },
  )
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  makeWay.abort()
  await expect(Array.fromAsync(answer)).rejects.toMatchObject({ code: 'ECONNRESET' })
})

test('whoever goes away during the first page is no error', async () => {
  const isAsked = Promise.withResolvers<void>()
  const { request, sent } = await serve(
    async function* () {
      yield [{ id: 1 }]
    },
    {
      before: async (res) => {
        isAsked.resolve()
        await once(res, 'close')
      },
    },
  )
  await isAsked.promise
  request.destroy()
  expect(await sent).toBe('sent')
})

test.each([
  ['=1+1', "'=1+1"],
  ['a;=1+1;+2', "a;'=1+1;'+2"],
  ['a;"=1+1"', `a;"'=1+1"`],
  ['two\r\n-lines\t@x', "two\r\n'-lines\t'@x"],
  ['\t=1', "'\t'=1"],
  ['-5', '-5'],
  ['a = b; c', 'a = b; c'],
  ["'Quoted'; d'accord", "'Quoted'; d'accord"],
])('%j is harmless as %j, and is read back as it was', (text, harmless) => {
  expect(withoutFormulas(text)).toBe(harmless)
  expect(withFormulas(harmless)).toBe(text)
})
