// What is logged: enough to find a request again, and nothing of what was in it. An app of the file's own logs everything
// it can, at the most talkative level.

import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import express from 'express'
import { expect, inject, onTestFinished, test } from 'vitest'
import { listenOnLoopback } from '../../scripts/support/listen.ts'
import { createKey, prefixOf } from '../../src/gateway/api-key.ts'
import { logError, logRequests, noteRoute } from '../../src/http/middleware/log-requests.ts'
import { createLog } from '../../src/process/log.ts'
import { studio } from '../support/database.ts'
import { jsonHeaders, post, toolCall } from '../support/mcp.ts'
import { createOrganisation } from '../support/organisation.ts'
import { createOrganiser } from '../support/organiser.ts'
import { ownApp } from '../support/own-app.ts'
import { rest } from '../support/rest.ts'

type Line = Record<string, unknown> & { request_id?: string; path?: string; status?: number; code?: string }

/** A log into memory, and what it holds. A line is written after the answer was sent: whoever reads says how many to wait for. */
function memory() {
  let text = ''
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString()
      done()
    },
  })
  const read = () => text.split('\n').filter(Boolean)
  return {
    log: createLog('trace', destination),
    async lines(count: number): Promise<Line[]> {
      await expect.poll(() => read().length).toBeGreaterThanOrEqual(count)
      return read().map((line) => JSON.parse(line) as Line)
    },
    text: () => text,
  }
}

async function arrange(dataApiUrl = inject('dataApiUrl')) {
  const kept = memory()
  const { url } = await ownApp({ log: kept.log, dataApiUrl })
  const { organisation, event, key } = await createOrganiser()
  return { ...kept, url, organisation, event, key, send: rest(key, url) }
}

const email = 'mary.jackson@example.com'
const guestName = 'Mary Winston Jackson'

test('registrations, check-ins and failures leave no key, token, address, name or code in the log', async () => {
  const it = await arrange()
  const { key, url, event, send } = it
  const guest = { ticket_type_id: event.ticketTypeId, name: guestName, email }
  const unknown = createKey()

  const { body } = await send('POST', `/events/${event.id}/registrations`, guest, { 'Idempotency-Key': email })
  const code: string = body.data.attendees[0].ticket_code
  const answers = [
    await send('POST', '/check-ins', { event_id: event.id, code }),
    await send('POST', '/check-ins', { event_id: event.id, code }),
    await send('POST', '/check-ins', { event_id: event.id, code: email }),
    await send('POST', `/events/${event.id}/registrations`, { ...guest, [email]: true }),
    await send(
      'POST',
      `/events/${event.id}/registrations`,
      { ...guest, name: 'Dorothy' },
      { 'Idempotency-Key': email },
    ),
    await send('POST', `/events/${event.id}/registrations`, `{"email":"${email}"`),
    await send('GET', `/events?email=${email}&key=${key}`),
    await send('GET', `/nowhere?email=${encodeURIComponent(email)}`),
    await send('DELETE', `/me?access_token=${key}`),
    await rest(unknown, url)('GET', '/me'),
    await rest(`${key}x`, url)('GET', '/me'),
  ]
  const overMcp = [
    await post(toolCall('register_attendee', { event_id: event.id, ...guest }), jsonHeaders(key), { apiUrl: url }),
    await post(toolCall('check_in', { event_id: event.id, code }), jsonHeaders(key), { apiUrl: url }),
    await post(toolCall('register_attendee', { email }), jsonHeaders(key), { apiUrl: url }),
    await post(`{"email":"${email}"`, jsonHeaders(key), { apiUrl: url }),
  ]
  await studio.query('update public.api_keys set revoked_at = now() where prefix = $1', [prefixOf(key)])
  answers.push(await send('GET', '/me'))

  const lines = await it.lines(1 + answers.length + overMcp.length)
  expect(lines).toHaveLength(1 + answers.length + overMcp.length)
  for (const line of lines) expect(line.request_id, JSON.stringify(line)).toMatch(/^[A-Za-z0-9._~-]+$/)
  const text = it.text()
  for (const secret of [
    key,
    prefixOf(key),
    unknown,
    'eyJ',
    email,
    encodeURIComponent(email),
    guestName,
    code,
    'Bearer',
  ]) {
    expect(text).not.toContain(secret)
  }
})

