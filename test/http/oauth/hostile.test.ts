// What somebody who means harm would try: as a client, as another site, and as a stranger with a stolen code or token.

import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { pino } from 'pino'
import { beforeAll, describe, expect, test } from 'vitest'
import { prefixOf } from '../../../src/gateway/api-key.ts'
import { createAddresses } from '../../../src/http/addresses.ts'
import type { FetchDocument } from '../../../src/process/outbound/fetch-document.ts'
import { row, studio } from '../../support/database.ts'
import { createOrganisation, type TestOrganisation } from '../../support/organisation.ts'
import { appOfThisFile, ownApp } from '../../support/own-app.ts'
import { edit } from '../../support/studio.ts'
import {
  callback,
  callWith,
  codeGrant,
  decide,
  elsewhere,
  formTokenOf,
  Jar,
  pkce,
  refreshGrant,
  register,
  requestUrl,
  signIn,
  walkToConsent,
} from './walk.ts'

// Each who asks is at an address of their own: see walk.ts.
const { url } = await appOfThisFile({ trustProxy: true })

let organisation: TestOrganisation
let key: string
let clientId: string
beforeAll(async () => {
  organisation = await createOrganisation()
  key = await organisation.personKey()
  clientId = (await register(url)).body.client_id as string
})

const issuer = () => `${url}/oauth`
const grantsOf = async (of: string) =>
  (
    await studio.query(
      "select * from public.api_keys where kind = 'grant' and parent_id = (select id from public.api_keys where prefix = $1)",
      [prefixOf(of)],
    )
  ).rows

const revoke = async (token: string, client_id: string) =>
  (await fetch(`${issuer()}/revoke`, { method: 'POST', body: new URLSearchParams({ token, client_id }) })).status

describe('where a client wants the person to be returned to', () => {
  test.each([
    ['a host over http', 'http://evil.example/callback'],
    ['a fragment', 'https://client.example/callback#here'],
    ['an empty fragment', 'https://client.example/callback#'],
    ['a script', 'javascript:alert(1)'],
    ['data', 'data:text/html,hello'],
    ['a file', 'file:///etc/passwd'],
    ['a program of the system', 'ms-settings:privacy'],
    ['a scheme that might be anything', 'shell:startup'],
    ['a user name', 'https://usher.example@evil.example/'],
    ['no URL', '/callback'],
    ['a line break', 'java\nscript:alert(1)'],
  ])('%s is not registered', async (_what, uri) => {
    expect(await register(url, { redirect_uris: [uri], application_type: 'web' })).toMatchObject({
      status: 400,
      body: { error: 'invalid_redirect_uri' },
    })
  })

  test.each([
    ['another host', 'https://evil.example/callback'],
    ['another path', 'http://127.0.0.1:1717/elsewhere'],
    ['another scheme', 'https://127.0.0.1:1717/callback'],
    ['a path above', 'http://127.0.0.1:1717/callback/../x'],
    ['a longer host', 'http://127.0.0.1.evil.example/callback'],
    ['a script', 'javascript:alert(1)'],
    ['a fragment', `${callback}#x`],
  ])('%s than what was registered is answered here', async (_what, uri) => {
    const asked = await new Jar(url).ask(requestUrl(clientId, pkce().challenge, { redirect_uri: uri }))
    expect([asked.status, asked.location]).toEqual([400, ''])
    expect(asked.text).toContain('Usher cannot continue')
  })

  test.each(['com.example.assistant:/callback', 'cursor://anysphere.cursor-mcp/oauth/callback'])(
    '%s is a program of the person’s',
    async (uri) => {
      expect((await register(url, { redirect_uris: [uri] })).status).toBe(201)
    },
  )

  test('another port of a loopback address is the same program', async () => {
    const asked = await new Jar(url).ask(
      requestUrl(clientId, pkce().challenge, { redirect_uri: callback.replace('1717', '2727') }),
    )
    expect(asked.location).toContain('/oauth/sign-in/')
  })

  test('whatever goes wrong, nobody is sent on to an address that was only given', async () => {
    const evil = 'https://evil.example/'
    const wrong = [
      { client_id: 'unknown', redirect_uri: evil },
      { redirect_uri: evil, scope: 'events:read', response_type: 'token' },
      { redirect_uri: evil, code_challenge: undefined },
      { redirect_uri: evil, resource: 'https://evil.example/' },
    ]
    for (const members of wrong) {
      const asked = await new Jar(url).ask(requestUrl(clientId, pkce().challenge, members))
      expect([asked.status, asked.location]).toEqual([400, ''])
    }
  })
})

