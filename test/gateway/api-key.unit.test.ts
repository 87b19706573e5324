import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { createKey, hashOf, isWellFormedKey, prefixOf } from '../../src/gateway/api-key.ts'

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const markerLength = 'usher_live_'.length

const replaceAt = (text: string, at: number, character: string) => text.slice(0, at) + character + text.slice(at + 1)

test('a key is usher_live_ or usher_test_, 32 random base62 characters and 6 of checksum', () => {
  expect(createKey()).toMatch(/^usher_live_[0-9A-Za-z]{38}$/)
  const test = createKey('test')
  expect(test).toMatch(/^usher_test_[0-9A-Za-z]{38}$/)
  expect([test, test.replace('test', 'live')].map(isWellFormedKey)).toEqual([true, false])
})

test('keys differ in every random position, and none comes twice', () => {
  const keys = Array.from({ length: 1000 }, createKey)
  expect(new Set(keys).size).toBe(1000)
  expect(new Set(keys.map(prefixOf)).size).toBe(1000)
  for (let at = markerLength; at < markerLength + 32; at += 1) {
    expect(new Set(keys.map((key) => key[at])).size, `position ${at}`).toBeGreaterThan(50)
  }
})

test('every key made is recognised', () => {
  for (let i = 0; i < 1000; i += 1) expect(isWellFormedKey(createKey())).toBe(true)
})

test('any single character changed, at any position, is noticed', () => {
  const key = createKey()
  for (let at = 0; at < key.length; at += 1) {
    for (const character of base62) {
      if (character === key[at]) continue
      expect(isWellFormedKey(replaceAt(key, at, character)), `${character} at ${at}`).toBe(false)
    }
  }
})

test('any two neighbours swapped are noticed', () => {
  const key = createKey()
  for (let at = 0; at < key.length - 1; at += 1) {
    const [first = '', second = ''] = [key[at], key[at + 1]]
    if (first === second) continue
    expect(isWellFormedKey(replaceAt(replaceAt(key, at, second), at + 1, first)), `at ${at}`).toBe(false)
  }
})

test.each([
  ['nothing', () => ''],
  ['the marker alone', () => 'usher_live_'],
  ['a key cut short', (key: string) => key.slice(0, -1)],
  ['a key with a character more', (key: string) => `${key}0`],
  ['a key and a line break', (key: string) => `${key}\n`],
  ['a key in blanks', (key: string) => ` ${key} `],
  ['a key in capitals', (key: string) => key.toUpperCase()],
  ['a test key', (key: string) => key.replace('live', 'test')],
  ['a key after another', (key: string) => key + key],
] as const)('%s is no key', (_what, mangle) => {
  expect(isWellFormedKey(mangle(createKey()))).toBe(false)
})

test('the prefix is the marker and eight characters, and leaves 24 random ones secret', () => {
  const key = createKey()
  expect(prefixOf(key)).toBe(key.slice(0, markerLength + 8))
})

test('the hash is SHA-256 of the whole text, in hex', () => {
  const key = createKey()
  expect(hashOf(key)).toBe(createHash('sha256').update(key).digest('hex'))
  expect(hashOf('usher_live_0')).toMatch(/^[0-9a-f]{64}$/)
})
