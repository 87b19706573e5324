// What is wrong with HTTP itself, in requests that would be right otherwise: methods, media types, encodings, headers, paths.

import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import type { Random } from '../random.ts'
import { mcpSent } from './mcp.ts'
import { exchange, type Face, type HostileRequest, type Sent } from './request.ts'
import { restRequest } from './rest.ts'
import type { Stage } from './stage.ts'
import { encodedHostile } from './text.ts'
import { hostileText } from './values.ts'

const methods = [
  ...[
    'GET',
    'HEAD',
    'POST',
    'PUT',
    'PATCH',
    'DELETE',
    'OPTIONS',
    'TRACE',
    'PROPFIND',
    'PURGE',
    'LOCK',
    'M-SEARCH',
    'QUERY',
    'LINK',
    'COPY',
    'SEARCH',
  ],
]

/** A request that would be right, of either interface. */
function right(stage: Stage, random: Random): { sent: Sent; face: Face } {
  if (random.below(4) === 0) return { sent: mcpSent(stage, random), face: 'mcp' }
  return { sent: restRequest(stage, random, 0).sent, face: 'rest' }
}

export function method(stage: Stage, random: Random): HostileRequest {
  const { sent, face } = right(stage, random)
  const headers = [...sent.headers]
  if (random.below(4) === 0) headers.push(['X-HTTP-Method-Override', random.pick(methods) as string])
  return exchange('method', face, { ...sent, headers, method: random.pick(methods) as string })
}

const mediaTypes = [
  ...[
    'text/plain',
    'application/xml',
    'multipart/form-data; boundary=x',
    'application/x-www-form-urlencoded',
    'application/json; charset=utf-16',
  ],
  ...[
    'application/json; charset=latin1',
    'application/json; charset="utf-8"',
    'application/json;charset=',
    'application/json; charset=UTF8; charset=utf-7',
  ],
  ...[
    'application/vnd.api+json',
    'application/json, text/plain',
    'application/JSON',
    'application/json;',
    ' ',
    '',
    ';',
    '/',
    'json',
    'application/json\t;x=y',
  ],
  ...[
    'application/problem+json',
    'text/json',
    '*/*',
    `application/json; x=${'y'.repeat(4_000)}`,
    'application/json; charset=\u00e9',
    'application/json; =;="',
  ],
]

export function mediaType(stage: Stage, random: Random): HostileRequest {
  const { sent, face } = right(stage, random)
  const others = sent.headers.filter(([name]) => name !== 'Content-Type')
  const given = random.below(8) === 0 ? [] : [['Content-Type', random.pick(mediaTypes) as string] as [string, string]]
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
  const [name, body] = random.pick<[string, Buffer]>([
    ['gzip', compressed],
    ['gzip', plain],
    ['gzip', compressed.subarray(0, random.below(compressed.length))],
    ['gzip', Buffer.concat([compressed, Buffer.from('more')])],
    ['gzip', Buffer.concat([compressed, compressed])],
    ['gzip', Buffer.alloc(0)],
    ['gzip', bombs.gzip],
    ['deflate', bombs.deflate],
    ['br', bombs.br],
    ['gzip', bombOfBombs],
    ['gzip, gzip', gzipSync(compressed)],
    ['gzip, gzip', bombOfBombs],
    ['deflate', deflateSync(plain)],
    ['deflate', deflateRawSync(plain)],
    ['br', brotliCompressSync(plain)],
    ['br', compressed],
    ['zstd', zstdCompressSync(plain)],
    ['compress', plain],
    ['x-gzip', compressed],
    ['GZIP', compressed],
    ['identity', plain],
    ['identity, gzip', compressed],
    ['', plain],
    ['*', plain],
    ['gzip;q=1', compressed],
    ['constructor', plain],
    ['__proto__', plain],
  ]) as [string, Buffer]
  const kept = sent.headers.filter(([header]) => header !== 'Content-Type')
  const headers: Sent['headers'] = [...kept, ['Content-Type', 'application/json'], ['Content-Encoding', name]]
  return exchange('encoding', face, { ...sent, headers, body })
}