test('a request without S256 is sent back, and says by whom it was answered', async () => {
  for (const members of [
    { code_challenge: undefined, code_challenge_method: undefined },
    { code_challenge_method: 'plain' },
  ]) {
    const { location } = await new Jar(url).ask(requestUrl(clientId, pkce().challenge, members))
    const answer = new URL(location)
    expect(answer.searchParams.get('error')).toBe('invalid_request')
    expect([answer.searchParams.get('iss'), answer.searchParams.get('state')]).toEqual([issuer(), 'the-state'])
  }
})

test('an answer names its issuer, so that a client of two servers knows which one answered', async () => {
  const walk = await walkToConsent(key, { jar: new Jar(url) })
  const answer = await decide(walk)
  expect([answer.searchParams.get('iss'), answer.searchParams.get('state')]).toEqual([issuer(), 'the-state'])
  const refused = await decide(await walkToConsent(key, { jar: walk.jar }), { action: 'deny' })
  expect([refused.searchParams.get('iss'), refused.searchParams.get('error')]).toEqual([issuer(), 'access_denied'])
})

test('tokens for another resource are not given, nor for two at once', async () => {
  const [own, other] = [`${url}/api/mcp/connect`, 'https://evil.example/mcp']
  const wrong = [[other], [`${url}/api/mcp`], [`${url}/api/v1`], [own, other], [other, own], [own, own]]
  for (const resources of wrong) {
    const query = resources.map((resource) => `&resource=${encodeURIComponent(resource)}`).join('')
    const { location } = await new Jar(url).ask(requestUrl(clientId, pkce().challenge) + query)
    expect(new URL(location, url).searchParams.get('error')).toBe('invalid_target')
  }
  const walk = await walkToConsent(key, { jar: new Jar(url) })
  const code = (await decide(walk)).searchParams.get('code') as string
  const form = { grant_type: 'authorization_code', code, client_id: walk.clientId, redirect_uri: callback }
  const body = new URLSearchParams({ ...form, code_verifier: walk.verifier })
  for (const resource of [own, other]) body.append('resource', resource)
  const answer = await fetch(`${issuer()}/token`, { method: 'POST', body })
  expect([answer.status, await answer.json()]).toMatchObject([400, { error: 'invalid_target' }])
})