test("what is logged by mistake is blanked where its name says that it is nobody else's business", async () => {
  const { log, lines, text } = memory()
  const names = ['authorization', 'headers', 'key', 'token', 'email', 'body']
  log.info({ caller: Object.fromEntries(names.map((name) => [name, 'a secret'])) }, 'by mistake')
  const [line] = await lines(1)
  expect(line?.caller).toEqual(Object.fromEntries(names.map((name) => [name, '[Redacted]'])))
  expect(text()).not.toContain('a secret')
})

test('of an error the log has code and message, and nothing of the details that repeat values', async () => {
  const { log, lines, text } = memory()
  const cause = {
    code: '23505',
    message: 'duplicate key',
    details: `Key (email)=(${email}) already exists.`,
    hint: email,
  }
  log.error({ err: new Error('not written', { cause }) }, 'failed')
  const [line] = await lines(1)
  expect(line?.err).toMatchObject({ message: 'not written', cause: { code: '23505', message: 'duplicate key' } })
  expect(text()).not.toContain(email)
})

test('a line says which request it was, what came of it, how long it took, and who called, by id', async () => {
  const { organisation, send, lines } = await arrange()
  await send('GET', '/events?status=published', undefined, { 'X-Request-Id': 'first' })
  await send('GET', '/events/launch', undefined, { 'X-Request-Id': 'second' })

  const [first, second] = await lines(2)
  expect(first).toMatchObject({
    request_id: 'first',
    method: 'GET',
    path: '/api/v1/events',
    status: 200,
    operation: 'list_events',
    duration_ms: expect.any(Number),
    organisation_id: organisation.id,
    api_key_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
  })
  expect(first).not.toHaveProperty('code')
  expect(second).toMatchObject({ request_id: 'second', status: 422, code: 'validation_failed' })
})

const eventId = '01a1fa45-8fac-7c28-a535-aaa9447abaa9'

test.each([
  ['GET', `/api/v1/events/${eventId}`, { path: '/api/v1/events/{event_id}', event_id: eventId }],
  ['GET', `/api/v1/events/${email}`, { path: '/api/v1/events/{event_id}' }],
  ['GET', `/api/v1/attendees/${email}/ticket.png`, { path: '/api/v1/attendees/{attendee_id}/ticket.png' }],
  ['PUT', `/api/v1/orders/${email}`, { path: '/api/v1/orders/{order_id}' }],
  ['GET', `/api/v1/${email}`, {}],
  ['GET', `/api/v1/events/${email}%E0%A4%A`, {}],
  ['GET', `/${email}`, {}],
  ['POST', `/api/mcp/${email}`, {}],
  ['GET', `/docs/${email}`, {}],
  ['GET', '/docs', { path: '/docs' }],
  ['GET', '/openapi.json?email=x', { path: '/openapi.json' }],
  ['GET', `/mail/${email}`, { path: '/mail/{name}' }],
  ['POST', `/webhooks/postmark?secret=${email}`, { path: '/webhooks/postmark' }],
  ['POST', `/webhooks/postmark/${email}`, {}],
  ['PROPFIND', `/api/v1/orders/${email}`, { method: 'other', path: '/api/v1/orders/{order_id}' }],
])('%s %s is logged by the pattern of its path, and by identifiers that are some', async (method, path, expected) => {
  const kept = memory()
  const directory = await mkdtemp(join(tmpdir(), 'usher-mail-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const { url } = await ownApp({
    log: kept.log,
    mailFolder: directory,
    postmark: { secret: 'a-secret-of-the-test', rpc: async () => null },
  })
  const key = await (await createOrganisation()).key()
  // Not fetch, which changes paths.
  const received = await sendRaw(
    url,
    `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\nConnection: close\r\n\r\n`,
  )
  expect(received).toMatch(/^HTTP/)
  const [line] = await kept.lines(1)
  const { path: logged, event_id, method: verb } = line ?? {}
  expect({ path: logged, event_id, method: verb }).toEqual({
    path: undefined,
    event_id: undefined,
    method,
    ...expected,
  })
  expect(kept.text()).not.toContain(email)
})

