// From a registration to the endpoint and the mailbox, in one running Usher: what is pending is sent, signed, and recorded as sent.
// Then it is stopped in the middle of sending, and other Ushers and couriers go on with its database. A stack of its own, since a courier
// delivers for everybody.

import { readFileSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import PostalMime, { type Email } from 'postal-mime'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { hasBrowser } from '../../scripts/support/browser.ts'
import { serveApp } from '../../scripts/support/serve-app.ts'
import { readConfig } from '../../src/cli/config.ts'
import { joinRunning, type Running, runCourier, start } from '../../src/cli/start.ts'
import { startHousekeeping } from '../../src/courier/housekeeping.ts'
import { createCourierRpc } from '../../src/gateway/courier-rpc.ts'
import { DataApi } from '../../src/gateway/data-api.ts'
import { createTokens } from '../../src/gateway/tokens.ts'
import { portsOf } from '../../src/local/run-record.ts'
import { type EmbeddedStack, findRunningStack, startEmbeddedStack } from '../../src/local/stack.ts'
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

// The story of an invoice order that nobody pays in time: confirmation, reminder, expiry, a payment that comes too late, the place offered
// to whoever waits, and their registration; over REST and in Studio. Every e-mail that it makes is read. Where time must pass, dates
// are set in the past, as an organiser could; the courier of this stack does the rest.
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()

test('an order that is not paid in time, and the place that it gives back', async () => {
  const { sql, next, unread, anotherCourierStarts } = await lookOn()
  const [buyer, waiting] = ['accounts@buyer.example', 'katherine@nasa.example']
  await sql(
    `update public.organisations set payment_instructions = E'DE75 5121 0800 1245 1261 99\\nBIC SOGEDEFF', accent_colour = '#8A1C3B'
     where slug = 'demo'`,
  )
  const event = (
    await send('POST', '/events', {
      name: 'Night of Numbers',
      starts_at: inDays(60),
      ends_at: inDays(61),
      timezone: 'Europe/Berlin',
      payment_due_days: 14,
    })
  ).body.data
  const type = (await send('POST', `/events/${event.id}/ticket-types`, { name: 'Seat', price: 4900, quantity: 1 })).body
    .data
  await send('POST', `/events/${event.id}/publish`)
  const buying = (name: string, email: string) => ({ ticket_type_id: type.id, name, email, payment_method: 'invoice' })

  // The order is confirmed.
  const registered = await send('POST', `/events/${event.id}/registrations`, buying('Grace Hopper', buyer))
  const { id: orderId, reference, payment_due_at: dueAt } = registered.body.data
  expect(Date.parse(dueAt) - Date.now()).toBeGreaterThan(13.9 * 86_400_000)
  const confirmation = await next(buyer)
  expect(confirmation.subject).toBe(`Your order ${reference}: Night of Numbers`)
  for (const part of [confirmation.text, confirmation.html]) {
    expect(part).toMatch(new RegExp(`Please pay €49\\.00 by .+, quoting the reference ${reference}\\.`))
    expect(part).toContain('DE75 5121 0800 1245 1261 99')
  }
  expect(confirmation.html).toContain('background-color:#8a1c3b')

  // Sold out: somebody waits.
  const early = await send(
    'POST',
    `/events/${event.id}/registrations`,
    buying('Dorothy Vaughan', 'dorothy@nasa.example'),
  )
  expect([early.status, early.body.error.code]).toEqual([409, 'sold_out'])
  const joined = await send('POST', `/events/${event.id}/waiting-list`, {
    ticket_type_id: type.id,
    name: 'Katherine Johnson',
    email: waiting,
  })
  const entryId = joined.body.data.id
  expect(joined.body.data).toMatchObject({ status: 'waiting', position: 1 })

  // The deadline comes near.
  await send('PATCH', `/orders/${orderId}`, { payment_due_at: inDays(1) })
  anotherCourierStarts()
  const reminder = await next(buyer)
  expect(reminder.subject).toMatch(/^Please pay by .+: Night of Numbers$/)
  expect(reminder.text).toContain('There is still €49.00 to pay')

  // It passes, and the place is held for whoever waits.
  await sql('update public.orders set payment_due_at = now() where id = $1', [orderId])
  anotherCourierStarts()
  const expired = await next(buyer)
  expect(expired.subject).toBe('Your order has been cancelled: Night of Numbers')
  expect(expired.text).toContain('Please do not make a payment now.')
  expect((await send('GET', `/orders/${orderId}`)).body.data).toMatchObject({
    status: 'cancelled',
    cancellation_reason: 'expired',
    amount_due: 0,
  })
  const offer = await next(waiting)
  expect(offer.subject).toBe('A place for you: Night of Numbers')
  expect(offer.text).toContain('Katherine Johnson: a place has become available')
  const late = await send('POST', `/orders/${orderId}/payments`, { amount: 4900 })
  expect([late.status, late.body.error.code]).toEqual([409, 'order_expired'])
  await expect(
    sql("insert into public.payments (order_id, amount, method) values ($1, 4900, 'invoice')", [orderId]),
  ).rejects.toThrow('has expired')
  const direct = await send(
    'POST',
    `/events/${event.id}/registrations`,
    buying('Dorothy Vaughan', 'dorothy@nasa.example'),
  )
  expect([direct.status, direct.body.error.code]).toEqual([409, 'sold_out'])

  // The offer is accepted, and paid in Studio.
  const accepted = await send('POST', `/waiting-list-entries/${entryId}/accept`, { payment_method: 'invoice' })
  expect(accepted.status).toBe(201)
  expect((await next(waiting)).subject).toBe(`Your order ${accepted.body.data.reference}: Night of Numbers`)
  await sql("insert into public.payments (order_id, amount, method) values ($1, 4900, 'bank_transfer')", [
    accepted.body.data.id,
  ])
  const both = [await next(waiting), await next(waiting)]
  const receipt = both.find(({ subject }) => subject === 'Payment received: Night of Numbers')
  expect(receipt?.text).toContain('We received your payment of €49.00')
  const ticket = both.find(({ subject }) => subject === 'Your ticket: Night of Numbers')
  const picture = ticket?.attachments.find(({ filename }) => filename === 'qr-code.png')
  const code = readPng(Buffer.from(picture?.content as ArrayBuffer))
  const link = /https?:\/\/\S+\/t\/\w+/.exec(ticket?.text ?? '')?.[0] ?? ''
  expect(await (await fetch(link)).text()).toContain('Katherine Johnson')

  // The event moves; asked for, its guests are told.
  const moved = await send('PATCH', `/events/${event.id}`, { venue: { city: 'Köln' }, notify: 'mailed' })
  expect(moved.body.effect).toMatchObject({ dry_run: false, orders: 1, attendees: 1, emails: 1, told: 1 })
  await sql("update public.emails set next_attempt_at = now() where kind = 'event_changed'")
  const changed = await next(waiting)
  expect(changed.subject).toBe('Event changed: Night of Numbers')
  expect(changed.text).toMatch(/Where – before +To be announced\nWhere – now +Köln/)
  const calendar = changed.attachments.find(({ filename }) => filename?.endsWith('.ics'))
  expect(Buffer.from(calendar?.content as ArrayBuffer).toString()).toMatch(/SEQUENCE:\d+/)
  expect((await send('POST', '/check-ins', { event_id: event.id, code })).status).toBe(200)

  // She wants no more of that.
  const off = /https?:\/\/\S+\/u\/\w+/.exec(changed.text ?? '')?.[0] ?? ''
  expect((await fetch(off, { method: 'POST' })).status).toBe(200)
  expect(await (await fetch(link)).text()).toContain('E-mails about changes: off')
  const renamed = await send('PATCH', `/events/${event.id}`, { name: 'Nights of Numbers', notify: 'everybody' })
  expect(renamed.body.effect).toMatchObject({ emails: 0, told: 0, not_told: [{ reason: 'switched_off', count: 1 }] })

  // Nobody got anything else, and the CRM heard of it all.
  for (const address of [buyer, waiting]) {
    expect(await unread(address)).toEqual([])
  }
  const types = (await send('GET', '/notifications?limit=100')).body.data
    .filter(({ data }: { data: { event_id?: string } }) => data.event_id === event.id)
    .map(({ type }: { type: string }) => type)
  expect(types).toEqual(
    expect.arrayContaining(['order.expired', 'waiting_list_entry.offered', 'waiting_list_entry.accepted']),
  )
})

/** Postgres, a second courier, and the mailboxes. */
async function lookOn() {
  const stack = await findRunningStack(dataDir)
  if (stack === null) throw new Error('the stack runs')
  const studio = new pg.Client({ connectionString: stack.databaseUrl })
  await studio.connect()
  const tokens = await createTokens({ secret: stack.jwtSecret })
  const rpc = createCourierRpc(new DataApi({ url: stack.dataApiUrl }, tokens), tokens)
  let housekeeping: { stop(): void } | undefined
  onTestFinished(async () => {
    housekeeping?.stop()
    await studio.end()
  })

  const parsed = new Map<string, Email>()
  const read = new Set<Email>()
  /** The e-mails to an address that were not read yet, the oldest first. */
  async function unread(address: string): Promise<Email[]> {
    for (const name of await readdir(join(dataDir, 'mail')).catch(() => [])) {
      // Under another name it is still being written.
      if (name.endsWith('.eml') && !parsed.has(name))
        parsed.set(name, await PostalMime.parse(readFileSync(join(dataDir, 'mail', name))))
    }
    return [...parsed.values()]
      .filter((email) => !read.has(email) && email.to?.some((mailbox) => mailbox.address === address))
      .sort((a, b) => `${a.date}`.localeCompare(`${b.date}`))
  }
  return {
    sql: async (text: string, values: unknown[] = []) => (await studio.query(text, values)).rows,
    unread,
    /** The next e-mail to an address. */
    async next(address: string): Promise<Email> {
      await expect.poll(async () => (await unread(address)).length).toBeGreaterThan(0)
      const [email] = (await unread(address)) as [Email]
      read.add(email)
      return email
    },
    /** What a courier does every ten seconds it does as it starts. */
    anotherCourierStarts() {
      housekeeping?.stop()
      housekeeping = startHousekeeping(rpc, config(), log)
    },
  }
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

  test('an Usher that others reach sends no webhooks here', async () => {
    const { url } = await another({ HOST: '0.0.0.0' })
    const receiver = await receiverOnly()
    expect(await sendTo(url, [`${receiver.url}/hooks`])).toEqual([NOT_HTTPS])
    expect(receiver.connections()).toBe(0)
    expect(said.join()).not.toContain('WEBHOOKS_TO_LOOPBACK')
  })

  test('unless it is told to', async () => {
    const { url } = await another({ HOST: '0.0.0.0', WEBHOOKS_TO_LOOPBACK: 'true' })
    expect(said.splice(0).join('\n')).toMatch(/^Warning: WEBHOOKS_TO_LOOPBACK /m)
    const receiver = await receiverOnly()
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
