// Generates, recognises and hashes API keys. Must never keep or log the text of one.

import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { customAlphabet } from 'nanoid'

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** Beginning of every key, by the kind of its organisation. All have one length. */
export const markers = { live: 'usher_live_', test: 'usher_test_' } as const
export type KeyMode = keyof typeof markers
const randomLength = 32 // 190 bits
const checksumLength = 6 // 62^6 holds any 32-bit number
const shownLength = 8

const randomPart = customAlphabet(base62, randomLength)
const shape = new RegExp(`^usher_(live|test)_[0-9A-Za-z]{${randomLength + checksumLength}}$`)

/** A new key: `usher_live_` or `usher_test_`, 32 random base62 characters and a checksum of 6, by which secret scanners, and Usher without a query, tell a key from a mistyped one. */
export function createKey(mode: KeyMode = 'live'): string {
  const body = markers[mode] + randomPart()
  return body + checksum(body)
}

/** Whether the text has the shape and the checksum of a key. */
export function isWellFormedKey(text: string): boolean {
  return shape.test(text) && text.slice(-checksumLength) === checksum(text.slice(0, -checksumLength))
}

/** Of a key or of its beginning. */
export const modeOf = (key: string): KeyMode => (key.startsWith(markers.test) ? 'test' : 'live')

/** Whether the text may contain a key. */
export const hasMarker = (text: string): boolean => Object.values(markers).some((marker) => text.includes(marker))

/** The part that may be shown: identifies the key and leaves 24 random characters secret. */
export function prefixOf(key: string): string {
  return key.slice(0, markers.live.length + shownLength)
}

/** SHA-256 in hex: all that is ever stored or passed on. Keys have too much entropy to be guessed from it. */
export function hashOf(key: string): string {
  return hash('sha256', key)
}

function checksum(body: string): string {
  let rest = crc32(body)
  let digits = ''
  for (let i = 0; i < checksumLength; i++) {
    digits = base62[rest % 62] + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}
