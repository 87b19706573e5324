// Who is signed in in a browser: a cookie that stands for an API key, which was pasted once. Also proves that a form was filled in on a page
// of Usher's, and not sent by another site. All pages that ask a person for a decision use both.

import { createHmac, randomBytes } from 'node:crypto'
import type { Request, Response } from 'express'
import { ApiError } from '../../gateway/api-error.ts'
import { hashOf } from '../../gateway/api-key.ts'
import { gatewayRpc } from '../../gateway/gateway-rpc.ts'
import { cookieNameAt } from '../../http/addresses.ts'
import { sharedSecret } from '../../http/middleware/shared-secret.ts'
import type { Scope } from '../../operations/operation.ts'
import { addressesOfPage, bodyOf, type PageParts } from './page-requests.ts'

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

const signInCookie = 'usher_sign_in'
const formCookie = 'usher_form'
const keyForPerson = 'npx usher keys create --organisation SLUG --person "Your name" --scopes all'

export type SignIns = ReturnType<typeof createSignIns>

export function createSignIns({ dataApi, tokens, lookups }: PageParts) {
  const rpc = gatewayRpc(dataApi, tokens)
  // The same in all processes.
  const secret = tokens.secretFor('forms of sign-ins')
  const secretOf = (req: Request) => readCookie(req, signInCookie)
  /** Identifies the browser for `api.allow_client` and `api.end_grant`. */
  const hash = (req: Request) => hashOf(secretOf(req) ?? '')

  const formTokenOf = (seed: string, req: Request, purpose: string) =>
    createHmac('sha256', secret)
      .update([seed, secretOf(req) ?? '', purpose].join('\n'))
      .digest('base64url')

  async function end(req: Request, res: Response): Promise<void> {
    if (secretOf(req) !== undefined) await rpc('end_sign_in', { secret_hash: hash(req) })
    setCookie(req, res, signInCookie, '', 0)
  }

  /** Signs the browser in with the key of the form. @returns the sentence for a key that is refused. */
  async function takeKey(req: Request, res: Response): Promise<string | undefined> {
    const key = String(bodyOf(req).key ?? '').trim()
    try {
      // Guesses are bounded as those of the header are.
      const { kind } = await lookups.resolve(key, req, res)
      if (kind !== 'person') return `This key is for a program. Create one for yourself: ${keyForPerson}`
      await end(req, res)
      const fresh = randomBytes(32).toString('base64url')
      const seconds = await rpc('start_sign_in', { key_hash: hashOf(key), secret_hash: hashOf(fresh) })
      setCookie(req, res, signInCookie, fresh, seconds as number)
      return undefined
    } catch (error) {
      if (error instanceof ApiError && error.status === 401)
        return 'This key is not valid: it was mistyped or revoked, or has expired.'
      if (error instanceof ApiError && error.status === 429)
        return 'Too many keys were tried from your network. Wait a minute and try again.'
      throw error
    }
  }

  return {
    hash,
    /** Undefined where nobody is signed in, or the key has ended. */
    async current(req: Request): Promise<SignIn | undefined> {
      if (secretOf(req) === undefined) return undefined
      return ((await rpc('get_sign_in', { secret_hash: hash(req) })) as SignIn | null) ?? undefined
    },
    /** For a form that brings a key, or its button to use another. @returns the sentence for a key that is refused. */
    async change(req: Request, res: Response): Promise<string | undefined> {
      return bodyOf(req).action === 'sign_out' ? void (await end(req, res)) : takeKey(req, res)
    },
    /** What a form has to bring back. Sets a cookie. @param purpose the page */
    formToken(req: Request, res: Response, purpose: string): string {
      const known = readCookie(req, formCookie)
      const seed = known ?? randomBytes(32).toString('base64url')
      if (known === undefined) setCookie(req, res, formCookie, seed)
      return formTokenOf(seed, req, purpose)
    },
    isOwnForm(req: Request, purpose: string): boolean {
      // Pages send no Referer, so browsers send the Origin null: the site is in a header of its own.
      if (!['same-origin', undefined].includes(req.get('Sec-Fetch-Site'))) return false
      const seed = readCookie(req, formCookie)
      const given = bodyOf(req).form_token
      return seed !== undefined && typeof given === 'string' && sharedSecret(formTokenOf(seed, req, purpose))(given)
    },
  }
}

function setCookie(req: Request, res: Response, name: string, value: string, maxAgeSeconds?: number): void {
  const addresses = addressesOfPage(req)
  res.cookie(cookieNameAt(addresses, name), value, {
    path: addresses.path || '/',
    httpOnly: true,
    secure: addresses.isSecure,
    // Strict would leave it out where a client sends the person here.
    sameSite: 'lax',
    ...(maxAgeSeconds !== undefined && { maxAge: maxAgeSeconds * 1000 }),
  })
}

function readCookie(req: Request, name: string): string | undefined {
  const nameHere = cookieNameAt(addressesOfPage(req), name)
  for (const pair of (req.headers.cookie ?? '').split(';')) {
    const [key = '', value = ''] = pair.trim().split('=', 2)
    if (key === nameHere && /^[A-Za-z0-9_-]{43}$/.test(value)) return value
  }
  return undefined
}
