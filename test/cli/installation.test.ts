// A data directory that is restarted, moved and shared by several processes sends; a copy of it holds webhooks and e-mails, says so
// everywhere, and sends once they are released.

import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../../src/cli/config.ts'
import { examine } from '../../src/cli/doctor/doctor.ts'
import { type Running, runCourier, start } from '../../src/cli/start.ts'
import { copyDataDirectory } from '../support/data-directory.ts'
import { rest } from '../support/rest.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'
import { cleanUp, temporaryFolder, usher } from './support.ts'

afterAll(cleanUp)

const lines: string[] = []
const log = pino({ level: 'info' }, { write: (line) => void lines.push(line) })
const config = (dataDir: string, environment: NodeJS.ProcessEnv = {}) =>
  readConfig({ USHER_DATA_DIR: dataDir, PORT: '0', ...environment })

/** A start that the end of the test stops, unless the test did. */
async function running(dataDir: string, environment?: NodeJS.ProcessEnv): Promise<Running> {
  const started = await start(config(dataDir, environment), log, () => {})
  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped ??= started.stop()
    return stopped
  }
  onTestFinished(stop)
  return { ...started, stop }
}

const mailsIn = (dataDir: string) =>
  existsSync(join(dataDir, 'mail'))
    ? readdirSync(join(dataDir, 'mail')).filter((name) => name.endsWith('.eml')).length
    : 0

test('a data directory sends after a restart and a move, by any process; a copy holds until it is released', async () => {
  const folder = temporaryFolder()
  const [dataDir, moved, copy] = [join(folder, 'data'), join(folder, 'moved'), join(folder, 'copy')]
  await copyDataDirectory(dataDir)
  const receiver = await startWebhookReceiver()
  onTestFinished(receiver.close)

  const first = await running(dataDir, { DELIVERIES: 'false' })
  const { key, eventId, ticketTypeId } = first.demo ?? expect.unreachable()
  const register = (url: string) =>
    rest(key, url)('POST', `/events/${eventId}/registrations`, {
      ticket_type_id: ticketTypeId,
      name: 'Mary Jackson',
      email: 'mary@example.com',
    })
  const endpoint = { url: `${receiver.url}/`, types: ['order.completed'] }
  expect((await rest(key, first.url)('POST', '/webhook-endpoints', endpoint)).status).toBe(201)
  expect((await register(first.url)).status).toBe(201)
  await first.stop()
  execFileSync('cp', ['-a', dataDir, copy])

  renameSync(dataDir, moved)
  const api = await running(moved, { DELIVERIES: 'false' })
  const couriers = [await runCourier(config(moved), log, () => {}), await runCourier(config(moved), log, () => {})]
  try {
    await expect.poll(() => [receiver.received.length, mailsIn(moved)]).toEqual([1, 1])
    expect(await (await fetch(`${api.url}/ready`)).json()).toEqual({ status: 'ready' })
    expect(lines.join()).not.toContain('held')
  } finally {
    for (const courier of couriers) await courier.stop()
    await api.stop()
  }

  const copied = await running(copy, { METRICS_PORT: '0' })
  const send = rest(key, copied.url)
  expect(lines.filter((line) => line.includes('Webhooks and e-mails are held'))).toHaveLength(1)
  const ready = await fetch(`${copied.url}/ready`)
  expect([ready.status, await ready.json()]).toEqual([200, { status: 'ready', deliveries: 'held' }])
  const findings = await examine({ USHER_DATA_DIR: copy })
  expect(findings.filter(({ status }) => status === 'failed')).toMatchObject([
    { check: 'deliveries', fix: expect.stringContaining('npx usher deliveries release') },
  ])
  expect((await register(copied.url)).status).toBe(201)
  // The courier is at work: it fans out, and claims nothing of it.
  const pending = async () => (await send('GET', '/webhook-deliveries?status=pending')).body.data
  await expect.poll(async () => (await pending()).length).toBe(2)
  const metrics = await (await fetch(`${copied.metricsUrl}/metrics`)).text()
  expect(metrics).toContain('usher_outbox_held{kind="webhooks"} 1\n')
  expect(metrics).toContain('usher_outbox_held{kind="ticket_emails"} 1\n')
  expect(await pending()).toMatchObject([{ attempts: 0 }, { attempts: 0 }])
  expect([receiver.received.length, mailsIn(copy)]).toEqual([1, 0])

  const released = await usher(['deliveries', 'release'], copy)
  expect([released.code, released.stdout]).toEqual([0, expect.stringMatching(/^Released: /)])
  await expect.poll(() => [receiver.received.length, mailsIn(copy)]).toEqual([3, 2])
  await expect.poll(async () => (await fetch(`${copied.url}/ready`)).json()).toEqual({ status: 'ready' })
  expect((await examine({ USHER_DATA_DIR: copy })).filter(({ status }) => status === 'failed')).toEqual([])
})
