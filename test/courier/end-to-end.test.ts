// From a registration to the endpoint and the mailbox, in one running Usher: what is pending is sent, signed, and recorded as sent.
// Then it is stopped in the middle of sending, and other Ushers and couriers go on with its database. A stack of its own, since a courier
// delivers for everybody.

import { readFileSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import PostalMime, { type Email } from 'postal-mime'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { hasBrowser } from '../../scripts/support/browser.ts'
import { serveApp } from '../../scripts/support/serve-app.ts'
import { readConfig } from '../../src/cli/config.ts'
import { joinRunning, type Running, runCourier, start } from '../../src/cli/start.ts'
import { createOrganisation, issueKey, withDatabase } from '../../src/local/admin.ts'
import { portsOf } from '../../src/local/run-record.ts'
import { type EmbeddedStack, findRunningStack, startEmbeddedStack } from '../../src/local/stack.ts'
import { scopes } from '../../src/operations/operation.ts'
import { createLog } from '../../src/process/log.ts'
import { sharedBrowser } from '../support/browser.ts'
import { makeDataDirectory, recordOf } from '../support/data-directory.ts'
import { readPng } from '../support/qr.ts'
import { rest } from '../support/rest.ts'
import { hang, startWebhookReceiver, status, type WebhookReceiver } from '../support/webhook-receiver.ts'

const log = createLog('silent')
let usher: Running
let dataDir: string
let key: string
let send: ReturnType<typeof rest>
let eventId: string
let ticketTypeId: string
let usherSaid = ''
beforeAll(async () => {
  dataDir = await makeDataDirectory()
  usher = await start(config({ METRICS_PORT: '0' }), log, (message) => {
    usherSaid += message
  })
  if (usher.demo === null) throw new Error('a first start has a demo')
  ;({ key, eventId, ticketTypeId } = usher.demo)
  send = rest(key, usher.url)
})
afterAll(async () => {
  await usher?.stop()
  await rm(dataDir, { recursive: true, force: true })
})

const config = (environment: NodeJS.ProcessEnv = {}) =>
  readConfig({ USHER_DATA_DIR: dataDir, PORT: '0', ...environment })

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
  (await send('GET', `/webhook-deliveries?webhook_endpoint_id=${id}`)).body.data as {
    id: string
    status: string
    next_attempt_at: string
  }[]

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
    livemode: true,
    data: expect.objectContaining({ id: order.id, status: 'completed' }),
  })
  expect(JSON.parse(told?.body ?? '').data.attendees[0].ticket_code).toBeNull()

  await send('POST', '/check-ins', { event_id: eventId, code: order.attendees[0].ticket_code })
  const [, entered] = await arrived(receiver, 2)
  expect(entered?.verified(secret)).toMatchObject({
    type: 'attendee.checked_in',
    data: { id: order.attendees[0].id, checked_in_at: expect.any(String) },
  })
  const deliveries = await settled(id)
  expect(deliveries).toMatchObject([
    { status: 'delivered', attempts: 1, last_response: { status: 204, body: '' }, last_error: null },
    { status: 'delivered', attempts: 1, notification_id: told?.headers['webhook-id'] },
  ])

  // A redelivery is the same webhook; after a rotation both secrets verify, and a test is sent like any other.
  const { secret: next } = (await send('POST', `/webhook-endpoints/${id}/rotate-secret`, {})).body.data
  expect((await send('POST', `/webhook-deliveries/${deliveries[1]?.id}/redeliver`)).status).toBe(200)
  await arrived(receiver, 3)
  await send('POST', `/webhook-endpoints/${id}/test`)
  const [, , again, tried] = await arrived(receiver, 4)
  expect([again?.headers['webhook-id'], again?.body]).toEqual([told?.headers['webhook-id'], told?.body])
  for (const valid of [secret, next]) {
    expect(again?.verified(valid)).toMatchObject({ type: 'order.completed' })
    expect(tried?.verified(valid)).toMatchObject({ type: 'webhook_endpoint.test', data: { id, secret: null } })
  }
})

