// What is sent where something else is expected: JSON values as text, and plain text for paths, queries, forms and headers.

import type { Random } from '../random.ts'

const numbers = [
  ...['0', '-0', '-1', '1', '0.5', '1e-400', '1e308', '-1e308', '1e309', '1e400', '9007199254740993', '2147483648'],
  ...[
    '-2147483649',
    '9223372036854775808',
    '0.1e1',
    '1e15',
    '1.0',
    '00',
    '01',
    '+1',
    '.5',
    '1.',
    '0x10',
    'NaN',
    'Infinity',
  ],
  ...['-Infinity', '1_000', '1e', '123456789012345678901234567890', '0.00000000000000000001', '4294967296', '1E+2'],
]

/** Of any interface: what Postgres, JSON, HTML, logs, paths or spreadsheets may take for something else. */
const texts = [
  ...[
    '',
    ' ',
    '\t',
    '\n',
    'a\r\nX-Injected: yes',
    '\u0000',
    'a\u0000b',
    '\ud800',
    'a\udfff',
    '\udc00\ud800',
    '\ufeff',
    '\ufffd',
    '\uffff',
  ],
  ...['\u202eabc', '\u200b', 'e\u0301'.repeat(100), '👩‍👩‍👧‍👦'.repeat(40), 'ﷺ'.repeat(50), 'İ', 'ß', 'ﬀ', '１２'],
  ...[
    "'",
    '"',
    '\\',
    "'; drop table events; --",
    '$1',
    '#{7*7}',
    '{{7*7}}',
    '%s%n',
    '<script>alert(1)</script>',
    '=1+1',
    '../../x',
  ],
  ...[
    'null',
    'undefined',
    'true',
    'NaN',
    '[object Object]',
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    '*',
    '%',
    '_',
  ],
  ...[
    '2026-02-30T00:00:00Z',
    '2026-01-01',
    '2026-01-01T00:00:00',
    '0000-01-01T00:00:00Z',
    '+275760-09-13T00:00:00Z',
    '9999-12-31T23:59:60Z',
  ],
  ...[
    '2026-01-01T00:00:00+99:99',
    'infinity',
    '-infinity',
    'now',
    'epoch',
    'P1Y',
    'P-99999999999Y',
    'PT1e9S',
    'Europe/Nowhere',
    'posixrules',
  ],
  ...[
    '00000000-0000-0000-0000-000000000000',
    'ffffffff-ffff-ffff-ffff-ffffffffffff',
    '{00000000-0000-0000-0000-000000000000}',
    '0'.repeat(36),
  ],
  ...[
    'a@b',
    'a@b.c',
    '"a b"@example.com',
    'a@[127.0.0.1]',
    `${'a'.repeat(250)}@example.com`,
    'a@xn--ls8h.la',
    'ä@ö.example',
  ],
  ...[
    'http://127.0.0.1',
    'https://user:pass@example.com',
    'javascript:alert(1)',
    'https://example.com:99999',
    'https://[::1]/',
    'ftp://x',
    'https://',
  ],
  ...['EUR', 'eur', 'XXX', 'JPY', '€', '-1', '1e3', '0x10', '2147483648', '99999999999999999999'],
]

/** @param scale bytes, for what is to be too long. */
const long = (random: Random): string => {
  const piece = random.pick(['x', 'ä', '🎟', ' ', "'", '\u0000', '\\']) as string
  return piece.repeat(random.pick([41, 201, 256, 501, 5_001, 20_001]) as number)
}

export const hostileText = (random: Random): string =>
  random.below(12) === 0 ? long(random) : (random.pick(texts) as string)

/** Text of JSON that may be no JSON. */
export function hostileLeaf(random: Random): string {
  const kind = random.below(100)
  if (kind < 25) return random.pick(numbers) as string
  if (kind < 65) return JSON.stringify(hostileText(random))
  if (kind < 75)
    return random.pick(['null', 'true', 'false', '[]', '{}', '[null]', '[[]]', '{"":""}', '""', '"0"']) as string
  if (kind < 83) return random.pick(broken) as string
  if (kind < 91) return random.pick(prototypes) as string
  if (kind < 96) return deep(random)
  return wide(random)
}

const broken = [
  ...[
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\u0000"',
    '"a\\u0000b"',
    '"\\uD83D"',
    '"\\u12"',
    '"\\x41"',
    '"\\',
    '"a\nb"',
    '"\u0000"',
    '"open',
  ],
  ...[
    'undefined',
    "'single'",
    '`tick`',
    '[1,]',
    '{"a":1,}',
    '{a:1}',
    '{"a"}',
    '{"a":1 "b":2}',
    '[1 2]',
    ',',
    'tru',
    '/* */1',
    '1/**/',
  ],
]

const prototypes = [
  '{"__proto__":{"is_admin":true}}',
  '{"constructor":{"prototype":{"status":"x"}}}',
  '{"prototype":{}}',
  '{"__proto__":null,"toString":1,"valueOf":2}',
  '{"hasOwnProperty":"x"}',
  '{"then":"x"}',
  '{"toJSON":"x"}',
  '{"length":3,"0":"a"}',
  '["__proto__"]',
]

function deep(random: Random): string {
  const [open, close] = random.pick([
    ['[', ']'],
    ['{"a":', '}'],
    ['{"__proto__":', '}'],
  ]) as [string, string]
  const levels = random.pick([9, 10, 11, 100, 10_000]) as number
  return `${open.repeat(levels)}1${random.below(4) === 0 ? '' : close.repeat(levels)}`
}

function wide(random: Random): string {
  const size = random.pick([60, 9_990, 20_000, 100_000]) as number
  const isList = random.below(2) === 0
  const items = Array.from({ length: size }, (_, i) => (isList ? i % 10 : `"k${i}":1`))
  return isList ? `[${items.join(',')}]` : `{${items.join(',')}}`
}

/** A name of a member, as JSON text. */
export const hostileName = (random: Random): string =>
  random.below(2) === 0
    ? (random.pick([
        '"__proto__"',
        '"constructor"',
        '"prototype"',
        '"toString"',
        '"\\u0000"',
        '"\\ud800"',
        '""',
        '"id"',
        '"organisation_id"',
      ]) as string)
    : JSON.stringify(hostileText(random))
