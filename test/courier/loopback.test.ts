// When webhooks may go to this machine: by default only where Usher serves this machine alone, and never to Usher's own ports, such as
// PostgREST, which answers any connection.

import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { serveApp } from '../../scripts/support/serve-app.ts'
import { issueKey, withDatabase } from '../../src/admin.ts'
import { readConfig } from '../../src/config.ts'
import { portsOf } from '../../src/embedded/run-record.ts'
import { type EmbeddedStack, recordOfRunningStack, startEmbeddedStack } from '../../src/embedded/stack.ts'
import { scopes } from '../../src/operation.ts'
import { createLog } from '../../src/process/log.ts'
import { runCourier, start } from '../../src/start.ts'
import { makeDataDirectory } from '../support/data-directory.ts'
import { rest } from '../support/rest.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const OWN = "The address is not allowed: it is Usher's own."
const NOT_HTTPS = 'The address is not allowed: it must begin with https.'
let dataDir: string
let key: string
beforeAll(async () => {
  dataDir = await makeDataDirectory()
})
afterAll(() => rm(dataDir, { recursive: true, force: true }))

const config = (environment: NodeJS.ProcessEnv = {}) =>
  readConfig({ USHER_DATA_DIR: dataDir, PORT: '0', ...environment })

async function receiver() {
  const endpoint = await startWebhookReceiver()
  onTestFinished(() => endpoint.close())
  return endpoint
}

/** What became of one webhook to each of these addresses: null where it was answered. */
async function sendTo(apiUrl: string, urls: string[]): Promise<(string | null)[]> {
  const send = rest(key, apiUrl)
  const ids = await Promise.all(
    urls.map(
      async (url) => (await send('POST', '/webhook-endpoints', { url, types: ['order.completed'] })).body.data.id,
    ),
  )
  const eventId = (await send('GET', '/events')).body.data[0].id
  const ticketTypeId = (await send('GET', `/events/${eventId}/ticket-types`)).body.data[0].id
  const guest = { ticket_type_id: ticketTypeId, name: 'Mary Jackson', email: 'mary@example.com' }
  expect((await send('POST', `/events/${eventId}/registrations`, guest)).status).toBe(201)
  const outcome = async (id: string) => {
    const [delivery] = (await send('GET', `/webhook-deliveries?webhook_endpoint_id=${id}`)).body.data
    return delivery.last_response === null && delivery.last_error === null ? undefined : delivery.last_error
  }
  const outcomes = () => Promise.all(ids.map(outcome))
  await expect.poll(outcomes).not.toContain(undefined)
  const became = await outcomes()
  for (const id of ids) await send('DELETE', `/webhook-endpoints/${id}`)
  return became
}

const everywhere = (port: number) =>
  ['http', 'https'].flatMap((scheme) =>
    ['127.0.0.1', 'localhost', '[::1]'].map((host) => `${scheme}://${host}:${port}/`),
  )

test('an Usher that only this machine reaches sends webhooks here, but not to itself', async () => {
  const said: string[] = []
  const usher = await start(config({ METRICS_PORT: '0' }), createLog('silent'), (message) => said.push(message))
  onTestFinished(usher.stop)
  key = usher.demo?.key ?? ''
  const record = recordOfRunningStack(dataDir)
  const ports = record === null ? [] : portsOf(record)
  expect(new Set(ports).size).toBe(5)
  expect(ports).toContain(Number(new URL(usher.url).port))
  expect(ports).toContain(Number(new URL(usher.metricsUrl ?? '').port))

  const endpoint = await receiver()
  const own = [...ports.map((port) => `http://127.0.0.1:${port}/`), ...everywhere(record?.postgrest?.port ?? 0)]
  expect(await sendTo(usher.url, [`${endpoint.url}/hooks`, ...own])).toEqual([null, ...own.map(() => OWN)])
  expect(said.join()).not.toContain('WEBHOOKS_TO_LOOPBACK')
})

test('an Usher that others reach sends none here, unless it is told to', async () => {
  const said: string[] = []
  const usher = await start(config({ HOST: '0.0.0.0' }), createLog('silent'), (message) => said.push(message))
  try {
    const endpoint = await receiver()
    expect(await sendTo(usher.url, [`${endpoint.url}/hooks`])).toEqual([NOT_HTTPS])
    expect(endpoint.connections()).toBe(0)
    expect(said.join()).not.toContain('WEBHOOKS_TO_LOOPBACK')
  } finally {
    await usher.stop()
  }

  const told = config({ HOST: '0.0.0.0', WEBHOOKS_TO_LOOPBACK: 'true' })
  const warned = await start(told, createLog('silent'), (message) => said.push(message))
  onTestFinished(warned.stop)
  expect(said.join('\n')).toMatch(/^Warning: WEBHOOKS_TO_LOOPBACK /m)
  const endpoint = await receiver()
  const { postgrest } = recordOfRunningStack(dataDir) ?? {}
  const urls = [`${endpoint.url}/hooks`, `http://localhost:${postgrest?.port}/`, `${warned.url}/health`]
  expect(await sendTo(warned.url, urls)).toEqual([null, OWN, OWN])
})

test('a courier beside a running Usher keeps away from its ports, and sends here only if all of it is for this machine', async () => {
  const stack = await startEmbeddedStack({ dataDir, progress: () => {} })
  onTestFinished(stack.stop)
  const log = createLog('silent')
  const app = await serveApp({ dataApiUrl: stack.dataApiUrl, jwtSecret: stack.jwtSecret, log })
  onTestFinished(app.close)
  key = await anotherKey(stack)
  const port = Number(new URL(app.url).port)
  const endpoint = await receiver()
  const { postgrest } = recordOfRunningStack(dataDir) ?? {}
  const urls = [`${endpoint.url}/hooks`, ...everywhere(postgrest?.port ?? 0), `http://[::1]:${postgrest?.adminPort}/`]

  const said: string[] = []
  async function outcomesWith(environment: NodeJS.ProcessEnv, urls: string[]) {
    const courier = await runCourier(config(environment), log, (message) => said.push(message))
    try {
      return await sendTo(app.url, urls)
    } finally {
      await courier.stop()
    }
  }

  expect(await outcomesWith({}, urls)).toEqual([null, ...urls.slice(1).map(() => OWN)])
  stack.note({ api: { host: '0.0.0.0', port, forThisMachine: false } })
  expect(await outcomesWith({}, [`${endpoint.url}/hooks`])).toEqual([NOT_HTTPS])
  expect(said).toEqual([])
  const told = { HOST: '0.0.0.0', WEBHOOKS_TO_LOOPBACK: 'true' }
  expect(await outcomesWith(told, [`${endpoint.url}/hooks`, `${app.url}/health`])).toEqual([null, OWN])
  expect(said.join()).toMatch(/^Warning: WEBHOOKS_TO_LOOPBACK /)
})

const anotherKey = (stack: EmbeddedStack) =>
  withDatabase(stack.databaseUrl, (client) => issueKey(client, { organisation: 'demo', name: 'Another', scopes }))
