// Pages for people and the endpoints of OAuth: forms, queries and cookies, of which some are changed.

import type { Random } from '../random.ts'
import { mutate, nodeOf, textOf } from './nodes.ts'
import { exchange, type Face, type HostileRequest, type Sent } from './request.ts'
import type { Stage } from './stage.ts'
import { encodedHostile, queryOf } from './text.ts'
import { hostileText } from './values.ts'

const formType = 'application/x-www-form-urlencoded'
const formTypes = [
  formType,
  formType,
  formType,
  formType,
  'multipart/form-data; boundary=x',
  'application/json',
  'text/plain',
  `${formType}; charset=utf-16`,
  `${formType}; charset=iso-8859-1`,
  '',
]
const languages = ['de', 'fr;q=0.5', '*', 'x'.repeat(2_000), '', ';;', 'en-US,en;q=0.9,__proto__;q=0.1']

function formBody(fields: [string, string][], random: Random): string | Buffer {
  switch (random.below(25)) {
    case 0:
      return `${queryOf(fields, random)}&${'a=1&'.repeat(random.pick([900, 1_100, 50_000]) as number)}`
    case 1:
      return `${queryOf(fields, random)}&x=${'y'.repeat(random.pick([20_000, 200_000, 2_000_000]) as number)}`
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
  const { path, form } = random.pick(stage.pages) as Stage['pages'][number]
  const method = random.pick(['GET', 'POST', 'POST', 'POST', 'HEAD', 'PUT', 'OPTIONS', 'DELETE']) as string
  const at = random.below(path.length)
  const target =
    random.below(4) > 0
      ? path
      : (random.pick([
          `${path.slice(0, at)}${encodedHostile(random)}`,
          `${path}?${queryOf([], random, 1)}`,
          `${path}/`,
          `${path}${path}`,
          path.toUpperCase(),
        ]) as string)
  const headers: Sent['headers'] = [
    ['Accept', random.pick(['text/html', 'text/html', '*/*', 'application/json', '']) as string],
  ]
  const kind = random.below(10)
  if (kind < 7) headers.push(['Cookie', stage.cookie])
  else if (kind === 7) headers.push(['Cookie', stage.cookie.replace(/.(?=;|$)/g, 'A')])
  else if (kind === 8)
    headers.push(['Cookie', Buffer.from(hostileText(random).replace(/[\r\n\0]/g, '') || 'x').subarray(0, 4_000)])
  if (random.below(6) === 0) headers.push(['Accept-Language', random.pick(languages) as string])
  if (random.below(8) === 0)
    headers.push(['Sec-Fetch-Site', random.pick(['cross-site', 'same-origin', 'none', 'x']) as string])
  if (method === 'GET' || method === 'HEAD') return exchange('page', faceOf(path), { method, target, headers })
  headers.push(['Content-Type', random.pick(formTypes) as string])
  return exchange('page', faceOf(path), { method, target, headers, body: formBody(Object.entries(form), random) })
}

/** Signing in, with keys that are none. */
export function door(stage: Stage, random: Random): HostileRequest {
  const { path, form } = random.pick(stage.pages.filter(({ form }) => 'form_token' in form)) as Stage['pages'][number]
  const key = random.pick([
    stage.keys.full,
    stage.keys.few,
    `${stage.keys.full}x`,
    hostileText(random),
    '',
    'usher_live_x',
  ]) as string
  const fields: [string, string][] = [
    ['action', 'sign_in'],
    ['key', key],
    ['form_token', form.form_token ?? ''],
  ]
  const headers: Sent['headers'] = [
    ['Accept', 'text/html'],
    ['Cookie', stage.cookie],
    ['Content-Type', formType],
  ]
  return exchange('sign-in', 'oauth', { method: 'POST', target: path, headers, body: queryOf(fields, random) })
}

export function oauth(stage: Stage, random: Random): HostileRequest {
  const { client } = stage
  const [, query = ''] = client.request.split('?')
  const fields = [...new URLSearchParams(query)]
  const token: [string, string][] = [
    [
      'grant_type',
      random.pick(['authorization_code', 'refresh_token', 'client_credentials', 'password', '']) as string,
    ],
    ['code', 'x'.repeat(43)],
    ['refresh_token', 'x'.repeat(43)],
    ['client_id', random.pick([client.id, 'unknown', 'https://client.invalid/metadata.json', '']) as string],
    ['redirect_uri', client.redirectUri],
    ['code_verifier', 'x'.repeat(43)],
    ['resource', 'http://127.0.0.1/api/mcp/connect'],
  ]
  const form: Sent['headers'] = [['Content-Type', random.pick(formTypes) as string]]
  if (random.below(8) === 0)
    form.push([
      'Authorization',
      random.pick([
        'Basic !!!',
        'Basic eDp5',
        'Bearer x',
        `Basic ${Buffer.from('\0:\0').toString('base64')}`,
        'DPoP x',
      ]) as string,
    ])
  if (random.below(8) === 0) form.push(['DPoP', 'x.y.z'], ['Origin', 'https://evil.example'])
  const html: Sent['headers'] = [
    ['Accept', random.pick(['text/html', '*/*', 'application/json']) as string],
    ['Cookie', stage.cookie],
  ]
  switch (random.below(7)) {
    case 0:
      return exchange('oauth', 'oauth', {
        method: 'POST',
        target: '/oauth/token',
        headers: form,
        body: formBody(token, random),
      })
    case 1:
      return exchange('oauth', 'oauth', {
        method: 'POST',
        target: '/oauth/revoke',
        headers: form,
        body: formBody(
          [
            ['token', 'x'.repeat(43)],
            ['client_id', client.id],
            ['token_type_hint', 'refresh_token'],
          ],
          random,
        ),
      })
    case 2:
      return exchange('oauth', 'oauth', {
        method: 'POST',
        target: '/oauth/register',
        headers: [['Content-Type', 'application/json']],
        body: metadata(random),
      })
    case 3:
      return exchange('oauth', 'oauth', {
        method: random.pick(['GET', 'HEAD', 'PUT', 'OPTIONS']) as string,
        target: `/oauth/${random.pick(['token', 'register', 'revoke', 'auth', 'jwks', 'me', 'introspection', 'device', '', 'sign-in/x', 'auth/x'])}`,
        headers: html,
      })
    case 4:
      return exchange('oauth', 'oauth', {
        method: 'POST',
        target: '/oauth/auth',
        headers: [...html, ...form],
        body: formBody(fields, random),
      })
    default:
      return exchange('oauth', 'oauth', {
        method: 'GET',
        target: `/oauth/auth?${queryOf(fields, random)}`.slice(0, 14_000),
        headers: html,
      })
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
