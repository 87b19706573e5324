// A stop in the middle of sending: a delivery that an endpoint has not answered is released, not counted as a failed attempt, and
// sent by the next courier at once.

import { rm } from 'node:fs/promises'
import { expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { createLog } from '../../src/process/log.ts'
import { type Running, start } from '../../src/start.ts'
import { makeDataDirectory } from '../support/data-directory.ts'
import { rest } from '../support/rest.ts'
import { hang, startWebhookReceiver, status } from '../support/webhook-receiver.ts'

test('what a stop breaks off is sent again by the next start, as if it had not been tried', async () => {
  const dataDir = await makeDataDirectory()
  let usher: Running | undefined
  const begin = async () => {
    usher = await start(readConfig({ USHER_DATA_DIR: dataDir, PORT: '0' }), createLog('silent'), () => {})
    return usher
  }
  const end = async () => {
    await usher?.stop()
    usher = undefined
  }
  onTestFinished(async () => {
    await end()
    await rm(dataDir, { recursive: true, force: true })
  })
  const receiver = await startWebhookReceiver()
  onTestFinished(() => receiver.close())
  receiver.answerWith(hang)

  const { demo, url } = await begin()
  if (demo === null) throw new Error('a first start has a demo')
  const hooks = { url: `${receiver.url}/hooks`, types: ['order.completed'] }
  const endpoint = (await rest(demo.key, url)('POST', '/webhook-endpoints', hooks)).body.data
  const guest = { ticket_type_id: demo.ticketTypeId, name: 'Mary Jackson', email: 'mary@example.com' }
  await rest(demo.key, url)('POST', `/events/${demo.eventId}/registrations`, guest)
  await expect.poll(() => receiver.received.length).toBe(1)

  // Had it waited for the endpoint, which may take fifteen seconds, there would be an attempt that failed.
  await end()

  receiver.answerWith(status(204))
  const again = await begin()
  const send = rest(demo.key, again.url)
  await expect.poll(() => receiver.received.length).toBe(2)
  const deliveries = async () => (await send('GET', `/webhook-deliveries?webhook_endpoint_id=${endpoint.id}`)).body.data
  await expect.poll(deliveries).toMatchObject([{ status: 'delivered', attempts: 1, last_error: null }])
  expect((await send('GET', `/webhook-endpoints/${endpoint.id}`)).body.data).toMatchObject({ failing_since: null })
  const [one, two] = receiver.received
  expect(two?.headers['webhook-id']).toBe(one?.headers['webhook-id'])
})
