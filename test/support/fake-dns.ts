// A DNS of our own, for names that point where the real one would not let a test point them. In comes what it answers each
// time it is asked, the last of it again and again; out goes what the sender of webhooks takes for the real one.

import type { FindAddresses } from '../../src/courier/find-addresses.ts'

export type FakeDns = { findAddresses: FindAddresses; asked: string[] }

export function dnsThatAnswers(...answers: string[][]): FakeDns {
  const asked: string[] = []
  return {
    asked,
    async findAddresses(hostname) {
      const addresses = answers[Math.min(asked.length, answers.length - 1)] ?? []
      asked.push(hostname)
      if (addresses.length === 0) throw Object.assign(new Error('not found'), { code: 'ENOTFOUND' })
      return addresses
    },
  }
}
