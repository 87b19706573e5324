// Who is signed in in a browser: a cookie that stands for an API key, which was pasted once. Also proves that a form was filled in on a page
// of Usher's, and not sent by another site. Other pages that ask a person for a decision can use both.

import { createHmac, randomBytes } from 'node:crypto'
import type { Request, Response } from 'express'
import { hashOf } from '../../gateway/api-key.ts'
import type { GatewayRpc } from '../../gateway/gateway-rpc.ts'
import { type Addresses, cookieNameAt } from '../../http/addresses.ts'
import { sharedSecret } from '../../http/middleware/shared-secret.ts'
import type { Scope } from '../../operations/operation.ts'

/** As `api.get_sign_in` returns it. */
export type SignIn = {
  api_key: { id: string; name: string; prefix: string; scopes: Scope[]; expires_at: string | null }
  organisation: { id: string; name: string }
  created_at: string
  grants: SignInGrant[]
}

export type SignInGrant = {
  id: string
  name: string
  client_id: string
  returns_to: string
  scopes: Scope[]
  created_at: string
  last_used_at: string | null
  expires_at: string
  is_of_this_browser: boolean
}

export type SignIns = {
  /** Undefined where nobody is signed in, or the key has ended. */
  current(req: Request): Promise<SignIn | undefined>
  /** Identifies the browser for `api.allow_client` and `api.end_grant`. */
  hash(req: Request): string
  /** @throws ApiError 401 for a key that has ended meanwhile. */
  start(key: string, req: Request, res: Response, addresses: Addresses): Promise<void>
  end(req: Request, res: Response, addresses: Addresses): Promise<void>
  /** What a form has to bring back. Sets a cookie. @param purpose the page */
  formToken(req: Request, res: Response, addresses: Addresses, purpose: string): string
  isOwnForm(req: Request, purpose: string): boolean
}

const signInCookie = 'usher_sign_in'
const formCookie = 'usher_form'

/** @param secret the same in all processes. */
export function createSignIns(rpc: GatewayRpc, secret: string, addressesOf: (req: Request) => Addresses): SignIns {
  const cookieOf = (req: Request, name: string) => readCookie(req, cookieNameAt(addressesOf(req), name))
  const secretOf = (req: Request) => cookieOf(req, signInCookie)
  const hash = (req: Request) => hashOf(secretOf(req) ?? '')

  const formTokenOf = (seed: string, req: Request, purpose: string) =>
    createHmac('sha256', secret)
      .update([seed, secretOf(req) ?? '', purpose].join('\n'))
      .digest('base64url')

  function set(res: Response, addresses: Addresses, name: string, value: string, maxAgeSeconds?: number): void {
    res.cookie(cookieNameAt(addresses, name), value, {
      path: addresses.path || '/',
      httpOnly: true,
      secure: addresses.isSecure,
      // Strict would leave it out where a client sends the person here.
      sameSite: 'lax',
      ...(maxAgeSeconds !== undefined && { maxAge: maxAgeSeconds * 1000 }),
    })
  }

  return {
    hash,
    async current(req) {
      if (secretOf(req) === undefined) return undefined
      return ((await rpc('get_sign_in', { secret_hash: hash(req) })) as SignIn | null) ?? undefined
    },
    async start(key, _req, res, addresses) {
      const fresh = randomBytes(32).toString('base64url')
      const seconds = await rpc('start_sign_in', { key_hash: hashOf(key), secret_hash: hashOf(fresh) })
      set(res, addresses, signInCookie, fresh, seconds as number)
    },
    async end(req, res, addresses) {
      if (secretOf(req) !== undefined) await rpc('end_sign_in', { secret_hash: hash(req) })
      set(res, addresses, signInCookie, '', 0)
    },
    formToken(req, res, addresses, purpose) {
      const known = cookieOf(req, formCookie)
      const seed = known ?? randomBytes(32).toString('base64url')
      if (known === undefined) set(res, addresses, formCookie, seed)
      return formTokenOf(seed, req, purpose)
    },
    isOwnForm(req, purpose) {
      // Pages send no Referer, so browsers send the Origin null: the site is in a header of its own.
      if (!['same-origin', undefined].includes(req.get('Sec-Fetch-Site'))) return false
      const seed = cookieOf(req, formCookie)
      const given = (req.body as { form_token?: unknown } | undefined)?.form_token
      return seed !== undefined && typeof given === 'string' && sharedSecret(formTokenOf(seed, req, purpose))(given)
    },
  }
}

function readCookie({ headers: { cookie = '' } }: Request, name: string): string | undefined {
  for (const pair of cookie.split(';')) {
    const [key = '', value = ''] = pair.trim().split('=', 2)
    if (key === name && /^[A-Za-z0-9_-]{43}$/.test(value)) return value
  }
  return undefined
}
