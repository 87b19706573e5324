// Tokens as PostgREST will verify them: with the shared secret, or with the public half of an imported signing key.

import { randomUUID } from 'node:crypto'
import { decodeProtectedHeader, exportJWK, generateKeyPair, importJWK, type JWTPayload, jwtVerify } from 'jose'
import { expect, test } from 'vitest'
import type { Principal } from '../../src/gateway/principals.ts'
import { createTokens } from '../../src/gateway/tokens.ts'

const principal: Principal = {
  api_key_id: randomUUID(),
  family_id: randomUUID(),
  organisation_id: randomUUID(),
  scopes: ['events:read'],
  rate_limit_per_minute: 600,
}

const secret = 'a secret of at least 32 characters'
const claimsIn = async (token: string) => (await jwtVerify(token, new TextEncoder().encode(secret))).payload

const claims = (role: string, source: string) => ({
  role,
  source,
  organisation_id: principal.organisation_id,
  api_key_id: principal.api_key_id,
  family_id: principal.family_id,
})

function expectMinutes({ iat = 0, exp = 0 }: JWTPayload): void {
  expect(exp - iat).toBe(300)
  // Of this run, which is not an hour old.
  expect(Math.abs(iat - Date.now() / 1000)).toBeLessThan(3600)
}

test('a private JSON Web Key signs ES256 tokens that its public half verifies, and names itself', async () => {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
  const jwk = { ...(await exportJWK(privateKey)), alg: 'ES256', kid: 'b81269f1-21d8-4f2e-b719-c2240a840d90' }
  const tokens = await createTokens({ jwk })

  const token = await tokens.forPrincipal(principal, 'scope_events_read', 'mcp')
  const { payload } = await jwtVerify(token, await importJWK(await exportJWK(publicKey), 'ES256'), {
    algorithms: ['ES256'],
  })
  expect(payload).toMatchObject(claims('scope_events_read', 'mcp'))
  expectMinutes(payload)
  expect(decodeProtectedHeader(token)).toEqual({ alg: 'ES256', typ: 'JWT', kid: jwk.kid })
})

test('a key that does not say its algorithm, nor its id, is ES256', async () => {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
  const { alg: _alg, kid: _kid, ...jwk } = await exportJWK(privateKey)
  const token = await (await createTokens({ jwk })).forGateway()
  expect((await jwtVerify(token, publicKey)).payload).toMatchObject({ role: 'gateway' })
  expect(decodeProtectedHeader(token)).toEqual({ alg: 'ES256', typ: 'JWT' })
})

test("the project's secret signs HS256 tokens", async () => {
  const token = await (await createTokens({ secret })).forPrincipal(principal, 'scope_checkin_write', 'api')
  const { payload } = await jwtVerify(token, new TextEncoder().encode(secret), { algorithms: ['HS256'] })
  expect(payload).toMatchObject(claims('scope_checkin_write', 'api'))
  expectMinutes(payload)
})

test('tokens of callers and of the courier say where links lead', async () => {
  const tokens = await createTokens({ secret }, 'https://usher.example.com')
  for (const token of [
    await tokens.forPrincipal(principal, 'scope_attendees_read', 'api'),
    await tokens.forCourier(),
  ]) {
    expect((await claimsIn(token)).public_url).toBe('https://usher.example.com')
  }
})

test('the token of the courier names the installation, that of a caller does not', async () => {
  const tokens = await createTokens({ secret }, undefined, ['project:abcdefghijklmnopqrst'])
  expect((await claimsIn(await tokens.forCourier())).installation).toEqual(['project:abcdefghijklmnopqrst'])
  expect(await claimsIn(await tokens.forPrincipal(principal, 'scope_attendees_read', 'api'))).not.toHaveProperty(
    'installation',
  )
})

test('the token that resolves keys says nothing but its role', async () => {
  const tokens = await createTokens({ secret }, 'https://usher.example.com')
  expect(Object.keys(await claimsIn(await tokens.forGateway())).sort()).toEqual(['exp', 'iat', 'role'])
})

test('a token is kept for its key, role and source, and never served to another', async () => {
  const tokens = await createTokens({ secret })
  const other = { ...principal, api_key_id: randomUUID() }
  const mint = async () =>
    Promise.all([
      tokens.forPrincipal(principal, 'scope_events_read', 'api'),
      tokens.forPrincipal(principal, 'scope_events_read', 'mcp'),
      tokens.forPrincipal(principal, 'scope_events_write', 'api'),
      tokens.forPrincipal(other, 'scope_events_read', 'api'),
    ])
  const first = await mint()
  expect(new Set(first).size).toBe(4)
  expect(await mint()).toEqual(first)
})

test('the token of a client says what it may, and is never served to one that may less', async () => {
  const tokens = await createTokens({ secret })
  const scopesOf = async (holder: Principal) => {
    return (await claimsIn(await tokens.forPrincipal(holder, 'scope_events_read', 'mcp'))).scopes
  }
  const access_token = { resource: '', expires_in: 1, allowable: [], parent_family_id: '' }
  expect(await scopesOf({ ...principal, scopes: ['events:read', 'orders:read'], access_token })).toHaveLength(2)
  expect(await scopesOf({ ...principal, access_token })).toEqual(['events:read'])
  expect(await scopesOf(principal)).toBeUndefined()
})