describe('a code', () => {
  test('is good for one client, one address and one verifier', async () => {
    const walk = await walkToConsent(key, { jar: new Jar(url) })
    const answer = await decide(walk)
    const other = (await register(url)).body.client_id
    for (const members of [
      { client_id: other },
      { code_verifier: pkce().verifier },
      { code_verifier: undefined },
      { redirect_uri: 'http://127.0.0.1:2727/callback' },
    ]) {
      expect((await codeGrant(walk, answer, members)).body).toMatchObject({ error: 'invalid_grant' })
    }
    expect((await codeGrant(walk, answer)).status).toBe(200)
    const second = await walkToConsent(key, { jar: new Jar(url) })
    const elsewhere = { resource: 'https://evil.example/' }
    expect((await codeGrant(second, await decide(second), elsewhere)).status).toBe(400)
  })

  test('that is used twice ends everything it had given', async () => {
    const { walk, answer, access_token, refresh_token } = await signIn(url, key)
    expect((await callWith(access_token, url)).status).toBe(200)
    expect((await codeGrant(walk, answer)).body.error).toBe('invalid_grant')
    await callWith(access_token, url)
    expect((await callWith(access_token, url)).status).toBe(401)
    expect((await refreshGrant(walk, refresh_token)).status).toBe(400)
  })

  test('that two requests use at once is good for one of them at most', async () => {
    const walk = await walkToConsent(key, { jar: new Jar(url) })
    const answer = await decide(walk)
    const answers = await Promise.all(Array.from({ length: 6 }, () => codeGrant(walk, answer)))
    expect(answers.filter(({ status }) => status === 200).length).toBeLessThan(2)
  })

  test('is good for two minutes', async () => {
    const walk = await walkToConsent(key, { jar: new Jar(url) })
    const answer = await decide(walk)
    const { left } = await row<{ left: number }>(
      `select extract(epoch from max(expires_at) - now())::float as left from private.oauth_records where kind = 'AuthorizationCode' and consumed_at is null`,
    )
    expect(left).toBeLessThanOrEqual(120)
    await studio.query(
      `update private.oauth_records r set expires_at = now() - interval '1 second'
       from public.api_keys k where k.id = r.grant_id and r.kind = 'AuthorizationCode' and k.parent_id = (select id from public.api_keys where prefix = $1)`,
      [prefixOf(key)],
    )
    expect((await codeGrant(walk, answer)).body.error).toBe('invalid_grant')
  })
})

describe('tokens', () => {
  test('are good at their own address only, and keys are not taken there', async () => {
    const { access_token } = await signIn(url, key)
    expect((await callWith(access_token, url)).status).toBe(200)
    expect((await callWith(access_token, url, '/api/mcp')).status).toBe(401)
    expect((await fetch(`${url}/api/v1/me`, { headers: { Authorization: `Bearer ${access_token}` } })).status).toBe(401)
    expect(await callWith(key, url)).toMatchObject({ status: 401, text: expect.stringContaining('/api/mcp') })
    // The same database under another address.
    const other = await ownApp({ publicUrl: 'https://other.example' })
    expect(await callWith(access_token, other.url)).toMatchObject({ status: 401 })
  })

  test('an access token ends after its hour, and another client cannot renew or revoke it', async () => {
    const { walk, access_token, refresh_token } = await signIn(url, key)
    const other = { ...walk, clientId }
    expect((await refreshGrant(other, refresh_token)).body.error).toBe('invalid_grant')
    expect(await revoke(refresh_token, clientId)).toBe(200)
    expect((await callWith(access_token, url)).status).toBe(200)
    await studio.query(
      `update private.oauth_records r set expires_at = now() from public.api_keys k
       where k.id = r.grant_id and r.kind = 'AccessToken' and k.organisation_id = $1`,
      [organisation.id],
    )
    const fresh = await ownApp({ publicUrl: url })
    expect((await callWith(access_token, fresh.url)).status).toBe(401)
    expect(await revoke(refresh_token, walk.clientId)).toBe(200)
    expect((await refreshGrant(walk, refresh_token)).body.error).toBe('invalid_grant')
  })

  test('the database holds none of them, nor a code or cookie', async () => {
    const { walk, access_token, refresh_token } = await signIn(url, key)
    const undecided = await walkToConsent(key, { jar: new Jar(url) })
    const cookies = [walk, undecided].flatMap(({ jar }) => [...jar.cookies.values()])
    const secrets = [access_token, refresh_token, walk.verifier, ...cookies]
    const { rows } = await studio.query(
      `select r::text as text from private.oauth_records r union all select s::text from private.oauth_sign_ins s
       union all select g::text from private.oauth_grants g union all select k::text from public.api_keys k`,
    )
    const kept = rows.map(({ text }) => text).join('\n')
    expect(secrets.filter((secret) => secret.length > 20 && kept.includes(secret))).toEqual([])
  })
})

