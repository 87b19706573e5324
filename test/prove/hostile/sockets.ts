// What only bytes can do: framing that two parsers read differently, requests that never end, clients that vanish.

import type { Random } from '../random.ts'
import { type HostileRequest, raw } from './request.ts'
import type { Stage } from './stage.ts'

/** In a request that must never be taken for one: judge.ts looks for it in answers. */
export const smuggledMark = 'smuggled-request'

const host = 'Host: 127.0.0.1\r\n'
const smuggled = `GET /health HTTP/1.1\r\n${host}X-Request-Id: ${smuggledMark}\r\n\r\n`

/** The start of a POST with a key; its framing is still to come. */
const head = ({ keys }: Stage, path = '/api/v1/check-ins') =>
  `POST ${path} HTTP/1.1\r\n${host}Authorization: Bearer ${keys.full}\r\nContent-Type: application/json\r\n`

const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`

/** Two lengths, or one that is none: whatever stands behind must not become a request. */
export function framing(stage: Stage, random: Random): HostileRequest {
  const post = head(stage)
  const lengths = [
    `Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    `Transfer-Encoding: chunked\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
    `Content-Length: 2\r\nContent-Length: ${smuggled.length + 2}\r\n\r\n{}${smuggled}`,
    `Content-Length: 2, ${smuggled.length}\r\n\r\n{}${smuggled}`,
    `Content-Length: +${smuggled.length}\r\n\r\n${smuggled}`,
    `Content-Length: -1\r\n\r\n${smuggled}`,
    `Content-Length: 0x2\r\n\r\n{}${smuggled}`,
    `Content-Length: 99999999999999999999999\r\n\r\n${smuggled}`,
    `Content-Length:\r\n\r\n${smuggled}`,
    `Content-Length : 2\r\n\r\n{}${smuggled}`,
    `Content-Length: 2\r\n Transfer-Encoding: chunked\r\n\r\n{}${smuggled}`,
    `Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    `Transfer-Encoding: xchunked\r\n\r\n${smuggled}`,
    `Transfer-Encoding: chunked, identity\r\n\r\n${smuggled}`,
    `Transfer-Encoding: identity\r\n\r\n${smuggled}`,
    `Transfer-Encoding: \x0bchunked\r\n\r\n${smuggled}`,
    `Transfer-Encoding:\n chunked\r\n\r\n${smuggled}`,
    `Transfer-Encoding: gzip, chunked\r\n\r\n${chunk(smuggled)}Z\r\n\r\n`,
    `Transfer-Encoding: chunked\r\n\r\n2;${'x'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`,
    `Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF1\r\n${smuggled}`,
    `Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n${smuggled}`,
    `Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n`,
    `Transfer-Encoding: chunked\r\n\r\n2\r\n{}X\r\n${smuggled}`,
    `Transfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n${smuggled}`,
    `Transfer-Encoding: chunked\r\n\r\n2 \r\n{}\r\n0\r\n\r\n`,
    `Transfer-Encoding: chunked\r\n\r\n\r\n${smuggled}`,
    `X: y\r\n\tContent-Length: 2\r\n\r\n${smuggled.slice(0, -2)}X-After: fold\r\n\r\n`,
    `X: a\rContent-Length: 40\r\n\r\n${smuggled}`,
    `X: a\0b\r\nContent-Length: 2\r\n\r\n{}`,
    `X\0: b\r\nContent-Length: 2\r\n\r\n{}`,
    `: empty name\r\nContent-Length: 2\r\n\r\n{}`,
    `no colon\r\nContent-Length: 2\r\n\r\n{}`,
    `X: \x7f\x01\r\nContent-Length: 2\r\n\r\n{}`,
    'Content-Length: 2\r\nTrailer: Authorization\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nAuthorization: x\r\n\r\n',
  ]
  // What is behind may be refused as a request of its own.
  return raw('framing', 'any', [post + random.one(lengths)], [0, 2])
}

// Line by line as an editor shows them; what is not said in full is a request for /health.
const firstLines = [
  ...[
    'GET /health HTTP/1.0',
    'GET /health HTTP/1.1',
    'GET /health HTTP/0.9',
    'GET /health',
    'CONNECT 127.0.0.1:1 HTTP/1.1',
  ],
  ...['PRI * HTTP/2.0\r\n\r\nSM', 'HTTP/1.1 200 OK', '{"jsonrpc":"2.0"}', `${'G'.repeat(20_000)} / HTTP/1.1`],
  ...['GET /health HTTP/9.9', 'get /health HTTP/1.1', 'GET  /health HTTP/1.1', 'GET\t/health HTTP/1.1'].map(withHost),
  ...['GET /health HTTP/1.1 x', 'GET /hea\0lth HTTP/1.1', 'OPTIONS * HTTP/1.1', 'GET * HTTP/1.1'].map(withHost),
  ...['CONNECT /api/v1/me HTTP/1.1', 'BREW /pot HTTP/1.1', 'GET ?x HTTP/1.1', 'GET health HTTP/1.1'].map(withHost),
  ...['GET http://x:y@evil.example:0/health HTTP/1.1', `GET /${'x'.repeat(70_000)} HTTP/1.1`].map(withHost),
  `\r\n\r\n\r\n${withHost('GET /health HTTP/1.1')}`,
  `${withHost('TRACE / HTTP/1.1')}\r\nMax-Forwards: 0`,
  `${withHost('GET /health HTTP/1.1')}\r\nHost: y`,
  `${withHost('GET /health HTTP/1.1')}\r\nX: a\r\n folded`,
  `${withHost('GET /health HTTP/1.1')}\r\nUpgrade: websocket\r\nConnection: Upgrade`,
  'GET /health HTTP/1.0\r\nConnection: keep-alive',
]
const noRequests = [
  ...['\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003', '*1\r\n$4\r\nPING\r\n', 'HELO x\r\n'],
  ...['GET /health HTTP/1.1\nHost: x\n\n', 'GET /health HTTP/1.1\rHost: x\r\r'],
  `${withHost('GET /health HTTP/1.1')}\r\nConnection: close\r\n\r\nmore`,
]