const header = (random: Random): Sent['headers'][number][] => {
  // Of which no client sends a line break or a null: those are for sockets.ts.
  const text = hostileText(random)
    .replace(/[\r\n\0]/g, ' ')
    .slice(0, 6_000)
  const value = Buffer.from(text.trim() === '' ? 'x' : text)
  const pairs: [string, string | Buffer][][] = [
    [['Idempotency-Key', value]],
    [['Idempotency-Key', 'k'.repeat(random.pick([255, 256, 8_000]) as number)]],
    [
      ['Idempotency-Key', 'a'],
      ['Idempotency-Key', 'b'],
    ],
    [['Authorization', 'Bearer second']],
    [['Authorization', value]],
    [['Accept', random.pick(['', ';', 'text/html', '*/*;q=0', 'image/png', 'x'.repeat(4_000), ',,,,']) as string]],
    [
      [
        'Accept-Encoding',
        random.pick(['gzip', 'gzip;q=0', 'br', '*;q=0', 'identity;q=0', '', ',', 'gzip;q=x']) as string,
      ],
    ],
    [['Accept-Language', random.pick(['*', 'de', ';q=1', 'x'.repeat(3_000), 'de;q=NaN', ',']) as string]],
    [['Accept-Charset', 'utf-16']],
    [
      [
        'Range',
        random.pick([
          'bytes=0-0',
          'bytes=-1',
          'bytes=9-1',
          'bytes=0-,0-,0-',
          'items=0-5',
          `bytes=${'0-1,'.repeat(500)}`,
        ]) as string,
      ],
    ],
    [
      ['If-Range', '"x"'],
      ['Range', 'bytes=0-1'],
    ],
    [
      [
        'If-None-Match',
        random.pick(['*', '"x"', 'x', 'W/"1"', '"1", "2"', `${'"a",'.repeat(1_000)}"b"`, '""', '"']) as string,
      ],
    ],
    [
      [
        'If-Match',
        random.pick([
          '*',
          '"1"',
          '1',
          'W/"1-xxxxxxxxxxxxxxxxxxxxxx"',
          '"999999999999"',
          `${'"1",'.repeat(300)}"2"`,
          '',
          ',',
          '"1" "2"',
        ]) as string,
      ],
    ],
    [['If-Modified-Since', random.pick(['now', 'Thu, 01 Jan 1970 00:00:00 GMT', 'x']) as string]],
    [['Expect', '100-continue']],
    [['Expect', random.pick(['200-ok', 'x', '100-continue, 100-continue', '']) as string]],
    [['X-Request-Id', value]],
    [['X-Request-Id', random.pick(['a b', '<script>', 'x'.repeat(200), 'x'.repeat(5_000), '']) as string]],
    [['X-Forwarded-For', random.pick(['127.0.0.1', 'x', '::1, 10.0.0.1', '1.2.3.4,'.repeat(300)]) as string]],
    [
      ['X-Forwarded-Host', 'evil.example'],
      ['X-Forwarded-Proto', 'javascript'],
    ],
    [['Forwarded', 'for="_x";host=evil.example']],
    [
      [
        'Host',
        random.pick([
          'evil.example',
          '',
          '127.0.0.1:99999',
          '[::1',
          'a b',
          'localhost',
          '127.0.0.1, evil.example',
          'x'.repeat(2_000),
        ]) as string,
      ],
    ],
    [
      ['Host', '127.0.0.1'],
      ['Host', 'evil.example'],
    ],
    [['Origin', random.pick(['null', 'https://evil.example', '*', 'x', '']) as string]],
    [['Cookie', value]],
    [['Cookie', `${'a=b; '.repeat(1_000)}`]],
    [['Connection', random.pick(['close', 'upgrade', 'keep-alive, close, x', 'Authorization']) as string]],
    [
      ['Upgrade', 'websocket'],
      ['Connection', 'Upgrade'],
      ['Sec-WebSocket-Key', 'x'],
      ['Sec-WebSocket-Version', '13'],
    ],
    [
      ['Upgrade', 'h2c'],
      ['Connection', 'Upgrade, HTTP2-Settings'],
      ['HTTP2-Settings', 'AAAA'],
    ],
    [
      ['Max-Forwards', '0'],
      ['Via', '1.1 x'],
      ['TE', 'trailers, deflate'],
    ],
    [
      ['Content-Location', 'x'],
      ['Content-Range', 'bytes 0-1/2'],
      ['Digest', 'x'],
    ],
    [
      ['__proto__', 'x'],
      ['constructor', 'y'],
      ['toString', 'z'],
    ],
    Array.from({ length: 900 }, (_, i): [string, string] => [`X-${i}`, 'y']),
    Array.from({ length: 3_000 }, (): [string, string] => ['A', '']),
    [['X-Long', 'y'.repeat(random.pick([15_000, 17_000, 100_000]) as number)]],
  ]
  return random.pick(pairs) as [string, string | Buffer][]
}

