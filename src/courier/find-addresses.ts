// Finds the addresses of a host name. In comes a name, out go its addresses of both kinds, one at least, or an error with a code
// that says whether there is no such name or nobody to ask. A name whose servers do not answer must hold up no other name, nor
// the end of the process.

import { Resolver } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { versions } from 'node:process'

export type FindAddresses = (hostname: string) => Promise<string[]>

export type NameFinder = {
  find: FindAddresses
  /** Fails what is being looked up. */
  cancel(): void
}

const impatient = { timeout: 2_000, tries: 2 }

/** Asks the name servers of this machine, or others, without a thread for each question, of which Node has two. */
export function askNameServers(servers?: string[]): NameFinder {
  const resolver = new Resolver(impatient)
  if (servers) resolver.setServers(servers)
  const ask = (question: 'resolve4' | 'resolve6', hostname: string) =>
    new Promise<string[]>((resolve, reject) => {
      resolver[question](hostname, (error, addresses) => (error ? reject(error) : resolve(addresses)))
    })

  return {
    cancel: () => resolver.cancel(),
    async find(hostname) {
      // RFC 6761: nobody is asked for it.
      if (hostname === 'localhost') return ['127.0.0.1', '::1']
      const answers = await Promise.allSettled([ask('resolve4', hostname), ask('resolve6', hostname)])
      const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
      if (addresses.length > 0) return addresses
      const codes = answers.map((answer) => answer.status === 'rejected' && answer.reason.code)
      const isUnknown = codes.some((code) => code === 'ENOTFOUND' || code === 'ENODATA')
      throw Object.assign(new Error('no address'), { code: isUnknown ? 'ENOTFOUND' : 'EAI_AGAIN' })
    },
  }
}

/** Deno has threads enough, and need not be allowed to ask name servers itself. */
const askSystem: NameFinder = {
  find: async (hostname) => (await lookup(hostname, { all: true })).map(({ address }) => address),
  cancel() {},
}

export const createNameFinder = (): NameFinder => ('deno' in versions ? askSystem : askNameServers())
