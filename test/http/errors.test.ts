// What goes wrong before any operation is reached: the table of HTTP errors, over REST. Nothing a caller sends is answered
// with a 500 or a stack trace.

import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { operations } from '../../src/operations/index.ts'
import type { Operation } from '../../src/operations/operation.ts'
import { createOrganisation, type TestEvent } from '../support/organisation.ts'
import { type RestAnswer, rest } from '../support/rest.ts'

const maximumBytes = 256 * 1024
const json = { 'Content-Type': 'application/json' }

let key: string
let event: TestEvent
beforeAll(async () => {
  const organisation = await createOrganisation()
  key = await organisation.key()
  event = await organisation.event()
})

const send = (...request: Parameters<ReturnType<typeof rest>>) => rest(key)(...request)
const codeOf = ({ status, body }: RestAnswer): [number, string] => [status, body.error.code]

const guest = () => ({ ticket_type_id: event.ticketTypeId, name: 'Mary Jackson', email: 'mary@example.com' })
const register = (body: unknown, headers?: Record<string, string>) =>
  send('POST', `/events/${event.id}/registrations`, body, headers)

async function sendBytes(body: Uint8Array<ArrayBuffer>, headers: Record<string, string>): Promise<RestAnswer> {
  const response = await fetch(`${inject('apiUrl')}/api/v1/check-ins`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, ...json, ...headers },
    body,
  })
  return { status: response.status, headers: response.headers, body: await response.json() }
}

describe('paths and methods', () => {
  test.each(['/nowhere', '/', '/EVENTS', '/events/a/b/c', '/check-ins/a/b', '/me/too'])(
    '%s is no path: 404 unknown_path',
    async (path) => {
      expect(codeOf(await send('GET', path))).toEqual([404, 'unknown_path'])
    },
  )

  test.each(['/nowhere', '/api', '/api/v2/events', '/docs/nowhere'])('nor is %s, beside /api/v1', async (path) => {
    const response = await fetch(inject('apiUrl') + path, { headers: { Authorization: `Bearer ${key}` } })
    expect(response.status).toBe(404)
    expect(await response.json()).toMatchObject({ error: { code: 'unknown_path' } })
  })

  test.each(['http://', 'http://[', 'http://[x', '*'])('a target without a path, %s, leads nowhere', async (target) => {
    const socket = connect(Number(new URL(inject('apiUrl')).port), '127.0.0.1')
    socket.write(`GET ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`)
    const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n')
    expect(head).toMatch(/^HTTP\/1.1 404 [\s\S]*X-Request-Id: /)
    expect(JSON.parse(body)).toMatchObject({ error: { code: 'unknown_path' } })
  })

  test.each(
    [...new Set(operations.map(({ path }) => path))].flatMap((path) => {
      // A file is at GET of the path that makes a link to it.
      const methodsOf = ({ method, csv }: Operation) => [...(csv === undefined ? [] : ['GET']), method]
      const known = operations.filter((o) => o.path === path).flatMap(methodsOf)
      const allowed = known.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
      return ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
        .filter((method) => !allowed.includes(method))
        .map((method) => [method, path, allowed.join(', ')] as const)
    }),
  )('%s %s is answered 405, with Allow: %s', async (method, path, allow) => {
    const answer = await send(method, path.replace(/\{\w+\}/g, event.id))
    expect(codeOf(answer)).toEqual([405, 'method_not_allowed'])
    expect(answer.headers.get('allow')).toBe(allow)
  })

  test('HEAD is GET without the body', async () => {
    const { status, body } = await send('HEAD', '/me')
    expect([status, body]).toEqual([200, undefined])
  })

  test('a path that cannot be decoded is a bad request', async () => {
    expect(codeOf(await send('GET', '/events/%E0%A4%A'))).toEqual([400, 'bad_request'])
  })

  test('/health answers without a key', async () => {
    const response = await fetch(`${inject('apiUrl')}/health`)
    expect([response.status, await response.json()]).toEqual([200, { status: 'ok' }])
  })
})