describe('a grant', () => {
  const change = (of: string, set: string) =>
    studio.query(`update public.api_keys set ${set} where prefix = $1`, [prefixOf(of)])
  async function granted() {
    const own = await organisation.personKey()
    return { own, ...(await signIn(url, own, { scope: ['events:read', 'orders:read'] })) }
  }

  test.each([
    ['is revoked', 'revoked_at = now()'],
    ['ends by rotation', 'expires_at = now()'],
  ])('ends at once when its key %s', async (_how, set) => {
    const { own, access_token: token } = await granted()
    expect((await callWith(token, url)).status).toBe(200)
    await change(own, set)
    expect((await callWith(token, url)).text).toMatch(/api_key_(revoked|expired)/)
    expect((await callWith(token, url)).status).toBe(401)
  })

  test('shrinks with its key, never grows with it, and ends when nothing is left', async () => {
    const { own, access_token: token } = await granted()
    await change(own, `scopes = '{events:write,orders:read}'`)
    expect((await grantsOf(own))[0]).toMatchObject({ scopes: '{orders:read}', revoked_at: null })
    expect((await callWith(token, url)).text).toContain('missing_scope')
    await change(own, `scopes = '{events:read,orders:read,events:write}'`)
    expect((await grantsOf(own))[0]).toMatchObject({ scopes: '{orders:read}' })
    await change(own, `scopes = '{events:write}'`)
    expect((await grantsOf(own))[0].revoked_at).not.toBeNull()
  })

  test('is in the audit trail: made and ended with the key that was signed in with, or by its client', async () => {
    const { own, walk, refresh_token } = await granted()
    const parent = await row<{ id: string }>('select id from public.api_keys where prefix = $1', [prefixOf(own)])
    const [grant] = await grantsOf(own)
    expect(await revoke(refresh_token, walk.clientId)).toBe(200)
    const { rows } = await studio.query(
      'select action, actor, api_key_id from public.audit_entries where object_id = $1 order by id',
      [grant.id],
    )
    expect(rows).toEqual([
      { action: 'created', actor: 'api_key', api_key_id: parent.id },
      { action: 'updated', actor: 'api_key', api_key_id: grant.id },
    ])
  })

  test('shares the rate limit of its key with the others: who holds one cannot make more of it', async () => {
    const { own, access_token: token } = await granted()
    const { access_token: second } = await signIn(url, own)
    const first = (await callWith(token, url)).left
    expect(first).toBeGreaterThan(0)
    expect((await callWith(second, url)).left).toBe(first - 1)
    expect((await callWith(token, url)).left).toBe(first - 2)
  })

  test('cannot be given more than its key has, in Studio or by a form', async () => {
    const own = await organisation.personKey('events:read')
    await signIn(url, own, { scope: ['events:read', 'orders:write'] })
    const [grant] = await grantsOf(own)
    expect(grant.scopes).toBe('{events:read}')
    await expect(edit('api_keys', grant.id, `scopes = '{events:read,orders:write}'`)).rejects.toThrow(/lacks/)
    await expect(edit('api_keys', grant.id, `parent_id = id`)).rejects.toThrow()
  })

  test('asked for more, names every scope that is wanted, but not one that its key lacks', async () => {
    const { own, access_token: token } = await granted()
    const refused = await callWith(token, url, undefined, 'create_event')
    expect(refused.status).toBe(403)
    expect(refused.challenge).toContain('error="insufficient_scope", scope="events:read orders:read events:write"')
    await change(own, `scopes = '{events:read,orders:read}'`)
    expect(await callWith(token, url, undefined, 'create_event')).toMatchObject({ status: 200 })
  })
})

