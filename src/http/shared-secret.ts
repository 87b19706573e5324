// A secret that a caller has to know. In comes what was given, out goes whether it is the secret; how long that takes tells
// nothing of it, not even its length.

import { createHash, timingSafeEqual } from 'node:crypto'

const digest = (text: string) => createHash('sha256').update(text).digest()

export function sharedSecret(secret: string): (given: string) => boolean {
  const expected = digest(secret)
  return (given) => timingSafeEqual(digest(given), expected)
}
