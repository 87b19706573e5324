// Decides where a webhook may go, and connects there (protection against SSRF). It must never open a connection to a private,
// reserved or local address, whatever the URL says and however the DNS answer changes: the name is resolved here, its addresses are
// checked here, and the connection goes to one of the checked addresses, on every runtime.

import { isIP, type Socket } from 'node:net'
import ipaddr from 'ipaddr.js'
import { Agent, buildConnector } from 'undici'
import { createNameFinder, type FindAddresses } from './find-addresses.ts'

/** The message is shown to the customer. It quotes nothing of the URL, which may contain a secret. */
export class AddressNotAllowed extends Error {}

export type Routes = {
  /** @throws AddressNotAllowed, if the URL alone shows that it is not allowed. */
  to(url: string): { origin: string; path: string }
  /** Fails a request with AddressNotAllowed, or with the network's own error. */
  dispatcher: Agent
  /** Closes all connections, including those in use and those being opened. */
  close(): void
}

const loopbackAddresses = ['127.0.0.1', '::1']
const loopbackHosts = ['localhost', '127.0.0.1', '[::1]']

// Of the addresses of a name, each but the last gets this long: enough for a handshake around the world.
const headStartMs = 1_000
const maxAddresses = 4

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
  let isClosed = false
  const connecting = new Set<Socket>()

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

  /** Tries one address after another, IPv4 first, since every network has it. @throws the error of the first. */
  async function connect(options: buildConnector.Options): Promise<Socket> {
    const until = performance.now() + timeoutMs
    const addresses = (await allowedAddresses(options)).toSorted((a, b) => isIP(a) - isIP(b)).slice(0, maxAddresses)
    const errors: unknown[] = []
    for (const [index, address] of addresses.entries()) {
      const left = until - performance.now()
      if (isClosed || left <= 0) break
      try {
        return await open(address, options, index < addresses.length - 1 ? Math.min(headStartMs, left) : left)
      } catch (error) {
        errors.push(error)
      }
    }
    throw errors[0] ?? new Error('closed')
  }

  function open(address: string, options: buildConnector.Options, timeout: number): Promise<Socket> {
    // Explicit, because NODE_TLS_REJECT_UNAUTHORIZED=0 would otherwise turn it off.
    const begin = buildConnector({ timeout, rejectUnauthorized: true }) as unknown as (
      ...args: Parameters<buildConnector.connector>
    ) => Socket
    const servername = isIP(options.hostname) === 0 ? options.hostname : ''
    return new Promise((resolve, reject) => {
      const socket = begin({ ...options, hostname: address, servername }, (error, connected) => {
        connecting.delete(socket)
        if (error === null) resolve(connected)
        else reject(error)
      })
      connecting.add(socket)
    })
  }

  const dispatcher = new Agent({
    ...reuse,
    connect(options, done) {
      connect(options).then(
        (socket) => done(null, socket),
        (error) => done(error, null),
      )
    },
  })

  // One listener for each webhook in flight: see send-webhook.ts.
  dispatcher.setMaxListeners(0)

  return {
    dispatcher,
    close() {
      isClosed = true
      names.cancel()
      for (const socket of connecting) socket.destroy(new Error('closed'))
      void dispatcher.destroy()
    },
    to(text) {
      const url = URL.parse(text)
      if (url === null) throw new AddressNotAllowed('The address is not a URL.')
      if (url.username !== '' || url.password !== '') {
        throw new AddressNotAllowed('The address is not allowed: it must not contain a user name or a password.')
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

/** Needed because undici applies a signal only once it is connected. @throws the reason of the deadline */
export function inTime<T>(deadline: AbortSignal, work: Promise<T>): Promise<T> {
  const over = new Promise<never>((_, reject) => {
    deadline.addEventListener('abort', () => reject(deadline.reason), { once: true })
  })
  return Promise.race([work, over])
}
