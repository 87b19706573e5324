// From a registration to the endpoint and the mailbox, in one running Usher: what is pending is sent, signed, and recorded as sent.
// A stack of its own, since a courier delivers for everybody.

import { readFileSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import PostalMime from 'postal-mime'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { hasBrowser, openBrowser } from '../../scripts/support/browser.ts'
import { readConfig } from '../../src/config.ts'
import { createLog } from '../../src/process/log.ts'
import { type Running, start } from '../../src/start.ts'
import { makeDataDirectory } from '../support/data-directory.ts'
import { readPng } from '../support/qr.ts'
import { rest } from '../support/rest.ts'
import { startWebhookReceiver, status, type WebhookReceiver } from '../support/webhook-receiver.ts'

let usher: Running
let dataDir: string
let send: ReturnType<typeof rest>
let eventId: string
let ticketTypeId: string
beforeAll(async () => {
  dataDir = await makeDataDirectory()
  usher = await start(readConfig({ USHER_DATA_DIR: dataDir, PORT: '0' }), createLog('silent'), () => {})
  if (usher.demo === null) throw new Error('a first start has a demo')
  send = rest(usher.demo.key, usher.url)
  ;({ eventId, ticketTypeId } = usher.demo)
})
afterAll(async () => {
  await usher.stop()
  await rm(dataDir, { recursive: true, force: true })
})

const guest = (name = 'Mary Jackson') => ({ ticket_type_id: ticketTypeId, name, email: 'mary@example.com' })

const register = async (body: object = guest()) =>
  (await send('POST', `/events/${eventId}/registrations`, body)).body.data

async function endpoint(types: string[]) {
  const receiver = await startWebhookReceiver()
  onTestFinished(() => receiver.close())
  const { data } = (await send('POST', '/webhook-endpoints', { url: `${receiver.url}/hooks`, types })).body
  onTestFinished(async () => void (await send('DELETE', `/webhook-endpoints/${data.id}`)))
  return { receiver, id: data.id as string, secret: data.secret as string }
}

const arrived = async (receiver: WebhookReceiver, n: number) => {
  await expect.poll(() => receiver.received.length).toBeGreaterThanOrEqual(n)
  return receiver.received
}

const deliveriesOf = async (id: string) =>
  (await send('GET', `/webhook-deliveries?webhook_endpoint_id=${id}`)).body.data as { id: string; status: string }[]

const settled = async (id: string) => {
  await expect.poll(async () => (await deliveriesOf(id)).map((d) => d.status)).not.toContain('pending')
  return deliveriesOf(id)
}

test('an order that completes and a person who arrives are notified, signed, as the API has them', async () => {
  const { receiver, id, secret } = await endpoint(['order.completed', 'attendee.checked_in'])
  const order = await register()
  const [told] = await arrived(receiver, 1)
  expect(told?.verified(secret)).toEqual({
    type: 'order.completed',
    timestamp: expect.any(String),
    data: expect.objectContaining({ id: order.id, status: 'completed' }),
  })
  expect(JSON.parse(told?.body ?? '').data.attendees[0].ticket_code).toBeNull()

  await send('POST', '/check-ins', { event_id: eventId, code: order.attendees[0].ticket_code })
  const [, entered] = await arrived(receiver, 2)
  expect(entered?.verified(secret)).toMatchObject({
    type: 'attendee.checked_in',
    data: { id: order.attendees[0].id, checked_in_at: expect.any(String) },
  })
  expect(await settled(id)).toMatchObject([
    { status: 'delivered', attempts: 1, last_response: { status: 204, body: '' }, last_error: null },
    { status: 'delivered', attempts: 1, notification_id: told?.headers['webhook-id'] },
  ])
})

test('a redelivery is the same webhook, with the same id and body', async () => {
  const { receiver, id, secret } = await endpoint(['order.completed'])
  await register()
  await arrived(receiver, 1)
  const [delivery] = await settled(id)
  expect((await send('POST', `/webhook-deliveries/${delivery?.id}/redeliver`)).status).toBe(200)
  const [first, again] = await arrived(receiver, 2)
  expect(again?.headers['webhook-id']).toBe(first?.headers['webhook-id'])
  expect(again?.body).toBe(first?.body)
  expect(again?.verified(secret)).toEqual(first?.verified(secret))
})

test('after a rotation both secrets verify, and a test is sent like any other', async () => {
  const { receiver, id, secret } = await endpoint(['order.completed'])
  const { secret: next } = (await send('POST', `/webhook-endpoints/${id}/rotate-secret`, {})).body.data
  await send('POST', `/webhook-endpoints/${id}/test`)
  const [told] = await arrived(receiver, 1)
  for (const valid of [secret, next]) {
    expect(told?.verified(valid)).toMatchObject({ type: 'webhook_endpoint.test', data: { id, secret: null } })
  }
})

test('what the endpoint answers is in the log, and a failure is tried again', async () => {
  const { receiver, id } = await endpoint(['order.completed'])
  receiver.answerWith(status(503, { 'Retry-After': '3600' }, 'Busy'))
  await register()
  await arrived(receiver, 1)
  await expect
    .poll(async () => (await deliveriesOf(id))[0])
    .toMatchObject({ status: 'pending', attempts: 1, last_response: { status: 503, body: 'Busy' } })
  const [{ next_attempt_at: next } = { next_attempt_at: '' }] = (await deliveriesOf(id)) as never as {
    next_attempt_at: string
  }[]
  expect(Date.parse(next) - Date.now()).toBeGreaterThan(3_500_000)
})

test('an endpoint that is gone is disabled, and says why', async () => {
  const { receiver, id } = await endpoint(['order.completed'])
  receiver.answerWith(status(410))
  await register()
  await arrived(receiver, 1)
  await expect
    .poll(async () => (await send('GET', `/webhook-endpoints/${id}`)).body.data)
    .toMatchObject({ status: 'disabled', disabled_reason: 'It answered 410 Gone.' })
})

test('a ticket is e-mailed, and its code, scanned from the attached picture, lets its holder in', async () => {
  const order = await register(guest('Dorothy Vaughan'))
  const [attendee] = order.attendees
  await expect
    .poll(async () => (await send('GET', `/attendees/${attendee.id}`)).body.data.ticket_email)
    .toMatchObject({ status: 'sent', last_error: null })

  const listed = await (await fetch(`${usher.url}/mail`)).text()
  expect(listed).toContain('Dorothy Vaughan')
  const [name = ''] = (await readdir(join(dataDir, 'mail'))).sort().slice(-1)
  const page = await fetch(`${usher.url}/mail/${name}`)
  expect([page.status, page.headers.get('content-security-policy')]).toEqual([
    200,
    expect.stringContaining("default-src 'none'"),
  ])
  expect(await page.text()).toContain('src="data:image/png;base64,')
  const email = await PostalMime.parse(await (await fetch(`${usher.url}/mail/${name}/source`)).arrayBuffer())
  const picture = email.attachments.find(
    ({ mimeType, disposition }) => mimeType === 'image/png' && disposition === 'attachment',
  )
  const code = readPng(Buffer.from(picture?.content as ArrayBuffer))
  expect(code).toBe(attendee.ticket_code)
  expect((await send('POST', '/check-ins', { event_id: eventId, code })).status).toBe(200)
})

// Without a browser on this machine there is nobody to look.
test.skipIf(!hasBrowser)(
  'a ticket is shown whole in mail clients narrow and wide, bright and dark, and scans',
  async () => {
    const [attendee] = (await register(guest('Katherine Coleman Goble Johnson'))).attendees
    const sent = async () =>
      (await readdir(join(dataDir, 'mail'))).find((name) =>
        readFileSync(join(dataDir, 'mail', name), 'utf8').includes('Goble'),
      )
    await expect.poll(sent).toBeDefined()
    const browser = await openBrowser()
    onTestFinished(() => browser.close())
    for (const [width, colorScheme] of [
      [320, 'light'],
      [420, 'dark'],
      [900, 'light'],
    ] as const) {
      const page = await browser.newPage({ viewport: { width, height: 700 }, colorScheme })
      await page.goto(`${usher.url}/mail/${await sent()}`)
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
      expect(await page.getByText('Katherine Coleman Goble Johnson').isVisible()).toBe(true)
      expect(readPng(await page.screenshot({ fullPage: true }))).toBe(attendee.ticket_code)
      await page.close()
    }
    const code = attendee.ticket_code
    expect((await send('POST', '/check-ins', { event_id: eventId, code })).status).toBe(200)
  },
)

test('the mail preview is shown to this machine by its own name alone, and shows nothing but e-mails', async () => {
  const { hostname, port } = new URL(usher.url)
  const { request } = await import('node:http')
  const statusOf = (path: string, host: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      request({ hostname, port, path, headers: { Host: host } }, (res) => {
        res.resume()
        resolve(res.statusCode)
      })
        .on('error', reject)
        .end()
    })
  expect(await statusOf('/mail', `localhost:${port}`)).toBe(200)
  expect(await statusOf('/mail', 'evil.example.com')).toBe(404)
  for (const path of ['/mail/..%2Fsecrets.json', '/mail/..%2f..%2fetc%2fpasswd/source', '/mail/none.eml']) {
    expect(await statusOf(path, `localhost:${port}`)).toBe(404)
  }
})
