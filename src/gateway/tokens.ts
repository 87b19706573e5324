// Signs short-lived JWTs for PostgREST: one per key, role and source, cached until shortly before it expires. That is measured by a
// monotonic clock, while PostgREST goes by the time of day: after a step of either clock, a cached token may be refused.

import { hkdfSync } from 'node:crypto'
import { base64url, decodeJwt, importJWK, type JWK, type JWTPayload, SignJWT } from 'jose'
import { createCache } from './cache.ts'

/** The interface that a request came by; orders and check-ins store it. */
export type Source = 'api' | 'mcp' | 'page'

export type SigningKey = { secret: string } | { jwk: JWK }

/** The claims that identify the calling key. Of an access token also its scopes: its grant may have got others since. */
type KeyHolder = {
  api_key_id: string
  family_id: string
  organisation_id: string
  scopes?: string[]
  access_token?: object
}

export type Tokens = {
  /** For what precedes authentication: resolving keys and tokens, signing in, and pages whose address is a secret. */
  forGateway(): Promise<string>
  /** For what a guest does on a page whose address is a secret. */
  forGuest(): Promise<string>
  /** For claiming and settling deliveries. It names the installation, by which SQL decides whether they are held. */
  forCourier(): Promise<string>
  forPrincipal(holder: KeyHolder, role: string, source: Source): Promise<string>
  /** A token of the same claims in place of one that PostgREST refused. Who holds the same refused token gets the same new one. */
  inPlaceOf(refused: string): Promise<string>
  /** A secret that all processes with this signing key share, and that tells nothing of it or of one for another purpose. */
  secretFor(purpose: string): string
}

const lifetimeSeconds = 300
const ttlMs = (lifetimeSeconds - 60) * 1000

/**
 * @param publicUrl base of the links in answers and e-mails, which the database composes. Without it they are null.
 * @param installation names of where the database was found, for the courier.
 */
export async function createTokens(
  signingKey: SigningKey,
  publicUrl?: string,
  installation: string[] = [],
): Promise<Tokens> {
  const links: Record<string, string> = publicUrl === undefined ? {} : { public_url: publicUrl }
  const sign = await signer(signingKey)
  const cache = createCache<Promise<string>>(20_000, { ttl: ttlMs })

  function mint(claims: JWTPayload): Promise<string> {
    const name = nameOf(claims)
    const known = cache.get(name)
    if (known) return known
    const token = sign(claims)
    cache.set(name, token)
    return token
  }

  return {
    forGateway: () => mint({ role: 'gateway' }),
    forGuest: () => mint({ role: 'gateway', guest: true, source: 'page', ...links }),
    forCourier: () => mint({ role: 'courier', ...links, ...(installation.length > 0 && { installation }) }),
    forPrincipal: (holder, role, source) =>
      mint({
        role,
        source,
        organisation_id: holder.organisation_id,
        api_key_id: holder.api_key_id,
        family_id: holder.family_id,
        ...(holder.access_token !== undefined && { scopes: holder.scopes }),
        ...links,
      }),
    async inPlaceOf(refused) {
      const { iat, exp, ...claims } = decodeJwt(refused)
      const name = nameOf(claims)
      const known = cache.get(name)
      if ((await known) === refused && cache.get(name) === known) cache.delete(name)
      return mint(claims)
    },
    secretFor: (purpose) =>
      base64url.encode(new Uint8Array(hkdfSync('sha256', materialOf(signingKey), '', purpose, 32))),
  }
}

const materialOf = (signingKey: SigningKey): string =>
  'secret' in signingKey ? signingKey.secret : (signingKey.jwk.d ?? JSON.stringify(signingKey.jwk))

/** The claims that tell tokens apart; the others follow from them. */
const nameOf = ({ role, api_key_id = '', source = '', scopes = '' }: JWTPayload): string =>
  `${role} ${api_key_id} ${source} ${scopes}`

/** Signs with HS256 and the project's secret, or with the algorithm of an imported private key (ES256 on Supabase). */
async function signer(signingKey: SigningKey): Promise<(claims: JWTPayload) => Promise<string>> {
  const jwk: JWK =
    'secret' in signingKey
      ? { alg: 'HS256', kty: 'oct', k: base64url.encode(signingKey.secret) }
      : { alg: 'ES256', ...signingKey.jwk }
  const { alg = '', kid } = jwk
  const key = await importJWK(jwk)
  const header = { alg, typ: 'JWT', ...(kid !== undefined && { kid }) }
  return (claims) =>
    new SignJWT(claims).setProtectedHeader(header).setIssuedAt().setExpirationTime(`${lifetimeSeconds}s`).sign(key)
}