describe('the pages', () => {
  test('cannot be framed, kept or left with an address behind', async () => {
    const { page, jar } = await walkToConsent(key, { jar: new Jar(url) })
    for (const { headers } of [page, await jar.ask('/oauth/grants'), await new Jar(url).ask('/oauth/grants')]) {
      expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
      expect(headers.get('x-frame-options')).toBe('DENY')
      expect([headers.get('cache-control'), headers.get('referrer-policy')]).toEqual(['no-store', 'no-referrer'])
    }
  })

  test('take no form of another site, of another person or of another page', async () => {
    const own = await organisation.personKey()
    const walk = await walkToConsent(own, { jar: new Jar(url) })
    const stranger = await walkToConsent(await organisation.personKey(), { jar: new Jar(url) })
    const decision = { action: 'allow', scope: 'events:read' }
    const tries = [
      { form: decision },
      { form: { ...decision, form_token: formTokenOf(stranger.page) } },
      { form: { ...decision, form_token: formTokenOf(await walk.jar.ask('/oauth/grants')) } },
      { form: { ...decision, form_token: formTokenOf(walk.page) }, headers: { 'Sec-Fetch-Site': 'cross-site' } },
    ]
    for (const sent of tries) expect((await walk.jar.ask(walk.at, sent)).status).toBe(400)
    expect(await grantsOf(own)).toEqual([])
    // A stranger with the address, without the cookies.
    expect((await new Jar(url).ask(walk.at)).status).toBe(400)
    await decide(walk)
    expect(await grantsOf(own)).toHaveLength(1)
    const [grant] = await grantsOf(own)
    const end = { action: 'end', grant_id: grant.id as string }
    await walk.jar.ask('/oauth/grants', { form: end })
    await stranger.jar.ask('/oauth/grants', {
      form: { ...end, form_token: formTokenOf(await stranger.jar.ask('/oauth/grants')) },
    })
    expect((await grantsOf(own))[0].revoked_at).toBeNull()
  })

  test('nothing is allowed once the key has ended while the page was open', async () => {
    const own = await organisation.personKey()
    const walk = await walkToConsent(own, { jar: new Jar(url) })
    await studio.query('update public.api_keys set revoked_at = now() where prefix = $1', [prefixOf(own)])
    const decided = await walk.jar.ask(walk.at, {
      form: { action: 'allow', scope: 'events:read', form_token: formTokenOf(walk.page) },
    })
    expect(decided.text).toContain('name="key"')
    expect(await grantsOf(own)).toEqual([])
  })

  test('show what a client calls itself as text, in its own direction, and where it is', async () => {
    const { body } = await register(url, {
      client_name: `Us\u202eh\u200ber <script>alert(1)</script>\n${'x'.repeat(300)}`,
      redirect_uris: [callback, 'cursor://anysphere/callback'],
    })
    const { page } = await walkToConsent(key, { jar: new Jar(url), clientId: body.client_id as string })
    expect(page.text).not.toMatch(/<script|\u202e|\u200b/)
    expect(page.text).toContain('<h1>Allow <bdi>Usher &lt;script&gt;alert(1)&lt;/script&gt; xxx')
    expect(page.text).not.toContain('x'.repeat(100))
    expect(page.text).toContain('a program on this device (127.0.0.1)')
  })

  test('keys are guessed as slowly as in a header', async () => {
    const jar = new Jar(url)
    const form_token = formTokenOf(await jar.ask('/oauth/grants'))
    const answers: string[] = []
    for (let i = 0; i < 70; i++)
      answers.push(
        (await jar.ask('/oauth/grants', { form: { action: 'sign_in', key: `guess ${i}`, form_token } })).text,
      )
    expect(answers.filter((text) => text.includes('not valid')).length).toBeLessThanOrEqual(60)
    expect(answers.at(-1)).toContain('Too many keys were tried')
    // Whoever has a valid one gets in all the same.
    const { location } = await jar.ask('/oauth/grants', { form: { action: 'sign_in', key, form_token } })
    expect(location).toBe('/oauth/grants')
  })
})

