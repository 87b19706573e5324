// Decides where a webhook may go, and connects there (protection against SSRF). It must never open a connection to a private,
// reserved or local address, whatever the URL says and however the DNS answer changes: the name is resolved here, its addresses are
// checked here, and the connection goes to one of the checked addresses, on every runtime.

import { isIP, type Socket } from 'node:net'
import ipaddr from 'ipaddr.js'
import { Agent, type buildConnector } from 'undici'
import { connectToFirst } from './connect-to-first.ts'
import { createNameFinder, type FindAddresses } from './find-addresses.ts'

/** The message is shown to the customer. It quotes nothing of the URL, which may contain a secret. */
export class AddressNotAllowed extends Error {}

export type Routes = {
  /** @throws AddressNotAllowed, if the URL alone shows that it is not allowed. */
  to(url: string): { origin: string; path: string }
  /** Fails a request with AddressNotAllowed, or with the network's own error. */
  dispatcher: Agent
  /** Whether a request failed before a connection was open. */
  couldNotConnect(error: unknown): boolean
  /** Closes all connections, including those in use and those being opened. */
  close(): void
}

const loopbackAddresses = ['127.0.0.1', '::1']
const loopbackHosts = ['localhost', '127.0.0.1', '[::1]']

/** Connections are reused, which saves the handshakes of a burst, and closed soon after it. The caller limits how many are open at
 * once: a request that waited for a connection here would use up its own timeout. */
const reuse = { pipelining: 1, keepAliveTimeout: 4_000, keepAliveMaxTimeout: 4_000 }

export function createRoutes({
  allowLoopback,
  ownPorts = [],
  timeoutMs,
  findAddresses,
}: {
  allowLoopback: boolean
  /** Ports that are refused on loopback even if it is allowed. */
  ownPorts?: number[]
  /** For opening a connection, from the DNS query to the end of the handshake. */
  timeoutMs: number
  findAddresses?: FindAddresses | undefined
}): Routes {
  const names = createNameFinder()
  const find = findAddresses ?? names.find
  const closing = new AbortController()
  const connectionErrors = new WeakSet<Error>()

  const isAllowed = (protocol: string, address: string): boolean =>
    (protocol === 'https:' && isPublic(address)) || (allowLoopback && loopbackAddresses.includes(address))

  const isOwn = (port: number): boolean => allowLoopback && ownPorts.includes(port)

  /** URL has normalised 0x7f.1, 2130706433 and the like to 127.0.0.1 by now. */
  async function allowedAddresses({ hostname, protocol, port }: buildConnector.Options): Promise<string[]> {
    const addresses = isIP(hostname) === 0 ? await find(hostname) : [hostname]
    if (addresses.some((address) => loopbackAddresses.includes(address)) && isOwn(portOf(protocol, port))) {
      throw new AddressNotAllowed("The address is not allowed: it is Usher's own.")
    }
    // All of them must be allowed: one public address does not make up for a private one.
    if (addresses.length === 0 || !addresses.every((address) => isAllowed(protocol, address))) {
      throw new AddressNotAllowed('The address is not allowed: it is private or reserved.')
    }
    return addresses
  }

  async function connect(options: buildConnector.Options): Promise<Socket> {
    const until = AbortSignal.any([closing.signal, AbortSignal.timeout(timeoutMs)])
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

  // One listener for each webhook in flight: see send-webhook.ts.
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

/** Only 2000::/3 of IPv6 is allocated (https://www.iana.org/assignments/ipv6-address-space). 168.63.129.16 is Azure's metadata service,
 * in the public range. */
function isPublic(address: string): boolean {
  if (!ipaddr.isValid(address) || address === '168.63.129.16') return false
  const parsed = ipaddr.parse(address)
  return parsed.range() === 'unicast' && (parsed.kind() === 'ipv4' || parsed.match(ipaddr.parseCIDR('2000::/3')))
}
