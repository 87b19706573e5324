// What is wrong with HTTP itself, in requests that would be right otherwise: methods, media types, encodings, headers, paths.

import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import type { Random } from '../random.ts'
import { mcpSent } from './mcp.ts'
import { exchange, type Face, type HostileRequest, type Sent } from './request.ts'
import { restRequest } from './rest.ts'
import type { Stage } from './stage.ts'
import { encodedHostile } from './text.ts'
import { hostileText, words } from './values.ts'

const methods = words(
  'GET HEAD POST PUT PATCH DELETE OPTIONS TRACE PROPFIND PURGE LOCK M-SEARCH QUERY LINK COPY SEARCH',
)

/** A request that would be right, of either interface. */
function right(stage: Stage, random: Random): { sent: Sent; face: Face } {
  if (random.below(4) === 0) return { sent: mcpSent(stage, random), face: 'mcp' }
  return { sent: restRequest(stage, random, 0).sent, face: 'rest' }
}

export function method(stage: Stage, random: Random): HostileRequest {
  const { sent, face } = right(stage, random)
  const headers = [...sent.headers]
  if (random.below(4) === 0) headers.push(['X-HTTP-Method-Override', random.one(methods)])
  return exchange('method', face, { ...sent, headers, method: random.one(methods) })
}

const mediaTypes = [
  ...words('text/plain application/xml application/x-www-form-urlencoded application/vnd.api+json application/JSON'),
  ...words('application/json; ; / json application/problem+json text/json */* application/json;charset='),
  ...['application/json; charset=utf-16', 'application/json; charset=latin1', 'application/json; charset="utf-8"'],
  ...[
    'application/json; charset=UTF8; charset=utf-7',
    'application/json, text/plain',
    'application/json\t;x=y',
    ' ',
    '',
  ],
  ...[`application/json; x=${'y'.repeat(4_000)}`, 'application/json; charset=\u00e9', 'application/json; =;="'],
  'multipart/form-data; boundary=x',
]

export function mediaType(stage: Stage, random: Random): HostileRequest {
  const { sent, face } = right(stage, random)
  const others = sent.headers.filter(([name]) => name !== 'Content-Type')
  const given: Sent['headers'] = random.below(8) === 0 ? [] : [['Content-Type', random.one(mediaTypes)]]
  return exchange('media type', face, { ...sent, headers: [...others, ...given] })
}

// Made once: 16 MiB of blanks, as a list that never begins.
const blanks = Buffer.alloc(16 * 1024 * 1024, ' ')
const fast = { params: { [constants.BROTLI_PARAM_QUALITY]: 2 } }
const bombs = {
  gzip: gzipSync(blanks, { level: 1 }),
  deflate: deflateSync(blanks, { level: 1 }),
  br: brotliCompressSync(blanks, fast),
}
const bombOfBombs = gzipSync(bombs.gzip)

export function encoding(stage: Stage, random: Random): HostileRequest {
  const { sent, face } = right(stage, random)
  const plain = Buffer.from(sent.body ?? '{}')
  const compressed = gzipSync(plain)
  const bodies: Record<string, Buffer[]> = {
    gzip: [
      ...[compressed, plain, compressed.subarray(0, random.below(compressed.length)), Buffer.alloc(0)],
      ...[Buffer.concat([compressed, Buffer.from('more')]), Buffer.concat([compressed, compressed])],
      ...[bombs.gzip, bombOfBombs],
    ],
    'gzip, gzip': [gzipSync(compressed), bombOfBombs],
    deflate: [deflateSync(plain), deflateRawSync(plain), bombs.deflate],
    br: [brotliCompressSync(plain), compressed, bombs.br],
    zstd: [zstdCompressSync(plain)],
    'x-gzip': [compressed],
    GZIP: [compressed],
    'gzip;q=1': [compressed],
    'identity, gzip': [compressed],
  }
  const name = random.one([...Object.keys(bodies), ...words('compress identity * constructor __proto__'), ''])
  const body = random.one(Object.hasOwn(bodies, name) ? (bodies[name] ?? []) : [plain])
  const kept = sent.headers.filter(([header]) => header !== 'Content-Type')
  const headers: Sent['headers'] = [...kept, ['Content-Type', 'application/json'], ['Content-Encoding', name]]
  return exchange('encoding', face, { ...sent, headers, body })
}