describe('registration', () => {
  test('is bounded by address', async () => {
    const here = elsewhere()
    const answers = await Promise.all(Array.from({ length: 40 }, () => register(url, {}, here)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(20)
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused).toHaveLength(20)
    expect(refused[0]?.body).toEqual({ error: 'temporarily_unavailable', error_description: expect.any(String) })
  })

  test('gives no secret, and keeps nothing that Usher has no use for', async () => {
    const { status, body } = await register(url, {
      token_endpoint_auth_method: 'client_secret_post',
      grant_types: ['authorization_code', 'implicit', 'client_credentials'],
      logo_uri: 'https://evil.example/pixel.png',
      sector_identifier_uri: 'http://169.254.169.254/',
      extra: 'x',
    })
    expect(status).toBe(201)
    expect(body).toMatchObject({
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
    })
    for (const name of ['client_secret', 'logo_uri', 'sector_identifier_uri', 'extra'])
      expect(body).not.toHaveProperty(name)
  })

  test('a client that nobody used for a week is forgotten, and one in use is not', async () => {
    const forgotten = (await register(url)).body.client_id as string
    const walk = await walkToConsent(key, { jar: new Jar(url) })
    await decide(walk)
    const age = (id: string) =>
      studio.query("update private.oauth_clients set created_at = now() - interval '8 days' where client_id = $1", [id])
    await age(forgotten)
    await age(walk.clientId)
    await studio.query('select api.purge(30, 1000)')
    const left = await studio.query('select client_id from private.oauth_clients where client_id = any ($1)', [
      [forgotten, walk.clientId],
    ])
    expect(left.rows).toEqual([{ client_id: walk.clientId }])
  })
})

test('metadata that is nested too deeply is refused', async () => {
  for (const levels of [7, 10_000]) {
    const deep = '['.repeat(levels) + ']'.repeat(levels)
    for (const member of [`"jwks":{"keys":[{"kty":${deep}}]}`, `"jwks_uri":${deep}`]) {
      const response = await fetch(`${issuer()}/register`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...elsewhere() },
        body: `{"redirect_uris":["${callback}"],${member}}`,
      })
      expect([response.status, await response.json()]).toMatchObject([400, { error: 'invalid_client_metadata' }])
    }
  }
})

test('what Postgres could not keep is refused, and never a fault of the server', async () => {
  const named = (members: object) => JSON.stringify(members).slice(0, 80)
  for (const members of [
    { client_name: 'a\0b' },
    { redirect_uris: Array.from({ length: 20 }, (_, i) => `https://client.example/${i}${'x'.repeat(1_900)}`) },
    { redirect_uris: Array.from({ length: 21 }, (_, i) => `https://client.example/${i}`) },
    { redirect_uris: ['https://client.example/\0'] },
    { redirect_uris: 'https://client.example/' },
    { jwks: { keys: [{ kty: 'EC', x: '\0' }] } },
    { jwks: { keys: ['\ud800'] } },
    { client_name: 7 },
  ]) {
    expect((await register(url, members)).status, named(members)).toBeLessThan(500)
  }
  const ask = (members: Record<string, string | undefined>) =>
    new Jar(url).ask(requestUrl(clientId, pkce().challenge, members))
  for (const members of [{ prompt: '\0' }, { resource: '\0' }, { client_id: '\0' }])
    expect((await ask(members)).status, named(members)).toBeLessThan(500)
  for (const state of ['a\0b', 'x'.repeat(10_000), 'x'.repeat(2_001)]) {
    const { status, location } = await ask({ state })
    expect([status, location]).toEqual([400, ''])
  }
  expect((await ask({ state: 'x'.repeat(2_001) })).text).toContain('state must have at most 2000 characters.')
  const walk = { jar: new Jar(url), clientId, verifier: '\0', at: '', page: await new Jar(url).ask('/oauth/grants') }
  for (const [name, value, status] of [
    ['client_id', '\0', 401],
    ['client_id', 'é', 401],
    ['code', '\0', 400],
    ['redirect_uri', '\0', 400],
    ['resource', '\0', 400],
  ] as const) {
    expect((await codeGrant(walk, new URL('http://x/?code=x'), { [name]: value })).status, name).toBe(status)
  }
})

