// Where a webhook may go. In comes a URL that a customer chose, out goes what undici needs to reach it, or
// AddressNotAllowed. It must never open a connection to a private, reserved or local address, whatever the URL says, the
// DNS answers, or the DNS answers the next time: a name is looked up here, its addresses are checked here, and what is
// connected to is one of these, on every runtime.

import { isIP, type Socket } from 'node:net'
import ipaddr from 'ipaddr.js'
import { Agent, type buildConnector } from 'undici'
import { connectToFirst } from './connect-to-first.ts'
import { createNameFinder, type FindAddresses } from './find-addresses.ts'
import type { OwnPorts } from './own-ports.ts'

/** Its message is a sentence for the customer. It holds nothing of the URL, which may hold a secret. */
export class AddressNotAllowed extends Error {}

export type Routes = {
  /** @throws AddressNotAllowed, where the URL itself says that it must not be reached. */
  to(url: string): { origin: string; path: string }
  /** Fails a request with AddressNotAllowed where it must not connect, and with the network's word where it cannot. */
  dispatcher: Agent
  /** Whether a request failed before there was a connection to send it over. */
  couldNotConnect(error: unknown): boolean
  /** Closes connections, also those in use and those that are being made. */
  close(): void
}

const loopbackAddresses = ['127.0.0.1', '::1']
const loopbackHosts = ['localhost', '127.0.0.1', '[::1]']

/** Connections are reused, which saves the handshakes of a burst, and dropped soon after it. How many are open at once is
 * for whoever sends to bound: one that waited here would use up its time while waiting. */
const reuse = { pipelining: 1, keepAliveTimeout: 4_000, keepAliveMaxTimeout: 4_000 }

export function createRoutes({
  allowLoopback,
  ownPorts = () => [],
  timeoutMilliseconds,
  findAddresses,
}: {
  allowLoopback: boolean
  /** Refused on loopback all the same. */
  ownPorts?: OwnPorts | undefined
  /** For making a connection, from the look-up to the end of the handshake. */
  timeoutMilliseconds: number
  findAddresses?: FindAddresses | undefined
}): Routes {
  const names = createNameFinder()
  const find = findAddresses ?? names.find
  const closing = new AbortController()
  const connectionErrors = new WeakSet<Error>()

  const isAllowed = (protocol: string, address: string): boolean =>
    (protocol === 'https:' && isPublic(address)) || (allowLoopback && loopbackAddresses.includes(address))

  const isOwn = (port: number): boolean => allowLoopback && [...ownPorts()].includes(port)

  /** By now URL has turned 0x7f.1, 2130706433 and their like into 127.0.0.1. */
  async function allowedAddresses({ hostname, protocol, port }: buildConnector.Options): Promise<string[]> {
    const addresses = isIP(hostname) === 0 ? await find(hostname) : [hostname]
    if (addresses.some((address) => loopbackAddresses.includes(address)) && isOwn(portOf(protocol, port))) {
      throw new AddressNotAllowed("The address is not allowed: it is Usher's own.")
    }
    // One that is public does not make up for one that is not.
    if (addresses.length === 0 || !addresses.every((address) => isAllowed(protocol, address))) {
      throw new AddressNotAllowed('The address is not allowed: it is private or reserved.')
    }
    return addresses
  }

  async function connect(options: buildConnector.Options): Promise<Socket> {
    const until = AbortSignal.any([closing.signal, AbortSignal.timeout(timeoutMilliseconds)])
    const { hostname, protocol } = options
    const addresses = await allowedAddresses(options)
    const port = portOf(protocol, options.port)
    return connectToFirst({ addresses, port, certifiedAs: protocol === 'https:' ? hostname : null }, until)
  }

  const dispatcher = new Agent({
    ...reuse,
    connect(options, done) {
      connect(options).then(
        (socket) => done(null, socket),
        (error) => {
          connectionErrors.add(error)
          done(error, null)
        },
      )
    },
  })

  // One for each webhook under way, while it is: see send-webhook.ts.
  dispatcher.setMaxListeners(0)

  return {
    dispatcher,
    couldNotConnect: (error) => connectionErrors.has(error as Error),
    close() {
      closing.abort()
      names.cancel()
      void dispatcher.destroy()
    },
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

const portOf = (protocol: string, port: string): number => Number(port) || (protocol === 'https:' ? 443 : 80)

/** Of IPv6 only 2000::/3 is given out (https://www.iana.org/assignments/ipv6-address-space). Azure's metadata service has an
 * address of the public range. */
function isPublic(address: string): boolean {
  if (!ipaddr.isValid(address) || address === '168.63.129.16') return false
  const parsed = ipaddr.parse(address)
  return parsed.range() === 'unicast' && (parsed.kind() === 'ipv4' || parsed.match(ipaddr.parseCIDR('2000::/3')))
}