test('what the endpoint answers is in the log: a failure is tried again, and one that is gone is disabled', async () => {
  const [failing, gone] = [await endpoint(['order.completed']), await endpoint(['order.completed'])]
  failing.receiver.answerWith(status(503, { 'Retry-After': '3600' }, 'Busy'))
  gone.receiver.answerWith(status(410))
  await register()
  await arrived(failing.receiver, 1)
  await expect
    .poll(async () => (await deliveriesOf(failing.id))[0])
    .toMatchObject({ status: 'pending', attempts: 1, last_response: { status: 503, body: 'Busy' } })
  const [delivery] = await deliveriesOf(failing.id)
  expect(Date.parse(delivery?.next_attempt_at ?? '') - Date.now()).toBeGreaterThan(3_500_000)
  await expect
    .poll(async () => (await send('GET', `/webhook-endpoints/${gone.id}`)).body.data)
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

test('an e-mail of a test organisation is sent to nobody and can be read, and its webhooks say that they are tests', async () => {
  const { databaseUrl } = (await findRunningStack(dataDir)) ?? expect.unreachable()
  const testKey = await withDatabase(databaseUrl, async (client) => {
    await createOrganisation(client, { name: 'Trial', slug: 'trial', test: true })
    return issueKey(client, { organisation: 'trial', name: 'test', scopes })
  })
  const by = rest(testKey, usher.url)
  const receiver = await receiverOnly()
  await by('POST', '/webhook-endpoints', { url: `${receiver.url}/hooks`, types: ['order.completed'] })
  const event = { name: 'Trial', timezone: 'UTC', starts_at: '2027-05-01T17:00:00Z', ends_at: '2027-05-01T20:00:00Z' }
  const { id } = (await by('POST', '/events', event)).body.data
  const ticket = (await by('POST', `/events/${id}/ticket-types`, { name: 'Regular' })).body.data
  await by('POST', `/events/${id}/publish`)
  const registration = { ...guest('Annie Easley'), ticket_type_id: ticket.id }
  const [attendee] = (await by('POST', `/events/${id}/registrations`, registration)).body.data.attendees
  await expect
    .poll(async () => (await by('GET', `/attendees/${attendee.id}`)).body.data.ticket_email.status)
    .toBe('sent')
  const [listed] = (await by('GET', `/emails?attendee_id=${attendee.id}`)).body.data
  const { data } = (await by('GET', `/emails/${listed.id}`)).body
  expect(data).toMatchObject({
    status: 'sent',
    subject: expect.stringMatching(/^\[Test\] /),
    text: expect.stringMatching(/Annie/),
  })
  expect(readPng(Buffer.from(data.attachments[0].content, 'base64'))).toBe(attendee.ticket_code)
  expect(await (await fetch(`${usher.url}/mail`)).text()).not.toContain('Annie Easley')
  expect(JSON.parse((await arrived(receiver, 1))[0]?.body ?? '')).toMatchObject({ livemode: false })
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
    const page = await (await sharedBrowser()).newPage()
    onTestFinished(() => page.close())
    await page.goto(`${usher.url}/mail/${await sent()}`)
    for (const [width, colorScheme] of [
      [320, 'light'],
      [420, 'dark'],
      [900, 'light'],
    ] as const) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width, height: 700 })
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
      expect(await page.getByText('Katherine Coleman Goble Johnson').isVisible()).toBe(true)
      expect(readPng(await page.screenshot({ fullPage: true }))).toBe(attendee.ticket_code)
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

test('of orders that are not paid, buyers are reminded and the place goes to whoever waits, by e-mail', async () => {
  const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
  const dates = { starts_at: inDays(60), ends_at: inDays(61), timezone: 'Europe/Berlin', payment_due_days: 14 }
  const event = (await send('POST', '/events', { name: 'Night of Numbers', ...dates })).body.data
  const seat = { name: 'Seat', price: 4900, quantity: 2 }
  const type = (await send('POST', `/events/${event.id}/ticket-types`, seat)).body.data
  await send('POST', `/events/${event.id}/publish`)
  const buy = async (name: string, email: string) => {
    const body = { ticket_type_id: type.id, name, email, payment_method: 'invoice' }
    return (await send('POST', `/events/${event.id}/registrations`, body)).body.data
  }
  const late = await buy('Grace Hopper', 'late@buyer.example')
  const near = await buy('Mary Jackson', 'near@buyer.example')
  const confirmation = await nextEmailTo('late@buyer.example')
  const asked = (reference: string) => new RegExp(`^Your order ${reference} – €49\\.00 to pay by .+: Night of Numbers$`)
  expect(confirmation.subject).toMatch(asked(late.reference))
  expect(confirmation.text).toMatch(new RegExp(`Please pay €49\\.00 by .+, quoting the reference ${late.reference}\\.`))
  await nextEmailTo('near@buyer.example')
  const waiting = { ticket_type_id: type.id, name: 'Katherine Johnson', email: 'katherine@nasa.example' }
  const entry = (await send('POST', `/events/${event.id}/waiting-list`, waiting)).body.data

  await send('PATCH', `/orders/${near.id}`, { payment_due_at: inDays(1) })
  await send('PATCH', `/orders/${late.id}`, { payment_due_at: inDays(0), expire_now: true })
  expect((await nextEmailTo('near@buyer.example')).subject).toMatch(/^Please pay €\S+ by .+: Night of Numbers$/)
  expect((await nextEmailTo('late@buyer.example')).subject).toBe('Your order has been cancelled: Night of Numbers')
  expect((await send('GET', `/orders/${late.id}`)).body.data).toMatchObject({
    status: 'cancelled',
    cancellation_reason: 'expired',
  })
  expect((await nextEmailTo(waiting.email)).subject).toBe('A place for you: Night of Numbers')
  const accept = await send('POST', `/waiting-list-entries/${entry.id}/accept`, { payment_method: 'invoice' })
  expect(accept.status).toBe(201)
  expect((await nextEmailTo(waiting.email)).subject).toMatch(asked(accept.body.data.reference))
})

const read = new Set<string>()
/** The next e-mail to an address, in the order in which they were written. */
async function nextEmailTo(address: string): Promise<Email> {
  return vi.waitUntil(
    async () => {
      // Under another name it is still being written.
      for (const name of (await readdir(join(dataDir, 'mail'))).filter((file) => file.endsWith('.eml')).sort()) {
        if (read.has(name)) continue
        const email = await PostalMime.parse(readFileSync(join(dataDir, 'mail', name)))
        if (email.to?.every((mailbox) => mailbox.address !== address)) continue
        read.add(name)
        return email
      }
    },
    { timeout: 120_000, interval: 100 },
  )
}

// When webhooks may go to this machine: by default only where Usher serves this machine alone, and never to Usher's own ports, such as
// PostgREST, which answers any connection.
const OWN = "The address is not allowed: it is Usher's own."
const NOT_HTTPS = 'The address is not allowed: it must begin with https.'

/** What became of one webhook to each of these addresses: null where it was answered. */
async function sendTo(apiUrl: string, urls: string[]): Promise<(string | null)[]> {
  const send = rest(key, apiUrl)
  const ids = await Promise.all(
    urls.map(
      async (url) => (await send('POST', '/webhook-endpoints', { url, types: ['order.completed'] })).body.data.id,
    ),
  )
  expect((await send('POST', `/events/${eventId}/registrations`, guest())).status).toBe(201)
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

async function receiverOnly() {
  const receiver = await startWebhookReceiver()
  onTestFinished(() => receiver.close())
  return receiver
}

test('an Usher that only this machine reaches sends webhooks here, but not to itself', async () => {
  const record = recordOf(dataDir)
  const ports = portsOf(record)
  expect(new Set(ports).size).toBe(5)
  expect(ports).toContain(Number(new URL(usher.url).port))
  expect(ports).toContain(Number(new URL(usher.metricsUrl ?? '').port))

  const receiver = await receiverOnly()
  const own = [...ports.map((port) => `http://127.0.0.1:${port}/`), ...everywhere(record.postgrest?.port ?? 0)]
  expect(await sendTo(usher.url, [`${receiver.url}/hooks`, ...own])).toEqual([null, ...own.map(() => OWN)])
  expect(usherSaid).not.toContain('WEBHOOKS_TO_LOOPBACK')
})

describe('once it has stopped', () => {
  let stack: EmbeddedStack
  let app: Awaited<ReturnType<typeof serveApp>>
  const said: string[] = []

  /** What it breaks off: a webhook that the endpoint has not answered. */
  let brokenOff: { receiver: WebhookReceiver; id: string }
  beforeAll(async () => {
    const receiver = await startWebhookReceiver()
    receiver.answerWith(hang)
    const hooks = { url: `${receiver.url}/hooks`, types: ['order.completed'] }
    brokenOff = { receiver, id: (await send('POST', '/webhook-endpoints', hooks)).body.data.id }
    await register()
    await vi.waitUntil(() => receiver.received.length > 0, { timeout: 120_000 })
    // Had it waited for the endpoint, which may take fifteen seconds, there would be an attempt that failed.
    await usher.stop()

    stack = await startEmbeddedStack({ dataDir, progress: () => {} })
    app = await serveApp({ dataApiUrl: stack.dataApiUrl, jwtSecret: stack.jwtSecret, log })
    send = rest(key, app.url)
  })
  afterAll(async () => {
    await brokenOff?.receiver.close()
    await app?.close()
    await stack?.stop()
  })

  /** Another Usher on the database that runs, as it is told. */
  async function another(environment: NodeJS.ProcessEnv = {}) {
    const started = await start(config(environment), log, (message) => said.push(message), undefined, joinRunning)
    onTestFinished(started.stop)
    return started
  }

  test('what the stop broke off is sent again by the next start, as if it had not been tried', async () => {
    const { receiver, id } = brokenOff
    receiver.answerWith(status(204))
    await another()
    await arrived(receiver, 2)
    await expect.poll(() => deliveriesOf(id)).toMatchObject([{ status: 'delivered', attempts: 1, last_error: null }])
    expect((await send('GET', `/webhook-endpoints/${id}`)).body.data).toMatchObject({ failing_since: null })
    const [one, two] = receiver.received
    expect(two?.headers['webhook-id']).toBe(one?.headers['webhook-id'])
    await send('DELETE', `/webhook-endpoints/${id}`)
  })

  test('an Usher that others reach sends no webhooks here, unless it is told to', async () => {
    const receiver = await receiverOnly()
    const open = await another({ HOST: '0.0.0.0' })
    expect(await sendTo(open.url, [`${receiver.url}/hooks`])).toEqual([NOT_HTTPS])
    expect(receiver.connections()).toBe(0)
    expect(said.join()).not.toContain('WEBHOOKS_TO_LOOPBACK')
    await open.stop()

    const { url } = await another({ HOST: '0.0.0.0', WEBHOOKS_TO_LOOPBACK: 'true' })
    expect(said.splice(0).join('\n')).toMatch(/^Warning: WEBHOOKS_TO_LOOPBACK /m)
    const { postgrest } = recordOf(dataDir)
    const urls = [`${receiver.url}/hooks`, `http://localhost:${postgrest?.port}/`, `${url}/health`]
    expect(await sendTo(url, urls)).toEqual([null, OWN, OWN])
  })

  test('a courier beside a running Usher keeps away from its ports, and sends here only if all of it is for this machine', async () => {
    const port = Number(new URL(app.url).port)
    const receiver = await receiverOnly()
    const { postgrest } = recordOf(dataDir)
    const urls = [`${receiver.url}/hooks`, ...everywhere(postgrest?.port ?? 0), `http://[::1]:${postgrest?.adminPort}/`]
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
    expect(await outcomesWith({}, [`${receiver.url}/hooks`])).toEqual([NOT_HTTPS])
    expect(said).toEqual([])
    const told = { HOST: '0.0.0.0', WEBHOOKS_TO_LOOPBACK: 'true' }
    expect(await outcomesWith(told, [`${receiver.url}/hooks`, `${app.url}/health`])).toEqual([null, OWN])
    expect(said.join()).toMatch(/^Warning: WEBHOOKS_TO_LOOPBACK /)
  })
})
