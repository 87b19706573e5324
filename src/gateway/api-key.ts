// The text of an API key: how one is made, recognised and hashed. Nothing here knows who a key belongs to, and nothing
// may keep or log the text itself.

import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { customAlphabet } from 'nanoid'

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** What every key begins with. */
export const marker = 'usher_live_'
const randomLength = 32 // 190 bits
const checksumLength = 6 // 62^6 holds any 32-bit number
const shownLength = 8

const randomPart = customAlphabet(base62, randomLength)
const shape = new RegExp(`^${marker}[0-9A-Za-z]{${randomLength + checksumLength}}$`)

/** A new key: `usher_live_`, 32 random base62 characters, and 6 of checksum, so that a scanner of leaked secrets, or we, can tell a key from a typing error without asking the database. */
export function createKey(): string {
  const body = marker + randomPart()
  return body + checksum(body)
}

/** Whether the text can be a key at all: right shape, right checksum. */
export function isWellFormedKey(text: string): boolean {
  return shape.test(text) && text.slice(-checksumLength) === checksum(text.slice(0, -checksumLength))
}

/** The part that may be shown: it tells one key from another and leaves 24 random characters secret. */
export function prefixOf(key: string): string {
  return key.slice(0, marker.length + shownLength)
}

/** SHA-256 in hex: all that is ever stored or sent on. A key has too much entropy to be guessed from it. */
export function hashOf(key: string): string {
  return createHash('sha256').update(key).digest('hex')
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
