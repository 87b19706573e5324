// A DNS of our own, for names that point where the real one would not let a test point them. In comes what it answers each
// time it is asked, the last of it again and again; out goes what node:net takes for dns.lookup.

import { isIP, type LookupFunction } from 'node:net'

export type FakeDns = { lookup: LookupFunction; asked: string[] }

export function dnsThatAnswers(...answers: string[][]): FakeDns {
  const asked: string[] = []
  return {
    asked,
    lookup(hostname, options, callback) {
      const addresses = answers[Math.min(asked.length, answers.length - 1)] ?? []
      asked.push(hostname)
      const found = addresses.map((address) => ({ address, family: isIP(address) }))
      const [first] = found
      setImmediate(() => {
        if (first === undefined) callback(Object.assign(new Error('not found'), { code: 'ENOTFOUND' }), [])
        else if (options.all) callback(null, found)
        else callback(null, first.address, first.family)
      })
    },
  }
}
