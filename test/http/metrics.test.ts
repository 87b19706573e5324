// What a running Usher exposes to Prometheus, on a port of its own; and that there is no such port by default.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import express from 'express'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../../src/cli/config.ts'
import { type Running, start } from '../../src/cli/start.ts'
import { openListener } from '../../src/http/listener.ts'
import { createMetrics } from '../../src/http/metrics.ts'
import { createLog } from '../../src/process/log.ts'
import { makeDataDirectory } from '../support/data-directory.ts'
import { rest } from '../support/rest.ts'
import { startWebhookReceiver, status } from '../support/webhook-receiver.ts'

const log = createLog('silent')
const begin = (environment: Record<string, string>) =>
  start(readConfig({ USHER_DATA_DIR: dataDir, PORT: '0', ...environment }), log, () => {})

let dataDir: string
let usher: Running
beforeAll(async () => {
  dataDir = await makeDataDirectory()
  usher = await begin({ METRICS_PORT: '0' })
})
afterAll(async () => {
  await usher.stop()
  await rm(dataDir, { recursive: true, force: true })
})

/** The value of each series, by its name with its labels. */
const read = (text: string) =>
  new Map(
    text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))] as const),
  )

async function scrape() {
  const response = await fetch(`${usher.metricsUrl}/metrics`)
  expect(response.status).toBe(200)
  expect(response.headers.get('Content-Type')).toMatch(/^text\/plain; version=0\.0\.4/)
  return read(await response.text())
}

test('requests are counted by operation, source and status; deliveries by their outcome; and what is pending is measured', async () => {
  const { key, eventId, ticketTypeId } = usher.demo ?? expect.unreachable()
  const send = rest(key, usher.url)
  const receivers = await Promise.all([startWebhookReceiver(), startWebhookReceiver(), startWebhookReceiver()])
  const [good, bad, gone] = receivers
  onTestFinished(async () => void (await Promise.all(receivers.map((receiver) => receiver.close()))))
  bad?.answerWith(status(503))
  for (const { url } of receivers) {
    await send('POST', '/webhook-endpoints', { url: `${url}/`, types: ['order.completed'] })
  }
  await gone?.close()

  const guest = { ticket_type_id: ticketTypeId, name: 'Mary Jackson', email: 'mary@example.com' }
  expect((await send('POST', `/events/${eventId}/registrations`, guest)).status).toBe(201)
  expect((await send('POST', `/events/${eventId}/registrations`, {})).status).toBe(422)
  await expect.poll(() => [good?.received.length, bad?.received.length]).toEqual([1, 1])
  const outcomes = async () => {
    const series = await scrape()
    const of = (kind: string, outcome: string) =>
      series.get(`usher_deliveries_total{kind="${kind}",outcome="${outcome}"}`)
    return ['delivered', 'refused', 'unanswered']
      .map((outcome) => of('webhooks', outcome))
      .concat(of('ticket_emails', 'sent'))
  }
  await expect.poll(outcomes).toEqual([1, 1, 1, 1])

  const series = await scrape()
  const requests = (code: number) =>
    series.get(`usher_http_request_duration_seconds_count{operation="register_attendee",source="api",status="${code}"}`)
  expect([requests(201), requests(422), requests(500)]).toEqual([1, 1, undefined])
  expect(series.get('usher_delivery_duration_seconds_count{kind="webhooks"}')).toBe(3)
  // The two that failed are still pending, and not yet due.
  expect(series.get('usher_outbox_pending{kind="webhooks"}')).toBe(2)
  expect(series.get('usher_outbox_pending{kind="ticket_emails"}')).toBe(0)
  expect(series.get('usher_outbox_oldest_seconds{kind="webhooks"}')).toBeGreaterThan(0)
  expect(series.get('usher_outbox_late_seconds{kind="webhooks"}')).toBe(0)
  expect(series.get('usher_deliveries_total{kind="ticket_emails",outcome="failed"}')).toBe(0)
  expect(series.get('usher_outbox_failing{kind="webhooks"}')).toBe(2)
  expect(series.get('usher_outbox_failing{kind="ticket_emails"}')).toBe(0)
  expect(series.get('process_start_time_seconds')).toBeGreaterThan(0)
})

test('whoever leaves before there is an answer is counted as such', async () => {
  const { requests, listener } = createMetrics(async () => [], log)
  const api = await openListener({ host: '127.0.0.1', port: 0 })
  const opened = await openListener({ host: '127.0.0.1', port: 0 })
  onTestFinished(async () => void (await Promise.all([api.close(), opened.close()])))
  api.serve(
    express().use(requests, (_req, res) => {
      res.locals.operation = 'check_in'
    }),
  )
  opened.serve(listener)
  await expect(fetch(api.url, { signal: AbortSignal.timeout(100) })).rejects.toThrow()
  const counted = async () =>
    (await (await fetch(`${opened.url}/metrics`)).text()).match(/_count\{operation="check_in".*/)?.[0]
  await expect.poll(counted).toBe('_count{operation="check_in",source="none",status="499"} 1')
})

test('a port of its own serves it, and nothing else; the API does not', async () => {
  const statusOf = async (url: string, init = {}) => (await fetch(url, init)).status
  expect(await statusOf(`${usher.metricsUrl}/`)).toBe(404)
  expect(await statusOf(`${usher.metricsUrl}/metrics`, { method: 'POST' })).toBe(404)
  expect(await statusOf(`${usher.url}/metrics`)).toBe(404)
})

test.each([
  ['is away', () => Promise.reject(new Error('away'))],
  ['hangs', () => new Promise(() => {})],
])('where the database %s, what is pending is missing and not zero', async (_, outbox) => {
  const { listener } = createMetrics(outbox, log)
  const opened = await openListener({ host: '127.0.0.1', port: 0 })
  onTestFinished(() => opened.close())
  opened.serve(listener)
  const series = read(await (await fetch(`${opened.url}/metrics`)).text())
  expect([...series.keys()].filter((name) => name.startsWith('usher_outbox'))).toEqual([])
  expect(series.get('process_start_time_seconds')).toBeGreaterThan(0)
})

test('a port that is taken stops the start, by the name of its variable', async () => {
  const { port } = new URL(usher.metricsUrl ?? '')
  await expect(begin({ METRICS_PORT: port, USHER_DATA_DIR: join(dataDir, 'another') })).rejects.toThrow(
    `Another program uses port ${port} on 127.0.0.1. Stop it, or set METRICS_PORT to a free port.`,
  )
})