function withHost(line: string): string {
  return `${line}\r\nHost: x`
}

export function firstLine(_stage: Stage, random: Random): HostileRequest {
  const noise = Buffer.from(Array.from({ length: random.below(3_000) + 1 }, () => random.below(256)))
  const kind = random.below(6)
  const bytes = kind === 0 ? noise : kind === 1 ? random.one(noRequests) : `${random.one(firstLines)}\r\n\r\n`
  return raw(kind === 0 ? 'noise' : 'first line', 'any', [bytes, 'half-close'], [0, 2])
}

/** Several requests in one packet. */
export function pipelining(stage: Stage, random: Random): HostileRequest {
  const count = random.one([2, 3, 7, 8, 9, 100])
  const me = `GET /api/v1/me HTTP/1.1\r\n${host}Authorization: Bearer ${stage.keys.full}\r\n\r\n`
  const [health, none] = ['/health', '/none'].map((path) => `${withHost(`GET ${path} HTTP/1.1`)}\r\n\r\n`)
  const others = [me, me, health, none, `${head(stage)}Content-Length: 2\r\n\r\n{}`, 'X\r\n\r\n']
  const all = Array.from({ length: count }, () => random.one(others))
  return raw('pipelining', 'any', [all.join('')], [0, count])
}

/** A client that goes away in the middle, or says that it will write no more. */
export function leaving(stage: Stage, random: Random): HostileRequest {
  const body = JSON.stringify({ event_id: stage.named('event_id', random), code: stage.named('code', random) })
  const whole = `${head(stage)}Content-Length: ${body.length}\r\n\r\n${body}`
  const at = random.below(whole.length)
  const announced = (length: number) => `${head(stage)}Content-Length: ${length}\r\n\r\n${body}`
  const chunked = (chunks: string) => `${head(stage)}Transfer-Encoding: chunked\r\n\r\n${chunks}`
  const expecting = `${head(stage)}Expect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n`
  // In pieces, and still right.
  const inPieces = [
    (whole.match(/[\s\S]{1,40}/g) ?? []).flatMap((piece) => [piece, 1]),
    [expecting, 20, body],
    [chunked(`${[...body].map(chunk).join('')}0\r\n\r\n`)],
  ]
  if (random.below(5) === 0) return raw('leaving', 'any', random.one(inPieces), [1, 1])
  const [most, ...steps] = random.one<[most: number, ...steps: (string | number)[]]>([
    [1, whole, 'half-close'],
    [1, whole, random.below(30), 'half-close'],
    [1, whole, 'destroy'],
    [1, whole, random.below(30), 'destroy'],
    [1, whole.slice(0, at), 'half-close'],
    [1, whole.slice(0, at), random.below(10), 'destroy'],
    [0, 'half-close'],
    [0, 'destroy'],
    // Less than was announced, and more.
    [1, announced(body.length + 50), 'half-close'],
    [2, announced(body.length - 1), 'half-close'],
    [1, chunked(chunk(body)), 'half-close'],
  ])
  return raw('leaving', 'any', steps, [0, most])
}

/** Requests that the server has to end by a limit of its own, or that read more slowly than anybody should have to wait. */
export function slow(stage: Stage, random: Random): HostileRequest {
  const large = `GET /openapi.json HTTP/1.1\r\n${host}\r\n`
  const dribble = (text: string, ms: number) => [...text].flatMap((character) => [character, ms])
  const eightfold = large.repeat(8)
  const form = 'Content-Type: application/x-www-form-urlencoded\r\n'
  const ways = [
    [''],
    ['GET /health HTT'],
    [`GET /health HTTP/1.1\r\n${host}X: `, ...dribble('y'.repeat(60), 1_000)],
    [`${head(stage)}Content-Length: 100\r\n\r\n`],
    [`${head(stage)}Content-Length: 100\r\n\r\n{`, ...dribble(' '.repeat(60), 1_000)],
    [`${head(stage)}Transfer-Encoding: chunked\r\n\r\n`, ...dribble('2\r\n{}', 1_000)],
    [`${head(stage)}Expect: 100-continue\r\nContent-Length: 100\r\n\r\n`],
    [`${head(stage, '/api/mcp')}Content-Length: 100\r\n\r\n{"jsonrpc"`],
    [`POST /oauth/token HTTP/1.1\r\n${host}${form}Content-Length: 50\r\n\r\na=`],
    [large, 'stop reading', 2_000, 'read on'],
    [eightfold, 'stop reading', 40_000, 'read on'],
  ]
  const steps = random.one(ways)
  return raw('slow', 'any', steps, [0, steps[0] === eightfold ? 8 : 1], { isSlow: true })
}
