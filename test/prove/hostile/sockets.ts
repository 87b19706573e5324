// What only bytes can do: framing that two parsers read differently, requests that never end, clients that vanish.

import type { Random } from '../random.ts'
import { type HostileRequest, raw } from './request.ts'
import type { Stage } from './stage.ts'

/** In a request that must never be taken for one: judge.ts looks for it in answers. */
export const smuggledMark = 'smuggled-request'

const host = 'Host: 127.0.0.1\r\n'
const smuggled = `GET /health HTTP/1.1\r\n${host}X-Request-Id: ${smuggledMark}\r\n\r\n`

/** The start of a POST with a key; its framing is still to come. */
const head = ({ keys }: Stage, path = '/api/v1/check-ins', version = '1.1') =>
  `POST ${path} HTTP/${version}\r\n${host}Authorization: Bearer ${keys.full}\r\nContent-Type: application/json\r\n`

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
  return raw('framing', 'any', [post + random.pick(lengths)], [0, 2])
}

const firstLines = [
  ...[
    'GET /health HTTP/1.0\r\n\r\n',
    'GET /health HTTP/1.1\r\n\r\n',
    'GET /health HTTP/9.9\r\nHost: x\r\n\r\n',
    'GET /health HTTP/0.9\r\n\r\n',
    'GET /health\r\n\r\n',
  ],
  ...[
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    '\r\n\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n',
    'get /health HTTP/1.1\r\nHost: x\r\n\r\n',
    'GET  /health HTTP/1.1\r\nHost: x\r\n\r\n',
  ],
  ...[
    'GET\t/health HTTP/1.1\r\nHost: x\r\n\r\n',
    'GET /health HTTP/1.1 x\r\nHost: x\r\n\r\n',
    'GET /hea\0lth HTTP/1.1\r\nHost: x\r\n\r\n',
    'OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n',
  ],
  ...[
    'GET * HTTP/1.1\r\nHost: x\r\n\r\n',
    'CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n',
    'CONNECT /api/v1/me HTTP/1.1\r\nHost: x\r\n\r\n',
    'TRACE / HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\n\r\n',
  ],
  ...[
    'BREW /pot HTTP/1.1\r\nHost: x\r\n\r\n',
    '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003',
    '*1\r\n$4\r\nPING\r\n',
    'HELO x\r\n',
    '{"jsonrpc":"2.0"}\r\n\r\n',
    'HTTP/1.1 200 OK\r\n\r\n',
  ],
  ...[
    'GET /health HTTP/1.1\nHost: x\n\n',
    'GET /health HTTP/1.1\rHost: x\r\r',
    'GET http://x:y@evil.example:0/health HTTP/1.1\r\nHost: x\r\n\r\n',
    'GET ?x HTTP/1.1\r\nHost: x\r\n\r\n',
    'GET health HTTP/1.1\r\nHost: x\r\n\r\n',
  ],
  ...[
    `${'G'.repeat(20_000)} / HTTP/1.1\r\n\r\n`,
    `GET /${'x'.repeat(70_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
    'GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n',
    'GET /health HTTP/1.1\r\nHost: x\r\nX: a\r\n folded\r\n\r\n',
  ],
  ...[
    'GET /health HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
    'GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n',
    'GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\nmore',
  ],
]

export function firstLine(_stage: Stage, random: Random): HostileRequest {
  if (random.below(6) > 0) return raw('first line', 'any', [random.pick(firstLines) as string, 'half-close'], [0, 2])
  const noise = Buffer.from(Array.from({ length: random.below(3_000) + 1 }, () => random.below(256)))
  return raw('noise', 'any', [noise, 'half-close'], [0, 2])
}

/** Several requests in one packet. */
export function pipelining(stage: Stage, random: Random): HostileRequest {
  const count = random.pick([2, 3, 7, 8, 9, 100]) as number
  const me = `GET /api/v1/me HTTP/1.1\r\n${host}Authorization: Bearer ${stage.keys.full}\r\n\r\n`
  const others = [
    me,
    me,
    'GET /health HTTP/1.1\r\nHost: x\r\n\r\n',
    `${head(stage)}Content-Length: 2\r\n\r\n{}`,
    'GET /none HTTP/1.1\r\nHost: x\r\n\r\n',
    'X\r\n\r\n',
  ]
  const all = Array.from({ length: count }, () => random.pick(others) as string)
  return raw('pipelining', 'any', [all.join('')], [0, count])
}

/** A client that goes away in the middle, or says that it will write no more. */
export function leaving(stage: Stage, random: Random): HostileRequest {
  const body = JSON.stringify({ event_id: stage.named('event_id', random), code: stage.named('code', random) })
  const whole = `${head(stage)}Content-Length: ${body.length}\r\n\r\n${body}`
  const at = random.below(whole.length)
  const ways: [(string | number)[], [number, number]][] = [
    [
      [whole, 'half-close'],
      [0, 1],
    ],
    [
      [whole, random.below(30), 'half-close'],
      [0, 1],
    ],
    [
      [whole, 'destroy'],
      [0, 1],
    ],
    [
      [whole, random.below(30), 'destroy'],
      [0, 1],
    ],
    [
      [whole.slice(0, at), 'half-close'],
      [0, 1],
    ],
    [
      [whole.slice(0, at), random.below(10), 'destroy'],
      [0, 1],
    ],
    [['half-close'], [0, 0]],
    [['destroy'], [0, 0]],
    // Less than was announced, and more.
    [
      [`${head(stage)}Content-Length: ${body.length + 50}\r\n\r\n${body}`, 'half-close'],
      [0, 1],
    ],
    [
      [`${head(stage)}Content-Length: ${body.length - 1}\r\n\r\n${body}`, 'half-close'],
      [0, 2],
    ],
    [
      [`${head(stage)}Transfer-Encoding: chunked\r\n\r\n${chunk(body)}`, 'half-close'],
      [0, 1],
    ],
    // In pieces, and still right.
    [(whole.match(/[\s\S]{1,40}/g) ?? []).flatMap((piece) => [piece, 1]), [1, 1]],
    [
      [`${head(stage)}Expect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n`, 20, body],
      [1, 1],
    ],
    [[`${head(stage)}Transfer-Encoding: chunked\r\n\r\n${[...body].map(chunk).join('')}0\r\n\r\n`], [1, 1]],
  ]
  const [steps, answers] = random.pick(ways) as (typeof ways)[number]
  return raw('leaving', 'any', steps, answers)
}

/** Requests that the server has to end by a limit of its own, or that read more slowly than anybody should have to wait. */
export function slow(stage: Stage, random: Random): HostileRequest {
  const large = `GET /openapi.json HTTP/1.1\r\n${host}\r\n`
  const dribble = (text: string, ms: number) => [...text].flatMap((character) => [character, ms])
  const ways: [(string | number)[], [number, number]][] = [
    [[''], [0, 1]],
    [['GET /health HTT'], [0, 1]],
    [
      [`GET /health HTTP/1.1\r\n${host}X: `, ...dribble('y'.repeat(60), 1_000)],
      [0, 1],
    ],
    [[`${head(stage)}Content-Length: 100\r\n\r\n`], [0, 1]],
    [
      [`${head(stage)}Content-Length: 100\r\n\r\n{`, ...dribble(' '.repeat(60), 1_000)],
      [0, 1],
    ],
    [
      [`${head(stage)}Transfer-Encoding: chunked\r\n\r\n`, ...dribble('2\r\n{}', 1_000)],
      [0, 1],
    ],
    [[`${head(stage)}Expect: 100-continue\r\nContent-Length: 100\r\n\r\n`], [0, 1]],
    [[`${head(stage, '/api/mcp')}Content-Length: 100\r\n\r\n{"jsonrpc"`], [0, 1]],
    [
      [
        'POST /oauth/token HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 50\r\n\r\na=',
      ],
      [0, 1],
    ],
    [
      [large.repeat(8), 'stop reading', 40_000, 'read on'],
      [0, 8],
    ],
    [
      [large, 'stop reading', 2_000, 'read on'],
      [0, 1],
    ],
  ]
  const [steps, answers] = random.pick(ways) as (typeof ways)[number]
  return raw('slow', 'any', steps, answers, { isSlow: true })
}