/** One header at a time, with values that it may have; the rest of what is sent stays. */
const headerValues: Record<string, string[]> = {
  'Idempotency-Key': ['k'.repeat(255), 'k'.repeat(256), 'k'.repeat(8_000)],
  Authorization: ['Bearer second'],
  Accept: ['', ';', 'text/html', '*/*;q=0', 'image/png', 'x'.repeat(4_000), ',,,,'],
  'Accept-Encoding': ['gzip', 'gzip;q=0', 'br', '*;q=0', 'identity;q=0', '', ',', 'gzip;q=x'],
  'Accept-Language': ['*', 'de', ';q=1', 'x'.repeat(3_000), 'de;q=NaN', ','],
  'Accept-Charset': ['utf-16'],
  Range: ['bytes=0-0', 'bytes=-1', 'bytes=9-1', 'bytes=0-,0-,0-', 'items=0-5', `bytes=${'0-1,'.repeat(500)}`],
  'If-None-Match': ['*', '"x"', 'x', 'W/"1"', '"1", "2"', `${'"a",'.repeat(1_000)}"b"`, '""', '"'],
  'If-Match': ['*', '"1"', '1', 'W/"1-x"', '"999999999999"', `${'"1",'.repeat(300)}"2"`, '', ',', '"1" "2"'],
  'If-Modified-Since': ['now', 'Thu, 01 Jan 1970 00:00:00 GMT', 'x'],
  Expect: ['100-continue', '200-ok', 'x', '100-continue, 100-continue', ''],
  'X-Request-Id': ['a b', '<script>', 'x'.repeat(200), 'x'.repeat(5_000), ''],
  'X-Forwarded-For': ['127.0.0.1', 'x', '::1, 10.0.0.1', '1.2.3.4,'.repeat(300)],
  Forwarded: ['for="_x";host=evil.example'],
  Host: [
    'evil.example',
    '',
    '127.0.0.1:99999',
    '[::1',
    'a b',
    'localhost',
    '127.0.0.1, evil.example',
    'x'.repeat(2_000),
  ],
  Origin: ['null', 'https://evil.example', '*', 'x', ''],
  Cookie: ['a=b; '.repeat(1_000)],
  Connection: ['close', 'upgrade', 'keep-alive, close, x', 'Authorization'],
  'X-Long': ['y'.repeat(15_000), 'y'.repeat(17_000), 'y'.repeat(100_000)],
}
/** Headers that take any text. */
const free = ['Idempotency-Key', 'Authorization', 'X-Request-Id', 'Cookie']

/** Several at once. */
const together: Sent['headers'][] = [
  [...pairsOf({ 'Idempotency-Key': 'a' }), ...pairsOf({ 'Idempotency-Key': 'b' })],
  pairsOf({ 'If-Range': '"x"', Range: 'bytes=0-1' }),
  pairsOf({ 'X-Forwarded-Host': 'evil.example', 'X-Forwarded-Proto': 'javascript' }),
  [...pairsOf({ Host: '127.0.0.1' }), ...pairsOf({ Host: 'evil.example' })],
  pairsOf({ Upgrade: 'websocket', Connection: 'Upgrade', 'Sec-WebSocket-Key': 'x', 'Sec-WebSocket-Version': '13' }),
  pairsOf({ Upgrade: 'h2c', Connection: 'Upgrade, HTTP2-Settings', 'HTTP2-Settings': 'AAAA' }),
  pairsOf({ 'Max-Forwards': '0', Via: '1.1 x', TE: 'trailers, deflate' }),
  pairsOf({ 'Content-Location': 'x', 'Content-Range': 'bytes 0-1/2', Digest: 'x' }),
  pairsOf({ ['__proto__']: 'x', constructor: 'y', toString: 'z' }),
  Array.from({ length: 900 }, (_, i): [string, string] => [`X-${i}`, 'y']),
  Array.from({ length: 3_000 }, (): [string, string] => ['A', '']),
]