export function headers(stage: Stage, random: Random): HostileRequest {
  const { sent, face } = right(stage, random)
  const added = header(random)
  const names = added.map(([name]) => name)
  // In place of its own, or beside it.
  const kept = random.below(2) === 0 ? sent.headers : sent.headers.filter(([name]) => !names.includes(name))
  return exchange(
    'header',
    face,
    { ...sent, headers: random.below(2) === 0 ? [...kept, ...added] : [...added, ...kept] },
    {
      isAlone:
        names.includes('Upgrade') ||
        names.includes('Connection') ||
        names.includes('Host') ||
        added.length > 500 ||
        names.includes('X-Long'),
    },
  )
}

const roots = [
  '/api/v1/me',
  '/api/v1/events',
  '/api/mcp',
  '/oauth/auth',
  '/t/x',
  '/u/x',
  '/exports/x',
  '/door',
  '/door/main.ts',
  '/docs',
  '/docs/guides/webhooks',
  '/openapi.json',
  '/health',
  '/ready',
  '/mail',
  '/confirm/x',
  '/.well-known/oauth-authorization-server/oauth',
  '/',
  '/metrics',
  '/favicon.ico',
  '/postmark',
]
const segments = [
  '%00',
  '%2e%2e',
  '..',
  '.',
  '%2f',
  '%5c',
  '\\',
  ';x=1',
  '%c0%ae%c0%ae',
  '%252e%252e',
  '....',
  '%20',
  '%0d%0aX-Injected:yes',
  '*',
  '~',
  'package.json',
  '.env',
  '%',
  '%zz',
  ':',
  '@',
  '__proto__',
  'constructor',
  '%e2%80%ae',
  '\u00e9',
  '\u00ff',
]

export function path(stage: Stage, random: Random): HostileRequest {
  const root = random.pick(roots) as string
  const segment = random.below(3) === 0 ? encodedHostile(random) : (random.pick(segments) as string)
  const id = stage.named('event_id', random) ?? ''
  const target = random.pick([
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
    `${root}/${'a/'.repeat(random.pick([100, 3_000]) as number)}`,
    `${root}/${'x'.repeat(random.pick([2_000, 8_000, 15_000, 20_000]) as number)}`,
    `/api/v1/events/${id}${segment}`,
    `/api/v1/events/${segment}${id}/ticket-types`,
    `/api/v1/events/${id.toUpperCase()}`,
    `/api/v1/attendees/${stage.named('attendee_id', random)}/ticket.png${segment}`,
    `http://evil.example${root}`,
    `http://127.0.0.1${root}`,
    'http://',
    `//evil.example${root}`,
  ]) as string
  const method = random.pick(['GET', 'GET', 'GET', 'HEAD', 'POST', 'OPTIONS', 'DELETE']) as string
  const headers: Sent['headers'] = [
    ['Authorization', `Bearer ${stage.keys.full}`],
    ['Cookie', stage.cookie],
  ]
  if (random.below(3) === 0) headers.push(['Accept', 'text/html'])
  return exchange('path', 'any', { method, target, headers })
}
