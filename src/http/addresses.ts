// The addresses that OAuth is about. What a client reads here it compares letter by letter, so they follow from PUBLIC_URL, or without
// one from the Host header, as long as that is this machine.

import type { Request } from 'express'
import { isLoopback } from '../process/loopback.ts'

export type Addresses = {
  /** Scheme, host and port. */
  origin: string
  /** Of PUBLIC_URL, which a proxy strips; empty, or begins with a slash. */
  path: string
  /** Where MCP is offered with OAuth. */
  resource: string
  issuer: string
  /** Of the metadata of the resource (RFC 9728). */
  resourceMetadata: string
  isSecure: boolean
}

export const connectPath = '/api/mcp/connect'
export const oauthPath = '/oauth'

/** What the pages are below. */
export const baseOf = (addresses: Addresses | undefined): string | undefined =>
  addresses && addresses.origin + addresses.path

/**
 * The name of a cookie. One with a prefix cannot be set by plain http, nor, where nobody else has a path of the host, by a neighbour below
 * the same domain. Over http, all ports of a host share their cookies.
 */
export const cookieNameAt = ({ origin, path, isSecure }: Addresses, name: string): string =>
  isSecure ? `${path === '' ? '__Host-' : '__Secure-'}${name}` : `${name}_${new URL(origin).port || '80'}`

/** Undefined: OAuth is not offered at this address. */
export type AddressesOf = (req: Pick<Request, 'headers' | 'socket'>) => Addresses | undefined

export function createAddresses(publicUrl: string | undefined): AddressesOf {
  if (publicUrl !== undefined) {
    const fixed = mayOffer(publicUrl) ? addressesAt(publicUrl) : undefined
    return () => fixed
  }
  return ({ headers: { host = '' }, socket }) => {
    // Anybody may claim that they call this machine by its own name.
    if (!isLoopback(socket.remoteAddress ?? '')) return undefined
    const url = URL.parse(`http://${host}`)
    if (url === null || url.host !== host.toLowerCase() || !isLoopback(hostnameOf(url))) return undefined
    return addressesAt(url.origin)
  }
}

/** A key is pasted there: it must not travel in the clear. */
export function mayOffer(publicUrl: string): boolean {
  const url = new URL(publicUrl)
  return url.protocol === 'https:' || isLoopback(hostnameOf(url))
}

const hostnameOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '')

export function addressesAt(base: string): Addresses {
  const { origin, pathname, protocol } = new URL(base)
  const path = pathname.replace(/\/+$/, '')
  return {
    origin,
    path,
    resource: origin + path + connectPath,
    issuer: origin + path + oauthPath,
    resourceMetadata: origin + resourceMetadataPath(path),
    isSecure: protocol === 'https:',
  }
}

// At the root of the host, with the path behind it (RFC 9728 and RFC 8414, section 3.1).
export const resourceMetadataPath = (path: string): string =>
  `/.well-known/oauth-protected-resource${path}${connectPath}`
export const serverMetadataPath = (path: string): string => `/.well-known/oauth-authorization-server${path}${oauthPath}`