describe('bodies', () => {
  test.each(['{"event_id":', "{'event_id': 'x'}", '"a text"', '7', 'null', 'event_id=x', '\u0000'])(
    '%j is not a JSON object: 400 malformed_json',
    async (text) => {
      expect(codeOf(await send('POST', '/check-ins', text))).toEqual([400, 'malformed_json'])
    },
  )

  test.each(['[]', '[{"event_id":"x"}]'])('the array %s is refused by name: 422', async (text) => {
    const answer = await send('POST', '/check-ins', text)
    expect([...codeOf(answer), answer.body.error.param]).toEqual([422, 'validation_failed', 'body'])
  })

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/json-patch+json',
    'application/json; charset=latin1',
    'application/json; charset=utf-16',
    'application/json; charset=nonsense',
  ])('a body of type %s is answered 415', async (type) => {
    expect(codeOf(await register(guest(), { 'Content-Type': type }))).toEqual([415, 'unsupported_media_type'])
  })

  test('a compression nobody knows is answered 415', async () => {
    expect(codeOf(await register(guest(), { 'Content-Encoding': 'compress' }))).toEqual([415, 'unsupported_media_type'])
  })

  test('a media type with a charset of UTF-8, in any case, is JSON', async () => {
    expect((await register(guest(), { 'Content-Type': 'Application/JSON; Charset=UTF-8' })).status).toBe(201)
  })

  test('a body of 256 KiB is read, and one byte more is answered 413', async () => {
    const padded = (bytes: number) => JSON.stringify({ event_id: event.id, code: 'nobody' }).padEnd(bytes, ' ')
    expect(codeOf(await send('POST', '/check-ins', padded(maximumBytes)))).toEqual([404, 'not_found'])
    expect(codeOf(await send('POST', '/check-ins', padded(maximumBytes + 1)))).toEqual([413, 'payload_too_large'])
  })

  test.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
    ['deflate', deflateSync],
    ['zstd', zstdCompressSync],
  ])('a small body in %s that unpacks to a large one is answered 413', async (encoding, compress) => {
    const text = JSON.stringify({ event_id: event.id, code: 'x'.repeat(10 * maximumBytes) })
    const bomb = new Uint8Array(compress(Buffer.from(text)))
    expect(bomb.length).toBeLessThan(maximumBytes)
    expect(codeOf(await sendBytes(bomb, { 'Content-Encoding': encoding }))).toEqual([413, 'payload_too_large'])
  })

  test('a body that says gzip and is none is a bad request', async () => {
    const { status } = await sendBytes(new Uint8Array(Buffer.from('{"event_id":"x"}')), { 'Content-Encoding': 'gzip' })
    expect(status).toBe(400)
  })

  test.each([
    ['Zo\u00eb in Latin-1', Buffer.from('{"name":"Zo\u00eb"}', 'latin1')],
    ['a surrogate', Buffer.from('7b2261223a22eda08022 7d'.replace(' ', ''), 'hex')],
    ['an overlong slash', Buffer.from('7b2261223a22c0af227d', 'hex')],
    ['half a character at the end of a text', Buffer.from('7b2261223a22c3227d', 'hex')],
    ['UTF-16', Buffer.from('{"name":"Mary"}', 'utf16le')],
  ])('bytes that are no UTF-8 are refused, also when they are compressed: %s', async (_what, bytes) => {
    for (const [body, headers] of [
      [bytes, {}],
      [gzipSync(bytes), { 'Content-Encoding': 'gzip' }],
    ] as const) {
      const answer = await sendBytes(new Uint8Array(body), headers)
      expect(codeOf(answer)).toEqual([400, 'malformed_json'])
    }
  })

  test('UTF-8 is taken with a byte order mark and whatever way its name is written', async () => {
    for (const charset of ['utf-8', 'UTF8', '"utf-8"', 'Utf-8']) {
      const body = new Uint8Array(Buffer.from(`\ufeff{"event_id":"${event.id}","code":"Zo\u00eb"}`))
      const answer = await sendBytes(body, { 'Content-Type': `application/json; charset=${charset}` })
      expect(codeOf(answer), charset).toEqual([404, 'not_found'])
    }
  })

  test('a field that stands in the path may not be given twice', async () => {
    const answer = await register({ ...guest(), event_id: event.id })
    expect([...codeOf(answer), answer.body.error.param]).toEqual([422, 'validation_failed', 'event_id'])
  })

  test.each([
    ['POST', '/cancel', { colour: 'red' }, 'allowed: dry_run, notify, message'],
    ['GET', '?colour=red', undefined, 'none are allowed here'],
  ])('so it is not among those that an unknown one may have meant: %s %s', async (method, path, body, meant) => {
    const answer = await send(method, `/events/${event.id}${path}`, body)
    expect(answer.body.error.message).toBe(`colour is not a known field (${meant})`)
  })

  test.each([
    ['__proto__', '{"__proto__":{"admin":true},"event_id":"x","code":"y"}'],
    ['constructor', '{"constructor":{"prototype":{}},"event_id":"x","code":"y"}'],
    ['nesting a hundred thousand deep', `{"event_id":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
    ['a number too large', '{"event_id":1e999,"code":"y"}'],
    ['a field named at length', `{"${'x'.repeat(5000)}":1}`],
  ])('a body with %s is refused by validation', async (_what, text) => {
    expect(codeOf(await send('POST', '/check-ins', text))).toEqual([422, 'validation_failed'])
  })

  test('no body at all is fine where every field is in the path', async () => {
    expect(codeOf(await send('POST', `/check-ins/${event.id}/undo`))).toEqual([404, 'not_found'])
  })
})

describe('queries', () => {
  test.each([
    ['status=open', 'status'],
    ['status=draft&status=published', 'status'],
    ['limit=ten', 'limit'],
    ['limit=1e1', 'limit'],
    ['limit=101', 'limit'],
    ['limit=0', 'limit'],
    ['limit=', 'limit'],
    ['limit[gt]=1', 'limit[gt]'],
    ['cursor=the-next-page', 'cursor'],
    ['colour=red', 'colour'],
    ['__proto__=x', '__proto__'],
  ])('?%s is refused by name: %s', async (query, param) => {
    const answer = await send('GET', `/events?${query}`)
    expect([...codeOf(answer), answer.body.error.param]).toEqual([422, 'validation_failed', param])
  })

  test.each([
    ['external_id=a&external_id=a', 'external_id'],
    ['colour=red&colour=blue', 'colour'],
  ])('?%s gives a parameter twice: refused by name', async (query, param) => {
    const answer = await send('GET', `/events?${query}`)
    expect([...codeOf(answer), answer.body.error.param]).toEqual([422, 'validation_failed', param])
    expect(answer.body.error.message).toBe(`${param} is given twice`)
  })

  test.each(['', '/ticket-types', '/promo-codes'])(
    'a parameter of the path %s is not taken from the query',
    async (path) => {
      const other = '01926b5c-0000-7000-8000-000000000000'
      const answer = await send('GET', `/events/${event.id}${path}?event_id=${other}`)
      expect([...codeOf(answer), answer.body.error.param]).toEqual([422, 'validation_failed', 'event_id'])
    },
  )

  test('a query on a path that takes none is refused by name', async () => {
    expect(codeOf(await send('GET', '/me?verbose=true'))).toEqual([422, 'validation_failed'])
  })
})

describe('Idempotency-Key', () => {
  test.each([
    ['256 characters', 'k'.repeat(256)],
    ['no characters', ''],
    ['a control character', 'one\ttwo'],
  ])('%s are refused by name, and nothing happens', async (_what, value) => {
    const sold = await event.sold()
    const answer = await register(guest(), { 'Idempotency-Key': value })
    expect([...codeOf(answer), answer.body.error.param]).toEqual([422, 'validation_failed', 'Idempotency-Key'])
    expect(await event.sold()).toBe(sold)
  })

  test('a read does not look at it', async () => {
    expect((await send('GET', '/me', undefined, { 'Idempotency-Key': 'k'.repeat(256) })).status).toBe(200)
  })
})

describe('X-Request-Id', () => {
  test.each(['scan-42', 'a', '01a1fa47-7a68-7b53-b689-fdedae563e87', 'A_b.c~d', 'x'.repeat(128)])(
    '%s comes back, with a success and with a refusal',
    async (id) => {
      expect((await send('GET', '/me', undefined, { 'X-Request-Id': id })).headers.get('x-request-id')).toBe(id)
      const { headers, body } = await send('GET', '/nowhere', undefined, { 'X-Request-Id': id })
      expect([headers.get('x-request-id'), body.error.request_id]).toEqual([id, id])
    },
  )

  test.each([
    ['a blank', 'one two'],
    ['129 characters', 'x'.repeat(129)],
    ['a quotation mark', 'a"b'],
    ['markup', '<script>'],
    ['a letter beyond ASCII', 'Zo\u00eb'],
    ['nothing', ''],
  ])('one with %s is replaced by ours', async (_what, id) => {
    const { headers } = await send('GET', '/me', undefined, { 'X-Request-Id': id })
    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  })

  test('every request has one, and no two the same', async () => {
    const ids = await Promise.all(
      Array.from({ length: 20 }, async () => (await send('GET', '/me')).headers.get('x-request-id')),
    )
    expect(new Set(ids).size).toBe(20)
  })
})