function pairsOf(members: Record<string, string>): Sent['headers'] {
  return Object.entries(members)
}

function header(random: Random): Sent['headers'] {
  const kind = random.below(10)
  if (kind < 3) return random.one(together)
  if (kind < 8) {
    const name = random.one(Object.keys(headerValues))
    return [[name, random.one(headerValues[name] ?? [])]]
  }
  // Of which no client sends a line break or a null: those are for sockets.ts.
  const text = hostileText(random)
    .replace(/[\r\n\0]/g, ' ')
    .slice(0, 6_000)
  return [[random.one(free), Buffer.from(text.trim() === '' ? 'x' : text)]]
}

export function headers(stage: Stage, random: Random): HostileRequest {
  const { sent, face } = right(stage, random)
  const added = header(random)
  const names = added.map(([name]) => name)
  // In place of its own, or beside it.
  const kept = random.below(2) === 0 ? sent.headers : sent.headers.filter(([name]) => !names.includes(name))
  const isAlone = added.length > 500 || names.some((name) => ['Upgrade', 'Connection', 'Host', 'X-Long'].includes(name))
  const all = random.below(2) === 0 ? [...kept, ...added] : [...added, ...kept]
  return exchange('header', face, { ...sent, headers: all }, { isAlone })
}

const roots = words(`
  /api/v1/me /api/v1/events /api/mcp /oauth/auth /t/x /o/x /u/x /exports/x /door /door/main.ts /docs /docs/guides/errors /openapi.json /health /ready
  /mail /confirm/x /.well-known/oauth-authorization-server/oauth / /metrics /favicon.ico /postmark`)
const segments = words(String.raw`
  %00 %2e%2e .. . %2f %5c \ ;x=1 %c0%ae%c0%ae %252e%252e .... %20 %0d%0aX-Injected:yes * ~ package.json .env % %zz : @ __proto__ constructor
  %e2%80%ae é ÿ`)

export function path(stage: Stage, random: Random): HostileRequest {
  const root = random.one(roots)
  const segment = random.below(3) === 0 ? encodedHostile(random) : random.one(segments)
  const id = stage.named('event_id', random) ?? ''
  const target = random.one([
    `${root}/${segment}`,
    `${root}${segment}`,
    `/${segment}${root}`,
    `/${root}`,
    `${root}//`,
    root.replaceAll('/', '//'),
    root.toUpperCase(),
    `${root}/${segment}/${segment}/package.json`,
    `${root}/${'../'.repeat(random.below(9))}package.json`,
    `${root}/${'%2e%2e%2f'.repeat(random.below(9))}package.json`,
    `${root}?${segment}`,
    `${root}#${segment}`,
    `${root}/${'a/'.repeat(random.one([100, 3_000]))}`,
    `${root}/${'x'.repeat(random.one([2_000, 8_000, 15_000, 20_000]))}`,
    `/api/v1/events/${id}${segment}`,
    `/api/v1/events/${segment}${id}/ticket-types`,
    `/api/v1/events/${id.toUpperCase()}`,
    `/api/v1/attendees/${stage.named('attendee_id', random)}/ticket.png${segment}`,
    `http://evil.example${root}`,
    `http://127.0.0.1${root}`,
    'http://',
    `//evil.example${root}`,
  ])
  const method = random.one(['GET', 'GET', 'GET', 'HEAD', 'POST', 'OPTIONS', 'DELETE'])
  const headers: Sent['headers'] = [
    ['Authorization', `Bearer ${stage.keys.full}`],
    ['Cookie', stage.cookie],
  ]
  if (random.below(3) === 0) headers.push(['Accept', 'text/html'])
  return exchange('path', 'any', { method, target, headers })
}
