// Where a webhook may go. In comes a URL that a customer chose, out goes what node:http needs to reach it, or
// AddressNotAllowed. It must never open a connection to a private, reserved or local address, whatever the URL says, the
// DNS answers, or the DNS answers the next time: names are checked as they are connected to, and not before.

import * as dns from 'node:dns'
import * as http from 'node:http'
import * as https from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { RequestFilteringHttpAgent, RequestFilteringHttpsAgent } from 'request-filtering-agent'

/** Its message is a sentence for the customer. It holds nothing of the URL, which may hold a secret. */
export class AddressNotAllowed extends Error {}

export type Route = {
  request: typeof http.request
  options: http.RequestOptions
}

const LOOPBACK = ['127.0.0.1', '::1']
const LOOPBACK_HOSTS = ['localhost', ...LOOPBACK]

/** Connections are reused, which saves the handshakes of a burst, and dropped soon after it. How many are open at once is
 * for whoever sends to bound: one that waited here would use up its time while waiting. */
const reuse = { keepAlive: true, maxFreeSockets: 2, timeout: 5_000 }

export function createRoutes({
  allowLoopback,
  lookup = dns.lookup,
}: {
  allowLoopback: boolean
  lookup?: LookupFunction | undefined
}): { to(url: string): Route; close(): void } {
  const filter = { allowIPAddressList: allowLoopback ? LOOPBACK : [] }
  const overTls = {
    // Said here, for NODE_TLS_REJECT_UNAUTHORIZED=0 would otherwise have the last word.
    agent: new RequestFilteringHttpsAgent({ ...reuse, ...filter, rejectUnauthorized: true }),
    isRefused: passesFilterButIsNotPublic,
  }
  const inTheClear = {
    agent: new RequestFilteringHttpAgent({ ...reuse, ...filter }),
    isRefused: (address: string) => !LOOPBACK.includes(address),
  }

  return {
    to(text) {
      const url = parse(text)
      // URL has by now turned 0x7f.1, 2130706433 and their like into 127.0.0.1. The brackets of IPv6 are only notation.
      const hostname = url.hostname.replace(/^\[(.*)\]$/, '$1')
      const isTls = url.protocol === 'https:'
      if (!isTls && !(url.protocol === 'http:' && allowLoopback && LOOPBACK_HOSTS.includes(hostname))) {
        throw new AddressNotAllowed('The address is not allowed: it must begin with https.')
      }
      const { agent, isRefused } = isTls ? overTls : inTheClear
      if (isIP(hostname) !== 0 && isRefused(hostname)) throw notPublic()
      return {
        request: isTls ? https.request : http.request,
        options: {
          protocol: url.protocol,
          hostname,
          port: url.port,
          path: url.pathname + url.search,
          agent,
          // Given with each request, although the agent could hold it: Deno 2.1 asks no agent, which would be sending without
          // any filter. But no Deno takes this option and then asks no agent: 2.1 to 2.5 throw, and 2.9 obeys both.
          lookup: refusing(isRefused, lookup),
        },
      }
    },
    close() {
      overTls.agent.destroy()
      inTheClear.agent.destroy()
    },
  }
}

function parse(text: string): URL {
  const url = URL.parse(text)
  if (url === null) throw new AddressNotAllowed('The address is not a URL.')
  if (url.username !== '' || url.password !== '') {
    throw new AddressNotAllowed('The address is not allowed: it must not hold a user name or a password.')
  }
  return url
}

/** What request-filtering-agent takes for public and is not: IPv6 outside 2000::/3, the only part that is given out
 * (https://www.iana.org/assignments/ipv6-address-space), in which [::127.0.0.1] is; and Azure's metadata service, which has
 * an address of the public range. Loopback is the agent's to allow or refuse. */
function passesFilterButIsNotPublic(address: string): boolean {
  if (isIP(address) === 6) return address !== '::1' && !/^[23][0-9a-f]{3}:/i.test(address)
  return address === '168.63.129.16'
}

/** A look-up that fails if any address of the name is refused, also if others are not. */
function refusing(isRefused: (address: string) => boolean, lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) =>
    lookup(hostname, options, (error, found, family) => {
      const addresses = typeof found === 'string' ? [found] : (found ?? []).map(({ address }) => address)
      callback(error ?? (addresses.some(isRefused) ? notPublic() : null), found, family)
    })
}

const notPublic = () => new AddressNotAllowed('The address is not allowed: it is private or reserved.')

/** The agent's refusals have no class and no code of their own. */
export const isRefusalOfAgent = (error: Error): boolean => /is not allowed\. Because,? It is /.test(error.message)
