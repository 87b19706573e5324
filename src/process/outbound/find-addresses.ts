// Resolves a host name to its IPv4 and IPv6 addresses: at least one, or an error with code ENOTFOUND (no such name) or EAI_AGAIN (no
// answer). A name whose servers do not answer must delay neither another name nor the end of the process.

import { lookup, Resolver } from 'node:dns/promises'
import { versions } from 'node:process'

export type FindAddresses = (hostname: string) => Promise<string[]>

export type NameFinder = {
  find: FindAddresses
  /** Fails all queries in flight. */
  cancel(): void
}

const queryOptions = { timeout: 2_000, tries: 2 }

/** Queries the name servers of this machine, or those given. Unlike `lookup` it needs no thread, and Node runs only two look-ups at
 * once. */
export function askNameServers(servers?: string[]): NameFinder {
  const resolver = new Resolver(queryOptions)
  if (servers) resolver.setServers(servers)
  return {
    cancel: () => resolver.cancel(),
    async find(hostname) {
      // RFC 6761: not to be queried.
      if (hostname === 'localhost') return ['127.0.0.1', '::1']
      const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
      const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
      if (addresses.length > 0) return addresses
      const codes = answers.map((answer) => answer.status === 'rejected' && answer.reason.code)
      const isUnknown = codes.some((code) => code === 'ENOTFOUND' || code === 'ENODATA')
      throw Object.assign(new Error('no address'), { code: isUnknown ? 'ENOTFOUND' : 'EAI_AGAIN' })
    },
  }
}

/** For Deno, which has enough threads, and may have no permission to query name servers itself. */
const askSystem: NameFinder = {
  find: async (hostname) => (await lookup(hostname, { all: true })).map(({ address }) => address),
  cancel() {},
}

export const createNameFinder = (): NameFinder => ('deno' in versions ? askSystem : askNameServers())
