// Where a webhook may go. In comes a URL that a customer chose, out goes what undici needs to reach it, or
// AddressNotAllowed. It must never open a connection to a private, reserved or local address, whatever the URL says, the
// DNS answers, or the DNS answers the next time: a name is looked up here, its addresses are checked here, and what is
// connected to is one of these, on every runtime.

import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { Agent, buildConnector } from 'undici'

/** Its message is a sentence for the customer. It holds nothing of the URL, which may hold a secret. */
export class AddressNotAllowed extends Error {}

/** Finds the addresses of a host name, one at least, or fails. */
export type FindAddresses = (hostname: string) => Promise<string[]>

export type Routes = {
  /** @throws AddressNotAllowed, where the URL itself says that it must not be reached. */
  to(url: string): { origin: string; path: string }
  /** Fails a request with AddressNotAllowed where it must not connect, and with the network's word where it cannot. */
  dispatcher: Agent
}

const loopbackAddresses = ['127.0.0.1', '::1']
const loopbackHosts = ['localhost', '127.0.0.1', '[::1]']
const mostAddresses = 4

/** Connections are reused, which saves the handshakes of a burst, and dropped soon after it. How many are open at once is
 * for whoever sends to bound: one that waited here would use up its time while waiting. */
const reuse = { pipelining: 1, keepAliveTimeout: 4_000, keepAliveMaxTimeout: 4_000 }

export function createRoutes({
  allowLoopback,
  findAddresses = askSystem,
}: {
  allowLoopback: boolean
  findAddresses?: FindAddresses | undefined
}): Routes {
  // Certificates are checked, which is said here, for NODE_TLS_REJECT_UNAUTHORIZED=0 would otherwise have the last word.
  const connect = buildConnector({ rejectUnauthorized: true, allowH2: false })

  const isAllowed = (protocol: string, address: string): boolean =>
    (protocol === 'https:' && isPublic(address)) || (allowLoopback && loopbackAddresses.includes(address))

  /** By now URL has turned 0x7f.1, 2130706433 and their like into 127.0.0.1. */
  async function allowedAddresses({ hostname, protocol }: buildConnector.Options): Promise<string[]> {
    const addresses = isIP(hostname) === 0 ? await findAddresses(hostname) : [hostname]
    // One that is public does not make up for one that is not.
    if (!addresses.every((address) => isAllowed(protocol, address))) {
      throw new AddressNotAllowed('The address is not allowed: it is private or reserved.')
    }
    // IPv4 first: not every network has IPv6.
    return addresses.toSorted((a, b) => isIP(a) - isIP(b)).slice(0, mostAddresses)
  }

  /** To the first of the addresses that lets us; if none does, what the first of them said. */
  function connectTo([address, ...others]: string[], options: buildConnector.Options, done: buildConnector.Callback) {
    // The name stays in `host`: the certificate has to be for it.
    connect({ ...options, hostname: address as string }, (...result) => {
      if (result[0] === null || others.length === 0) done(...result)
      else connectTo(others, options, (...next) => done(...(next[0] === null ? next : result)))
    })
  }

  return {
    dispatcher: new Agent({
      ...reuse,
      connect(options, done) {
        allowedAddresses(options)
          .then((addresses) => connectTo(addresses, options, done))
          .catch((error) => done(error, null))
      },
    }),
    to(text) {
      const url = URL.parse(text)
      if (url === null) throw new AddressNotAllowed('The address is not a URL.')
      if (url.username !== '' || url.password !== '') {
        throw new AddressNotAllowed('The address is not allowed: it must not hold a user name or a password.')
      }
      const isInTheClear = url.protocol === 'http:' && allowLoopback && loopbackHosts.includes(url.hostname)
      if (url.protocol !== 'https:' && !isInTheClear) {
        throw new AddressNotAllowed('The address is not allowed: it must begin with https.')
      }
      return { origin: url.origin, path: url.pathname + url.search }
    },
  }
}

const askSystem: FindAddresses = async (hostname) => {
  const found = await lookup(hostname, { all: true })
  return found.map(({ address }) => address)
}

/** Of IPv6 only 2000::/3 is given out (https://www.iana.org/assignments/ipv6-address-space). Azure's metadata service has an
 * address of the public range. */
function isPublic(address: string): boolean {
  if (!ipaddr.isValid(address) || address === '168.63.129.16') return false
  const parsed = ipaddr.parse(address)
  return parsed.range() === 'unicast' && (parsed.kind() === 'ipv4' || parsed.match(ipaddr.parseCIDR('2000::/3')))
}
