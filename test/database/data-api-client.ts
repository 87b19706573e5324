// A client of the Data API that the gateway is not: any token, any path. It goes past Usher's own code straight to
// PostgREST, to find what PostgREST and the database would let somebody do who got hold of a token.

import { SignJWT } from 'jose'
import { inject } from 'vitest'
import { prefixOf } from '../../src/gateway/api-key.ts'
import type { Scope } from '../../src/operations/operation.ts'
import { row } from '../support/database.ts'
import type { TestOrganisation } from '../support/organisation.ts'
import type { Claims } from './actor.ts'

export type DataApiAnswer = {
  status: number
  /** SQLSTATE, or PostgREST's own code. */
  sqlstate?: string
  /** Of a refusal that Usher raised. */
  code?: string
  details?: unknown
  body: unknown
}

type Request = { method?: string; path: string; body?: unknown; headers?: Record<string, string> }

export async function send(
  { method = 'GET', path, body, headers = {} }: Request,
  token?: string,
): Promise<DataApiAnswer> {
  const response = await fetch(`${inject('dataApiUrl')}${path}`, {
    method,
    headers: {
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const answer = text === '' ? null : (JSON.parse(text) as Record<string, unknown>)
  if (response.ok || answer === null) return { status: response.status, body: answer }
  const sqlstate = String(answer.code)
  const refusal = sqlstate.startsWith('PT') ? (JSON.parse(String(answer.details)) as Record<string, unknown>) : {}
  return { status: response.status, sqlstate, ...refusal, body: answer }
}

export const call = (name: string, token?: string, args: unknown = {}) =>
  send({ method: 'POST', path: `/rpc/${name}`, body: args }, token)

type Signing = { secret?: string; expires?: string }

export function sign(claims: Claims, { secret = inject('jwtSecret'), expires = '5m' }: Signing = {}): Promise<string> {
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setIssuedAt()
    .setExpirationTime(expires)
    .sign(new TextEncoder().encode(secret))
}

/** A key, and the claims that the gateway would put into its tokens. */
export async function keyOf(
  organisation: TestOrganisation,
  ...chosen: Scope[]
): Promise<{ id: string; claims: Claims }> {
  return claimsOf(organisation, await organisation.key(...chosen))
}

export async function claimsOf(organisation: TestOrganisation, key: string): Promise<{ id: string; claims: Claims }> {
  const { id, family_id } = await row<{ id: string; family_id: string }>(
    'select id, family_id from public.api_keys where prefix = $1',
    [prefixOf(key)],
  )
  return { id, claims: { organisation_id: organisation.id, api_key_id: id, family_id, source: 'api' } }
}