describe('a metadata document', () => {
  const id = 'https://client.example/metadata.json'
  const document = { client_id: id, client_name: 'Described', redirect_uris: [callback] }
  const served = async (answer: () => Promise<Response>) => {
    const asked: string[] = []
    const fetchDocument: FetchDocument = (url) => {
      asked.push(url)
      return answer()
    }
    const { url } = await ownApp({ trustProxy: true, oauth: { fetchDocument } })
    return { jar: new Jar(url), asked }
  }

  test.each([
    ['of another client', async () => Response.json({ ...document, client_id: 'https://other.example/metadata.json' })],
    [
      'with another address to return to',
      async () => Response.json({ ...document, redirect_uris: ['https://evil.example/'] }),
    ],
    [
      'with an address that nobody may have',
      async () => Response.json({ ...document, redirect_uris: [callback, 'javascript:alert(1)'] }),
    ],
    ['with a secret', async () => Response.json({ ...document, client_secret: 'x' })],
    ['that is a list', async () => Response.json([])],
    ['that is no JSON', async () => new Response('<html>')],
    ['elsewhere', async () => new Response(null, { status: 302, headers: { Location: 'https://evil.example/' } })],
    ['that cannot be had', async () => Promise.reject(new Error('no answer'))],
  ])('%s makes no client', async (_what, answer) => {
    const { jar, asked } = await served(answer)
    const { status, location } = await jar.ask(requestUrl(id, pkce().challenge))
    expect([status, location, new Set(asked)]).toEqual([400, '', new Set([id])])
  })

  test('is good for a client that is what its address says, and tells the person where it stands', async () => {
    const { jar } = await served(async () => Response.json(document))
    const { page } = await walkToConsent(key, { jar, clientId: id })
    expect(page.text).toContain(`<bdi>${id}</bdi>`)
    expect(page.text).toContain('Usher has not verified it')
  })

  describe('with its keys elsewhere', () => {
    const keys = 'https://client.example/keys'
    const stranger = 'https://stranger.example/metadata.json'
    const proven = { ...document, token_endpoint_auth_method: 'private_key_jwt', jwks_uri: keys }
    async function kept(answerKeys: (jwk: unknown) => Response) {
      const [own, wrong] = [await generateKeyPair('ES256'), await generateKeyPair('ES256')]
      const jwk = { ...(await exportJWK(own.publicKey)), alg: 'ES256', use: 'sig' }
      const { jar, asked } = await served(async () =>
        asked.at(-1) === keys ? answerKeys(jwk) : Response.json({ ...proven, client_id: asked.at(-1) }),
      )
      const assertion = async (clientId: string, isWrong = false) => ({
        client_assertion: await new SignJWT({ jti: randomUUID() })
          .setProtectedHeader({ alg: 'ES256' })
          .setIssuer(clientId)
          .setSubject(clientId)
          .setAudience(`${jar.apiUrl}/oauth`)
          .setIssuedAt()
          .setExpirationTime('1m')
          .sign((isWrong ? wrong : own).privateKey),
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      })
      const walk = { jar, clientId: stranger, verifier: '', at: '', page: await jar.ask('/oauth/grants') }
      const attack = async () => codeGrant(walk, new URL('http://x/?code=x'), await assertion(stranger, true))
      return { jar, attack, assertion, askedForKeys: () => asked.filter((url) => url === keys).length }
    }

    test('signs in while a stranger sends bad assertions in its place, and is asked for them once', async () => {
      const { jar, attack, assertion, askedForKeys } = await kept((jwk) =>
        Response.json({ keys: [jwk] }, { headers: { Expires: 'Thu, 01 Jan 1970 00:00:00 GMT' } }),
      )
      for (let i = 0; i < 100; i++) expect((await attack()).body.error).toBe('invalid_client')
      expect(askedForKeys()).toBeLessThanOrEqual(5)
      const walk = await walkToConsent(key, { jar, clientId: id })
      expect((await codeGrant(walk, await decide(walk), await assertion(id))).status).toBe(200)
    })

    test.each([
      ['refuses', () => new Response(null, { status: 503 })],
      [
        'does not answer',
        () => {
          throw new Error('no answer')
        },
      ],
    ])('is asked for them a few times only when its host %s', async (_what, answerKeys) => {
      const { attack, askedForKeys } = await kept(answerKeys)
      for (let i = 0; i < 100; i++) expect((await attack()).status).toBeLessThan(500)
      expect(askedForKeys()).toBeLessThan(20)
    })
  })

  test.each([
    ['http://client.example/metadata.json'],
    ['https://client.example/a/../metadata.json'],
    ['https://user@client.example/metadata.json'],
    ['https://client.example/metadata.json#x'],
  ])('%s is not even asked for', async (clientIdUrl) => {
    const { jar, asked } = await served(async () => Response.json({ ...document, client_id: clientIdUrl }))
    expect((await jar.ask(requestUrl(clientIdUrl, pkce().challenge))).status).toBe(400)
    expect(asked).toEqual([])
  })
})

