// What is sent where something else is expected: JSON values as text, and plain text for paths, queries, forms and headers.

import type { Random } from '../random.ts'

/** The words of a text. */
export const words = (text: string) => text.trim().split(/\s+/)

const numbers = words(`
  0 -0 -1 1 0.5 1e-400 1e308 -1e308 1e309 1e400 9007199254740993 2147483648 -2147483649 4294967296 9223372036854775808 0.1e1 1e15 1.0 00 01 +1
  .5 1. 0x10 NaN Infinity -Infinity 1_000 1e 123456789012345678901234567890 0.00000000000000000001 1E+2`)

/** Of any interface: what Postgres, JSON, HTML, logs, paths or spreadsheets may take for something else. */
const texts = [
  ...words(String.raw`
    ' " \ $1 #{7*7} {{7*7}} %s%n <script>alert(1)</script> =1+1 ../../x null undefined true NaN __proto__ constructor toString * % _ € -1 1e3
    0x10 2147483648 99999999999999999999 EUR eur XXX JPY İ ß ﬀ １２ Europe/Nowhere posixrules P1Y P-99999999999Y PT1e9S now epoch infinity
    -infinity 2026-02-30T00:00:00Z 2026-01-01 2026-01-01T00:00:00 0000-01-01T00:00:00Z +275760-09-13T00:00:00Z 9999-12-31T23:59:60Z
    2026-01-01T00:00:00+99:99 00000000-0000-0000-0000-000000000000 ffffffff-ffff-ffff-ffff-ffffffffffff
    {00000000-0000-0000-0000-000000000000} 000000000000000000000000000000000000 a@b a@b.c a@[127.0.0.1] a@xn--ls8h.la ä@ö.example
    http://127.0.0.1 https://user:pass@example.com javascript:alert(1) https://example.com:99999 https://[::1]/ ftp://x https://`),
  ...['', ' ', '\t', '\n', 'a\r\nX-Injected: yes', '\u0000', 'a\u0000b', '\ud800', 'a\udfff', '\udc00\ud800', '\ufeff'],
  ...['\uffff', '\u202eabc', '\u200b', 'e\u0301'.repeat(100), '👩‍👩‍👧‍👦'.repeat(40), 'ﷺ'.repeat(50), '[object Object]'],
  ...["'; drop table events; --", '"a b"@example.com', `${'a'.repeat(250)}@example.com`],
]

/** Too long for most fields. */
const long = (random: Random): string =>
  random.one(['x', 'ä', '🎟', ' ', "'", '\u0000', '\\']).repeat(random.one([41, 201, 256, 501, 5_001, 20_001]))

export const hostileText = (random: Random): string => (random.below(12) === 0 ? long(random) : random.one(texts))

/** Text of JSON that may be no JSON. */
export function hostileLeaf(random: Random): string {
  const kind = random.below(100)
  if (kind < 25) return random.one(numbers)
  if (kind < 65) return JSON.stringify(hostileText(random))
  if (kind < 75) return random.one(words('null true false [] {} [null] [[]] {"":""} "" "0"'))
  if (kind < 83) return random.one(broken)
  if (kind < 91) return random.one(prototypes)
  return kind < 96 ? deep(random) : wide(random)
}

const broken = [
  ...words(String.raw`
    "\ud800" "\udc00\ud800" "\u0000" "a\u0000b" "\uD83D" "\u12" "\x41" "\ "open undefined 'single' ${'`'}tick${'`'} [1,] {"a":1,} {a:1} {"a"} , tru
    1/**/`),
  ...['"a\nb"', '"\u0000"', '{"a":1 "b":2}', '[1 2]', '/* */1'],
]

const prototypes = words(`
  {"__proto__":{"is_admin":true}} {"constructor":{"prototype":{"status":"x"}}} {"prototype":{}} {"__proto__":null,"toString":1,"valueOf":2}
  {"hasOwnProperty":"x"} {"then":"x"} {"toJSON":"x"} {"length":3,"0":"a"} ["__proto__"]`)

function deep(random: Random): string {
  const open = random.one(['[', '{"a":', '{"__proto__":'])
  const levels = random.one([9, 10, 11, 100, 10_000])
  return `${open.repeat(levels)}1${random.below(4) === 0 ? '' : (open === '[' ? ']' : '}').repeat(levels)}`
}

function wide(random: Random): string {
  const size = random.one([60, 9_990, 20_000, 100_000])
  const isList = random.below(2) === 0
  const items = Array.from({ length: size }, (_, i) => (isList ? i % 10 : `"k${i}":1`))
  return isList ? `[${items.join(',')}]` : `{${items.join(',')}}`
}

/** A name of a member, as JSON text. */
export const hostileName = (random: Random): string =>
  random.below(2) === 0
    ? random.one(words(String.raw`"__proto__" "constructor" "toString" "\u0000" "\ud800" "" "id" "organisation_id"`))
    : JSON.stringify(hostileText(random))