test.each([
  ['a parameter', email, email],
  ['a parameter in percent-encoding', encodeURIComponent(email), email],
  ['what cannot be decoded', '%E0%A4%A', '%E0%A4%A'],
])('an error that repeats %s of the path is logged without it', async (_what, sent, repeated) => {
  const kept = memory()
  const app = express()
  app.use(logRequests(kept.log))
  app.use((req, res) => {
    noteRoute(req, res, '/orders/{order_id}')
    const cause = new Error(`cannot open orders/${repeated}`)
    logError(req, res, new Error(`no such file: ${repeated}`, { cause }), 'failed')
    res.status(500).end()
  })
  const { url, close } = await listenOnLoopback(createServer(app))
  onTestFinished(close)
  await sendRaw(url, `GET /orders/${sent} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
  const [line] = await kept.lines(2)
  expect(line).toMatchObject({ err: { message: 'no such file: …', cause: { message: 'cannot open orders/…' } } })
  expect(kept.text()).not.toContain(repeated)
})

test('a tool call is logged under the name of its operation', async () => {
  const { url, key, lines } = await arrange()
  await post(toolCall('list_events'), jsonHeaders(key), { apiUrl: url })
  expect(await lines(1)).toMatchObject([{ path: '/api/mcp', status: 200, operation: 'list_events' }])
})

test('the name of a tool there is not is whatever a caller sent, and stays out of the log', async () => {
  const { url, key, lines, text } = await arrange()
  await post(toolCall(email), jsonHeaders(key), { apiUrl: url })
  await post(toolCall(key), jsonHeaders(key), { apiUrl: url })
  expect(await lines(2)).toHaveLength(2)
  expect(text()).not.toContain(email)
  expect(text()).not.toContain(prefixOf(key))
})

test('a database that cannot be reached is an error in the log, without the token that was sent to it', async () => {
  const { key, send, lines, text } = await arrange('http://127.0.0.1:9')
  const { status, body } = await send('GET', '/me', undefined, { 'X-Request-Id': 'no-database' })
  expect([status, body.error.code, body.error.retryable]).toEqual([503, 'temporarily_unavailable', true])

  const logged = await lines(2)
  for (const line of logged) expect(line.request_id).toBe('no-database')
  expect(logged.some(({ level }) => Number(level) >= 50)).toBe(true)
  for (const secret of [key, 'eyJ', 'Bearer']) expect(text()).not.toContain(secret)
})

test.each([
  ['CR LF', 'scan-1\r\n{"request_id":"forged","status":200}'],
  ['a bare LF', 'scan-1\n{"request_id":"forged","status":200}'],
  ['a bare CR', 'scan-1\r{"request_id":"forged","status":200}'],
  ['CR LF and a blank, once the folding of a long header', 'scan-1\r\n {"request_id":"forged","status":200}'],
  ['a NUL', 'scan-1\u0000forged'],
  ['an escape sequence', 'scan-1\u001b[31mforged'],
])('a line cannot be forged by an X-Request-Id with %s', async (_what, id) => {
  const { url, key, lines, text } = await arrange()
  const received = await sendRaw(
    url,
    `GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\nX-Request-Id: ${id}\r\nConnection: close\r\n\r\n`,
  )
  expect(received).toMatch(/^HTTP\/1\.1 (200|400) /)
  const logged = await lines(received.startsWith('HTTP/1.1 200') ? 1 : 0)
  expect(text()).not.toContain('forged')
  for (const line of logged) expect(line.request_id).toMatch(/^(scan-1|[0-9a-f-]{36})$/)
})

/** Bytes as they are: no HTTP library would send such headers. */
async function sendRaw(url: string, request: string): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.write(request)
  return text(socket)
}

test('a key that is sent as the id of a request stays out of the log and of the answer', async () => {
  const it = await arrange()
  const answer = await rest(it.key, it.url)('GET', '/me', undefined, { 'X-Request-Id': it.key })
  expect(answer.status).toBe(200)
  await it.lines(1)
  expect(it.text()).not.toContain(prefixOf(it.key))
})

test('a proxy in front without TRUST_PROXY is mentioned once, and not its callers', async () => {
  const forwarded = { headers: { 'X-Forwarded-For': '203.0.113.7' } }
  const warnings = async (trustProxy: boolean | number) => {
    const { log, lines, text } = memory()
    const { url } = await ownApp({ log, trustProxy })
    await fetch(`${url}/health`)
    for (let i = 0; i < 2; i++) await fetch(`${url}/health`, forwarded)
    const logged = await lines(3)
    await expect.poll(() => text().match(/"msg":"request"/g)).toHaveLength(3)
    expect(text()).not.toContain('203.0.113.7')
    return logged.filter(({ level }) => level === 40 || level === 'warn').map(({ msg }) => msg)
  }
  expect(await warnings(false)).toEqual([expect.stringContaining('TRUST_PROXY is not set')])
  expect(await warnings(1)).toEqual([])
})
