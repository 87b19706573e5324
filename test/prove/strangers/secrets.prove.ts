// `usher start` at LOG_LEVEL=trace, through a story with everything that is secret or personal in it, also where it does not belong: what
// the API, the courier, PostgREST and Postgres then have in their logs is searched for it.

import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, expect, test } from 'vitest'
import { createOrganisation, issueKey } from '../../../src/local/admin.ts'
import { scopes } from '../../../src/operations/operation.ts'
import { cleanUp, startUsher, temporaryFolder, usher } from '../../cli/support.ts'
import { codeGrant, decide, Jar, refreshGrant, walkToConsent } from '../../http/oauth/walk.ts'
import { copyDataDirectory } from '../../support/data-directory.ts'
import { Person } from '../../support/person.ts'
import { startWebhookReceiver, status } from '../../support/webhook-receiver.ts'
import { send } from './ask.ts'

afterAll(cleanUp)

test('nothing secret or personal is in any log', async ({ task }) => {
  const dataDir = await copyDataDirectory(temporaryFolder())
  const env = {
    LOG_LEVEL: 'trace',
    LOG_FORMAT: 'json',
    WEBHOOKS_TO_LOOPBACK: 'true',
    MAIL_FROM: 'tickets@usher.example',
  }
  const { url, stdout, stderr } = await startUsher({ dataDir, env })
  const database = new pg.Client({ connectionString: (await usher(['db-url'], dataDir)).stdout.trim() })
  await database.connect()
  const receiver = await startWebhookReceiver()
  try {
    const secrets = await tellStory(url, database, receiver)
    // The last lines are written once the courier has come to them.
    await expect.poll(async () => (await readdir(join(dataDir, 'mail'))).length).toBeGreaterThan(1)
    const logs: Record<string, string> = { stdout: stdout(), stderr: stderr() }
    for (const file of ['postgres.log', 'postgrest.log']) logs[file] = await readFile(join(dataDir, file), 'utf8')
    expect(logs.stderr?.match(/"msg":"request"/g)?.length).toBeGreaterThan(30)

    const found = Object.entries(logs).flatMap(([log, text]) =>
      Object.entries(secrets).flatMap(([what, secret]) => {
        const forms = [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64').replace(/=+$/, '')]
        return forms.some((form) => text.includes(form)) ? [`${what} in ${log}: ${lineWith(text, forms)}`] : []
      }),
    )
    expect(found).toEqual([])
    const bytes = Object.values(logs).reduce((sum, text) => sum + text.length, 0)
    task.meta.figures = `${Object.keys(secrets).length} secrets in ${bytes} bytes of logs`
  } finally {
    await receiver.close()
    await database.end()
  }
})

const lineWith = (text: string, forms: string[]) =>
  text
    .split('\n')
    .find((line) => forms.some((form) => line.includes(form)))
    ?.slice(0, 300)

type Secrets = Record<string, string>

async function tellStory(
  url: string,
  database: pg.Client,
  receiver: Awaited<ReturnType<typeof startWebhookReceiver>>,
): Promise<Secrets> {
  await createOrganisation(database, { name: 'Story', slug: 'story', plan: 'enterprise' })
  const issue = (confirmations: 'asked' | 'none') =>
    issueKey(database, { organisation: 'story', name: 'story', scopes, confirmations })
  const [key, askingKey] = [await issue('none'), await issue('asked')]
  const personKey = await issueKey(database, { organisation: 'story', name: 'story', scopes, kind: 'person' })
  const guest = { name: 'Wilhelmina Ostrogorska', email: 'wilhelmina@private.example', company: 'Quietude Holdings' }
  const secrets: Secrets = { key, askingKey, personKey, beginning: key.slice(0, 19), ...guest, jwt: 'eyJ' }
  const call = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const { text } = await send(url, key, { method, path: `/api/v1${path}`, body, headers })
    return text.startsWith('{') ? (JSON.parse(text).data ?? {}) : {}
  }
  const mcp = (token: string, name: string, args: object, path = '/api/mcp') =>
    send(url, token, {
      method: 'POST',
      path,
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } },
    })

  const event = await call('POST', '/events', {
    name: 'Soiree',
    starts_at: '2030-06-01T18:00:00Z',
    ends_at: '2030-06-01T23:00:00Z',
    timezone: 'UTC',
  })
  const type = await call('POST', `/events/${event.id}/ticket-types`, { name: 'Seat', price: 4900 })
  await call('POST', `/events/${event.id}/publish`)
  const endpoint = await call('POST', '/webhook-endpoints', {
    url: `${receiver.url}/hooks/path-of-the-receiver`,
    types: ['order.completed', 'attendee.checked_in'],
  })
  secrets.webhookSecret = endpoint.secret
  secrets.pathOfReceiver = 'path-of-the-receiver'
  secrets.nextWebhookSecret = (await call('POST', `/webhook-endpoints/${endpoint.id}/rotate-secret`, {})).secret

  const order = await call(
    'POST',
    `/events/${event.id}/registrations`,
    { ticket_type_id: type.id, ...guest, payment_method: 'invoice' },
    { 'Idempotency-Key': guest.email },
  )
  const [attendee] = order.attendees
  secrets.ticketCode = attendee.ticket_code
  secrets.ticketToken = String(attendee.ticket_url).split('/').at(-1) as string
  // The first is refused by the receiver, which repeats what it was sent.
  receiver.answerWith((response, received) => status(500, {}, received.body)(response, received))
  await call('POST', `/orders/${order.id}/payments`, { amount: 4900, external_reference: 'INV-of-Wilhelmina' })
  secrets.paymentReference = 'INV-of-Wilhelmina'
  await expect.poll(() => receiver.received.length).toBeGreaterThan(0)
  receiver.answerWith(status(204))
  const orderLink = await database.query(
    'select private.order_token(o) as token from public.orders o where o.id = $1',
    [order.id],
  )
  secrets.orderToken = orderLink.rows[0].token
  for (const path of [`/t/${secrets.ticketToken}`, `/o/${secrets.orderToken}`, `/o/${secrets.orderToken}/tickets`])
    await send(url, undefined, { method: 'GET', path })
  for (const code of [secrets.ticketCode, secrets.ticketCode, guest.email])
    await call('POST', '/check-ins', { event_id: event.id, code })
  await call('POST', '/check-ins/batch', {
    event_id: event.id,
    scans: [{ scan_id: guest.name, code: secrets.ticketCode, scanned_at: '2030-06-01T18:00:00Z' }],
  })
  await call('GET', `/attendees?email=${guest.email}&search=${encodeURIComponent(guest.name)}`)
  await call('GET', `/people?email=${guest.email}`)
  const link = await call('POST', '/exports/attendees', { event_id: event.id })
  secrets.exportToken = String(link.url).split('/').at(-1) as string
  const download = await send(url, undefined, { method: 'GET', path: new URL(link.url).pathname })
  expect(download.status, download.text).toBeLessThan(400)

  // What does not belong there.
  for (const path of [
    `/events?key=${key}`,
    `/${key}`,
    `/events/${key}`,
    `/attendees/${guest.email}`,
    `/events/${encodeURIComponent(guest.name)}/publish`,
  ]) {
    await call('GET', path, undefined, { 'X-Request-Id': key })
  }
  await call('POST', '/check-ins', { event_id: event.id, code: 'x', key, email: guest.email })
  await call('POST', `/events/${event.id}/registrations`, {
    ticket_type_id: type.id,
    name: guest.email,
    email: guest.name,
    [key]: key,
  })
  await send(url, `${key}x`, {
    method: 'GET',
    path: '/api/v1/me',
    headers: { Cookie: `key=${key}`, Referer: `${url}/?key=${key}` },
  })
  await mcp(key, key, { [guest.email]: key })
  await mcp(key, 'get_attendee', { attendee: guest.email })
  await mcp(key, 'get_attendee', { attendee: `${guest.name} the second` })
  for (const path of [
    `/t/${key}`,
    `/u/${key}`,
    `/o/${key}`,
    `/x/${key}`,
    `/confirm/${key}`,
    `/oauth/auth?client_id=${key}&login_hint=${guest.email}`,
    `/${guest.email}`,
  ]) {
    await send(url, undefined, { method: 'GET', path })
  }
  await send(url, undefined, {
    method: 'POST',
    path: '/oauth/token',
    body: { grant_type: 'authorization_code', code: key, email: guest.email },
  })
  await database
    .query('insert into public.orders (event_id, name, email) values ($1, $2, $3)', [
      event.id,
      guest.name,
      'no address',
    ])
    .catch(() => {})
  await database.query(`select '${guest.email}'::uuid`).catch(() => {})

  // A client signs in, renews, asks for what a person confirms; then its grant is ended.
  const walk = await walkToConsent(personKey, { jar: new Jar(url) })
  const answer = await decide(walk, { scope: [...scopes] })
  secrets.authorisationCode = answer.searchParams.get('code') as string
  secrets.codeVerifier = walk.verifier
  const first = await codeGrant(walk, answer)
  secrets.accessToken = first.body.access_token as string
  secrets.refreshToken = first.body.refresh_token as string
  await mcp(secrets.accessToken, 'list_attendees', {}, '/api/mcp/connect')
  const renewed = await refreshGrant(walk, secrets.refreshToken)
  secrets.nextAccessToken = renewed.body.access_token as string
  secrets.nextRefreshToken = renewed.body.refresh_token as string
  await refreshGrant(walk, `${secrets.refreshToken}x`)
  await codeGrant(walk, answer)
  for (const [name, value] of walk.jar.cookies) secrets[`cookie ${name}`] = value
  const asked = JSON.parse((await mcp(askingKey, 'erase_person', { email: guest.email, names: [guest.name] })).text)
  const { url: page } = JSON.parse(asked.result.content[0].text).error.details
  const person = new Person(url, personKey)
  await person.confirm(page)
  for (const [name, value] of person.jar.cookies) secrets[`cookie of the person ${name}`] = value
  await mcp(askingKey, 'erase_person', { email: guest.email, names: [guest.name] })
  for (const [what, secret] of Object.entries(secrets)) {
    if (typeof secret !== 'string' || secret.length < 3) throw new Error(`the story has no ${what}`)
  }
  return secrets
}
