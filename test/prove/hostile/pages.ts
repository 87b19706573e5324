// Pages for people and the endpoints of OAuth: forms, queries and cookies, of which some are changed.

import type { Random } from '../random.ts'
import { mutate, nodeOf, textOf } from './nodes.ts'
import { exchange, type Face, type HostileRequest, type Sent } from './request.ts'
import type { Stage } from './stage.ts'
import { encodedHostile, queryOf } from './text.ts'
import { hostileText, words } from './values.ts'

const formType = 'application/x-www-form-urlencoded'
const formTypes = [
  ...[formType, formType, formType, formType, 'multipart/form-data; boundary=x', 'application/json', 'text/plain', ''],
  ...[`${formType}; charset=utf-16`, `${formType}; charset=iso-8859-1`],
]
const languages = ['de', 'fr;q=0.5', '*', 'x'.repeat(2_000), '', ';;', 'en-US,en;q=0.9,__proto__;q=0.1']

function formBody(fields: [string, string][], random: Random): string | Buffer {
  switch (random.below(25)) {
    case 0:
      return `${queryOf(fields, random)}&${'a=1&'.repeat(random.one([900, 1_100, 50_000]))}`
    case 1:
      return `${queryOf(fields, random)}&x=${'y'.repeat(random.one([20_000, 200_000, 2_000_000]))}`
    case 2:
      return Buffer.from([0xff, 0xfe, 0x00, 0x61, 0x3d])
    case 3:
      return `a${'[a]'.repeat(5_000)}=1`
    default:
      return queryOf(fields, random)
  }
}

const faceOf = (path: string): Face => (/^\/(oauth|confirm)/.test(path) ? 'oauth' : 'page')

export function page(stage: Stage, random: Random): HostileRequest {
  const { path, form } = random.one(stage.pages)
  const method = random.one(['GET', 'POST', 'POST', 'POST', 'HEAD', 'PUT', 'OPTIONS', 'DELETE'])
  const cut = `${path.slice(0, random.below(path.length))}${encodedHostile(random)}`
  const others = [cut, `${path}?${queryOf([], random, 1)}`, `${path}/`, `${path}${path}`, path.toUpperCase()]
  const target = random.below(4) > 0 ? path : random.one(others)
  const headers: Sent['headers'] = [['Accept', random.one(['text/html', 'text/html', '*/*', 'application/json', ''])]]
  const kind = random.below(10)
  if (kind < 7) headers.push(['Cookie', stage.cookie])
  else if (kind === 7) headers.push(['Cookie', stage.cookie.replace(/.(?=;|$)/g, 'A')])
  else if (kind === 8)
    headers.push(['Cookie', Buffer.from(hostileText(random).replace(/[\r\n\0]/g, '') || 'x').subarray(0, 4_000)])
  if (random.below(6) === 0) headers.push(['Accept-Language', random.one(languages)])
  if (random.below(8) === 0) headers.push(['Sec-Fetch-Site', random.one(['cross-site', 'same-origin', 'none', 'x'])])
  if (method === 'GET' || method === 'HEAD') return exchange('page', faceOf(path), { method, target, headers })
  headers.push(['Content-Type', random.one(formTypes)])
  return exchange('page', faceOf(path), { method, target, headers, body: formBody(Object.entries(form), random) })
}

/** Signing in, with keys that are none. */
export function door(stage: Stage, random: Random): HostileRequest {
  const { path, form } = random.one(stage.pages.filter(({ form }) => 'form_token' in form))
  const { full, few } = stage.keys
  const key = random.one([full, few, `${full}x`, hostileText(random), '', 'usher_live_x'])
  const fields = Object.entries({ action: 'sign_in', key, form_token: form.form_token ?? '' })
  const headers = Object.entries({ Accept: 'text/html', Cookie: stage.cookie, 'Content-Type': formType })
  return exchange('sign-in', 'oauth', { method: 'POST', target: path, headers, body: queryOf(fields, random) })
}

const oauthPaths = words('token register revoke auth jwks me introspection device sign-in/x auth/x')
const grantTypes = ['authorization_code', 'refresh_token', 'client_credentials', 'password', '']

export function oauth(stage: Stage, random: Random): HostileRequest {
  const { client } = stage
  const [, query = ''] = client.request.split('?')
  const fields = [...new URLSearchParams(query)]
  const secret = 'x'.repeat(43)
  const token = Object.entries({
    grant_type: random.one(grantTypes),
    code: secret,
    refresh_token: secret,
    client_id: random.one([client.id, 'unknown', 'https://client.invalid/metadata.json', '']),
    redirect_uri: client.redirectUri,
    code_verifier: secret,
    resource: 'http://127.0.0.1/api/mcp/connect',
  })
  const revoked = Object.entries({ token: secret, client_id: client.id, token_type_hint: 'refresh_token' })
  const form: Sent['headers'] = [['Content-Type', random.one(formTypes)]]
  const credentials = ['Basic !!!', 'Basic eDp5', 'Bearer x', `Basic ${btoa('\0:\0')}`, 'DPoP x']
  if (random.below(8) === 0) form.push(['Authorization', random.one(credentials)])
  if (random.below(8) === 0) form.push(['DPoP', 'x.y.z'], ['Origin', 'https://evil.example'])
  const html = Object.entries({ Accept: random.one(['text/html', '*/*', 'application/json']), Cookie: stage.cookie })
  const post = (path: string, headers: Sent['headers'], body: string | Buffer) =>
    exchange('oauth', 'oauth', { method: 'POST', target: `/oauth/${path}`, headers, body })
  switch (random.below(7)) {
    case 0:
      return post('token', form, formBody(token, random))
    case 1:
      return post('revoke', form, formBody(revoked, random))
    case 2:
      return post('register', [['Content-Type', 'application/json']], metadata(random))
    case 3: {
      const target = `/oauth/${random.one(oauthPaths)}`
      return exchange('oauth', 'oauth', {
        method: random.one(['GET', 'HEAD', 'PUT', 'OPTIONS']),
        target,
        headers: html,
      })
    }
    case 4:
      return post('auth', [...html, ...form], formBody(fields, random))
    default: {
      const target = `/oauth/auth?${queryOf(fields, random)}`.slice(0, 14_000)
      return exchange('oauth', 'oauth', { method: 'GET', target, headers: html })
    }
  }
}

function metadata(random: Random): string {
  let node = nodeOf({
    client_name: 'Hostile',
    redirect_uris: ['http://127.0.0.1:1717/callback', 'https://client.example/callback'],
    grant_types: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_method: random.pick(['none', 'private_key_jwt', 'client_secret_basic']),
    jwks: { keys: [{ kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA' }] },
    contacts: ['x'],
    logo_uri: 'https://client.example/logo.png',
    scope: 'events:read',
  })
  for (let i = random.below(4); i > 0; i--) node = mutate(node, random)
  return textOf(node)
}
