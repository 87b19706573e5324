// Text of requests besides JSON: paths, queries and forms, well and badly encoded.

import type { Random } from '../random.ts'
import { hostileText, words } from './values.ts'

/** Percent-encoded, byte by byte; a lone surrogate as the three bytes that no UTF-8 has. */
export function encode(text: string): string {
  return [...text]
    .flatMap((character) => {
      const code = character.codePointAt(0) as number
      if (code < 0xd800 || code > 0xdfff) return [...Buffer.from(character)]
      return [0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)]
    })
    .map((byte) =>
      /[A-Za-z0-9._~-]/.test(String.fromCharCode(byte))
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).padStart(2, '0')}`,
    )
    .join('')
}

const badlyEncoded = words('% %zz %00 %c0%af %e0%80%af %ff%fe %2e%2e%2f %25 %u0041 + %ed%a0%80 %f8%88%80%80%80')

export const encodedHostile = (random: Random): string =>
  random.below(3) === 0 ? random.one(badlyEncoded) : encode(hostileText(random)).slice(0, 12_000)

/** `a=1&b=2`, with up to two of its parts spoilt. */
export function queryOf(fields: [string, string][], random: Random, spoilt = random.below(3)): string {
  const pairs = fields.map(([name, value]) => `${encode(name)}=${encode(value)}`)
  for (let i = 0; i < spoilt; i++) {
    const at = random.below(pairs.length + 1)
    const [name = 'x', value = ''] = (pairs[at] ?? '').split('=')
    const other = encodedHostile(random)
    const spoil = [
      ...[`${name}=${other}`, `${name}=${other}`, `${name}=${value}&${name}=${other}`, `${name}.a=${other}`],
      ...[`${name}[]=${value}&${name}[]=${other}`, `${name}[a][b]=${other}`, `__proto__[${name}]=${other}`],
      ...[`constructor=${other}`, `${name}`, `=${other}`, `${other}=${value}`, '&&&', `${name}=`],
      `${name}=${value},${other},${value}`,
    ]
    pairs.splice(at, 1, random.one(spoil))
  }
  return pairs.join('&')
}