test('what fails for now, a client may try again: its registration and its tokens are not at fault', async () => {
  const { url: away } = await ownApp({ trustProxy: true, dataApiUrl: 'http://127.0.0.1:9' })
  const form = { grant_type: 'refresh_token', refresh_token: 'x'.repeat(43), client_id: clientId }
  for (const endpoint of ['token', 'revoke']) {
    const answer = await fetch(`${away}/oauth/${endpoint}`, {
      method: 'POST',
      body: new URLSearchParams({ ...form, token: form.refresh_token }),
    })
    expect([answer.status, await answer.json()]).toMatchObject([503, { error: 'temporarily_unavailable' }])
    expect(answer.headers.get('retry-after')).toBe('1')
  }
  expect((await new Jar(away).ask(requestUrl(clientId, pkce().challenge))).status).toBe(503)
  const large = await fetch(`${url}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({ ...form, scope: 'x'.repeat(400_000) }),
  })
  expect([large.status, await large.json()]).toMatchObject([400, { error: 'invalid_request' }])
})

test('cookies are told apart by port on this machine, and elsewhere no neighbour can set them', async () => {
  const jar = new Jar(url)
  await walkToConsent(key, { jar })
  const { port } = new URL(url)
  for (const name of jar.cookies.keys()) expect(name).toMatch(new RegExp(`_${port}(\\.sig)?$`))
  const { url: far } = await ownApp({ publicUrl: 'https://usher.example', trustProxy: true })
  const there = new Jar(far)
  const { headers } = await there.ask('/oauth/grants')
  expect(headers.getSetCookie().join()).toMatch(/^__Host-usher_form=[^;]+; Path=\/; HttpOnly; Secure; SameSite=Lax$/)
})

test('without PUBLIC_URL it is offered to this machine, whatever name a stranger calls it by', () => {
  const from = (remoteAddress: string) =>
    createAddresses(undefined)({ headers: { host: 'localhost:3000' }, socket: { remoteAddress } as Socket })
  expect(from('::ffff:127.0.0.1')?.origin).toBe('http://localhost:3000')
  expect(from('192.168.1.7')).toBeUndefined()
})

test('keys, codes and tokens are in no line of the log', async () => {
  const lines: string[] = []
  const { url } = await ownApp({ log: pino({ level: 'trace' }, { write: (line) => void lines.push(line) }) })
  const own = await organisation.personKey()
  const { walk, answer, access_token, refresh_token } = await signIn(url, own)
  await callWith(access_token, url)
  for (const _ of [1, 2]) await refreshGrant(walk, refresh_token)
  const uid = walk.at.split('/').at(-1) as string
  const secrets = [
    own,
    answer.searchParams.get('code') as string,
    access_token,
    refresh_token,
    walk.verifier,
    uid,
    ...walk.jar.cookies.values(),
  ]
  expect(lines.length).toBeGreaterThan(8)
  for (const secret of secrets) expect(lines.join('')).not.toContain(secret)
  expect(lines.join('')).toContain('/oauth/sign-in/{uid}')
})
