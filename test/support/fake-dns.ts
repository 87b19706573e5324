// A DNS of our own, for names that the real one would not resolve as a test needs. The last answer is repeated.

import type { FindAddresses } from '../../src/process/outbound/find-addresses.ts'

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
